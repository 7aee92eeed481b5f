"""A configuration and its command line say the same; the signature is the registry's."""

from __future__ import annotations

import inspect
import shlex
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.engine.options.registry import RunOptions
from onlineauto.errors import OptionError
from onlineauto.explorers.options import ExplorerOptions
from onlineauto.features.options import FeatureOptions
from onlineauto.options import Option, Registry
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("quick")

_UNCHECKED = Registry(REGISTRY.groups)
"""Without the checks of options against each other, so that any values go together."""


def _values(option: Option) -> st.SearchStrategy[object]:
    """Valid values of one option."""
    if option.switch:
        return st.just(True)
    if option.choices:
        return st.sampled_from(option.words)
    if option.kind is str:
        word = st.text(st.sampled_from(string.printable + "é\udcff\x00"), min_size=1)
        return st.lists(word, min_size=1).map(tuple) if option.repeatable else word
    if option.kind is int:
        return st.integers(
            min_value=None if option.minimum is None else int(option.minimum),
            max_value=None if option.maximum is None else int(option.maximum),
        )
    return st.floats(
        min_value=option.above if option.minimum is None else option.minimum,
        max_value=option.below if option.maximum is None else option.maximum,
        exclude_min=option.above is not None,
        exclude_max=option.below is not None,
        allow_nan=False,
        allow_infinity=False,
    )


_KEYWORDS = st.fixed_dictionaries({}, optional={option.name: _values(option) for option in REGISTRY.options})


@given(keywords=_KEYWORDS)
def test_a_command_line_reads_back(keywords: dict[str, object]) -> None:
    configuration = _UNCHECKED.from_keywords(**keywords)
    assert configuration.supplied == set(keywords)
    for name, value in keywords.items():
        assert configuration.get(name) == value
    again = _UNCHECKED.parse(configuration.command())
    assert again == configuration
    assert hash(again) == hash(configuration)
    assert again.command() == configuration.command()
    assert _UNCHECKED.parse(shlex.split(configuration.command())) == configuration


def test_the_command_line_is_canonical() -> None:
    configuration = REGISTRY.parse("events.txt -b18 --cb_explore_adf -q :: ab --epsilon .10 --constant -1")
    assert configuration.command() == (
        "--data events.txt --bit_precision 18 --constant=-1.0 --quadratic :: --quadratic ab "
        "--cb_explore_adf --epsilon 0.1"
    )


def test_a_group_is_typed_and_frozen() -> None:
    configuration = REGISTRY.parse("--epsilon 0.3 --cb_explore_adf")
    assert configuration[ExplorerOptions] == ExplorerOptions(epsilon=0.3, cb_explore_adf=True)
    assert configuration[FeatureOptions] == FeatureOptions()
    assert configuration.supplied == {"epsilon", "cb_explore_adf"}
    with pytest.raises(AttributeError):
        configuration[ExplorerOptions].epsilon = 0.1  # type: ignore[misc]


def test_a_default_that_is_given_is_supplied() -> None:
    given_, silent = REGISTRY.parse("--epsilon 0.05 --cb_explore_adf"), REGISTRY.parse("--cb_explore_adf")
    assert given_[ExplorerOptions] == silent[ExplorerOptions]
    assert given_ != silent


def test_missing_names_raise_key_error() -> None:
    configuration = Registry([FeatureOptions]).parse("")
    with pytest.raises(KeyError, match="RunOptions"):
        configuration[RunOptions]
    with pytest.raises(KeyError, match="epsilon"):
        configuration.get("epsilon")
    with pytest.raises(KeyError, match="epsilon"):
        Registry([FeatureOptions])["epsilon"]


def test_an_option_by_its_name() -> None:
    assert REGISTRY["quadratic"].short == "q"


def test_every_option_has_a_short_clear_help() -> None:
    for option in REGISTRY.options:
        assert option.help.endswith("."), option.name
        assert len(option.help) < 220, option.name
        assert all(needed in {other.name for other in REGISTRY.options} for needed in option.needs), (
            option.name
        )


def test_a_flag_is_an_alias_of_the_name_in_python() -> None:
    assert REGISTRY["random_seed"].keyword == "seed"
    by_name, by_flag = REGISTRY.from_keywords(seed=3), REGISTRY.from_keywords(random_seed=3)
    assert by_name == by_flag == REGISTRY.parse("--random_seed 3")
    with pytest.raises(OptionError, match="--random_seed is given twice"):
        REGISTRY.from_keywords(seed=3, random_seed=3)
    with pytest.raises(OptionError, match="unknown option --seed"):
        REGISTRY.parse("--seed 3")


def test_the_signature() -> None:
    signature = REGISTRY.signature()
    assert list(signature.parameters) == [option.keyword or option.field for option in REGISTRY.options]
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in signature.parameters.values())
    assert signature.parameters["epsilon"].default == 0.05
    assert str(signature.parameters["epsilon"]) == "epsilon: float = 0.05"
    assert str(signature.parameters["cb"]) == "cb: int | None = None"
    assert str(signature.parameters["quadratic"]) == "quadratic: str | collections.abc.Sequence[str] = ()"
