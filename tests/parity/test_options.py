"""Our options beside those of the installed Vowpal Wabbit: names, defaults, what a model keeps."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from onlineauto.options.vw_names import INSTEAD, NAMES, SHORT_NAMES
from onlineauto.workspace.options import REGISTRY

DEFAULTS = {
    "automl": "there is no search unless asked for; VW's 4 is that of --automl without a number",
    "bit_precision": "VW fills in 18 after it has read the options",
    "default_lease": "VW's 4000 is that of --vw_exact; 2000 otherwise",
    "mellowness": "VW's explorers each declare one of their own",
    "cb_min_cost": "VW's 0 is that of --vw_exact; the lowest cost so far otherwise",
    "cb_max_cost": "VW's 1 is that of --vw_exact; the highest cost so far otherwise",
    "rnd": "there is none unless asked for; VW's 1 is never used, since it asks for a number",
    "oracle_type": "VW's one_diff is that of --vw_exact; stepwise otherwise",
}
"""Options with another default than VW declares, and why."""

HOMONYMS = {"search": "what --automl searches; VW's is learning to search, which we do not have"}
"""Options that only share their name with one of VW's."""

LISTS = {"data": "several files are read one after the other; VW reads one"}
"""Options that can be repeated here and not in VW, and why."""

SINGLE = {"cache_file": "one cache holds all files that are read; VW takes a list of caches"}
"""Options that can be repeated in VW and not here, and why."""

KEEPS = {
    "bit_precision": "VW's model files hold the number of bits apart from the options",
    "min_prediction": "VW's model files hold the range of labels apart from the options",
    "max_prediction": "VW's model files hold the range of labels apart from the options",
    **dict.fromkeys(
        ("permutations", "leave_duplicate_interactions", "ngram", "skips"),
        "predictions depend on it; VW forgets it",
    ),
    **dict.fromkeys(
        (
            *("random_seed", "constant", "initial_t", "decay_learning_rate", "initial_weight", "l1", "l2"),
            *("loss_function", "quantile_tau", "expectile_q", "logistic_min", "logistic_max"),
            "debug_reversed_learn",
        ),
        "learning goes on with it; VW forgets it",
    ),
}
"""Options that our model files keep where VW's do not, and why."""


@cache
def vw_options() -> dict[str, list[Any]]:
    """Every option that VW declares, by name; several reductions may declare one name."""
    import vowpalwabbit

    workspace = vowpalwabbit.Workspace("--quiet")
    found: dict[str, list[Any]] = {}
    for groups in workspace.get_config(filtered_enabled_reductions_only=False).values():
        for _, options in groups:
            for each in options:
                found.setdefault(each.name, []).append(each)
    workspace.finish()
    return found


def test_list_of_names_equals_that_of_vw() -> None:
    assert tuple(sorted(vw_options())) == NAMES
    shorts = {
        each.short_name: name for name, group in vw_options().items() for each in group if each.short_name
    }
    assert shorts == dict(SHORT_NAMES)


def test_options_that_vw_lacks_are_marked() -> None:
    for option in REGISTRY.options:
        assert option.vw == (option.name in NAMES) or option.name in HOMONYMS, option.name


def test_short_names() -> None:
    actual = {option.name: option.short for option in REGISTRY.options if option.vw}
    expected = {
        name: next((each.short_name for each in vw_options()[name] if each.short_name), None)
        for name in actual
    }
    assert actual == expected


@pytest.mark.parametrize("name", [option.name for option in REGISTRY.options if option.vw])
def test_defaults(name: str) -> None:
    option = REGISTRY[name]
    differs = not any(_same_default(option.default, each) for each in vw_options()[name])
    assert differs == (name in DEFAULTS)


@pytest.mark.parametrize("name", [option.name for option in REGISTRY.options if option.vw])
def test_saved_options_are_those_of_vw(name: str) -> None:
    kept = any(each.keep for each in vw_options()[name])
    assert REGISTRY[name].keep == (kept or name in KEEPS)
    assert not (kept and name in KEEPS)


def test_switches_and_kinds() -> None:
    for option in REGISTRY.options:
        if not option.vw:
            continue
        for declared in vw_options()[option.name]:
            several = (option.repeatable and option.name not in LISTS) or option.name in SINGLE
            expected = list if several else option.kind
            assert type(declared.default_value) is expected, option.name


def test_hints_name_no_existing_option() -> None:
    names = {option.name for option in REGISTRY.options}
    assert names & set(INSTEAD) == {"search"}
    assert set(INSTEAD) <= set(NAMES)


def _same_default(default: object, declared: Any) -> bool:
    """Return whether a default equals VW's up to rounding to float32; no default is None or empty."""
    if not declared.default_value_supplied:
        return default is None or default == ()
    if isinstance(default, float):
        return bool(declared.default_value == pytest.approx(default, rel=1e-6))
    return bool(default == declared.default_value)
