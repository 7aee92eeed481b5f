"""Declaring options: what a field of a dataclass says about its flag."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.options import Registry, option, options_of, title_of
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("quick")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    title: ClassVar[str] = "All kinds"

    switch: bool = option(False, "A switch.")
    count: int = option(3, "A whole number.", short="c", minimum=1, maximum=9)
    rate: float = option(0.5, "A number.", above=0, metavar="RATE")
    word: str = option("one", "A word.", choices=("one", "two"))
    perhaps: float | None = option(None, "A number, or not.")
    many: tuple[str, ...] = option((), "Words.", keep=True, vw=False)


def test_a_field_is_a_flag() -> None:
    found = {each.name: each for each in options_of(Kinds)}
    assert list(found) == ["switch", "count", "rate", "word", "perhaps", "many"]
    assert [each.kind for each in found.values()] == [bool, int, float, str, float, str]
    assert [name for name, each in found.items() if each.optional] == ["perhaps"]
    assert [name for name, each in found.items() if each.repeatable] == ["many"]
    assert [name for name, each in found.items() if each.switch] == ["switch"]
    assert found["many"].keep
    assert not found["many"].vw
    assert found["count"].flag == "--count"
    assert [each.metavar for each in found.values()] == ["", "INT", "RATE", "STR", "FLOAT", "STR"]
    assert title_of(Kinds) == "All kinds"


def test_the_dataclass_is_an_ordinary_one() -> None:
    assert Kinds() == Kinds(count=3, rate=0.5)
    assert Kinds(many=("a",)).many == ("a",)


def test_a_field_without_option_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Forgotten:
        count: int = 3

    with pytest.raises(TypeError, match=r"Forgotten\.count is not declared with option\(\)"):
        options_of(Forgotten)


def test_an_annotation_that_no_flag_can_take_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Odd:
        plane: complex = option(0j, "No.")

    with pytest.raises(TypeError, match="--plane: an option cannot be annotated"):
        options_of(Odd)


def test_two_options_of_one_name_are_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class SameName:
        count: int = option(1, "Again.")

    @dataclass(frozen=True, kw_only=True)
    class SameLetter:
        other: int = option(1, "Again.", short="c")

    with pytest.raises(ValueError, match="--count is declared twice"):
        Registry([Kinds, SameName])
    with pytest.raises(ValueError, match="-c is declared twice"):
        Registry([Kinds, SameLetter])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--epsilon 1.5", "--epsilon cannot be 1.5; it takes a number from 0 to 1"),
        ("--epsilon -0.1", "--epsilon cannot be -0.1; it takes a number from 0 to 1"),
        ("--epsilon=nan", "--epsilon cannot be 'nan'; it takes a number from 0 to 1"),
        ("--epsilon=1_0", "--epsilon cannot be '1_0'; it takes a number from 0 to 1"),
        ("--l1 inf", "--l1 cannot be 'inf'; it takes a number of at least 0"),
        ("--l1 1e999", "--l1 cannot be 1e999; it takes a number of at least 0"),
        ("--l1 0x10", "--l1 cannot be '0x10'; it takes a number of at least 0"),
        ("--constant x", "--constant cannot be 'x'; it takes a number"),
        ("-b 18.0", "--bit_precision cannot be '18.0'; it takes a whole number from 1 to 32"),
        ("-b 0", "--bit_precision cannot be 0; it takes a whole number from 1 to 32"),
        ("-b 33", "--bit_precision cannot be 33; it takes a whole number from 1 to 32 (a feature's index"),
        ("--passes 0", "--passes cannot be 0; it takes a whole number from 1 to 2^63 - 1"),
        ("--examples -2", "--examples cannot be -2; it takes a whole number from -1 to 2^63 - 1"),
        ("--cb 0", "--cb cannot be 0; it takes a whole number from 1 to 2^32 - 1"),
        ("--random_seed -1", "--random_seed cannot be -1; it takes a whole number from 0 to 2^64 - 1"),
        ("--expectile_q 0", "--expectile_q cannot be 0; it takes a number above 0 and of at most 0.5"),
        ("--link sigmoid", "--link cannot be sigmoid; it takes one of identity, logistic, glf1, poisson"),
        ("--cb_type sm", "--cb_type cannot be sm; it takes one of mtr, ips, dr, dm"),
        ("--data ''", "--data cannot be ''; it takes a word that is not empty"),
    ],
)
def test_invalid_text(words: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        REGISTRY.parse(words)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({"epsilon": 0.25}, {"epsilon": 0.25}),
        ({"epsilon": 1}, {"epsilon": 1.0}),
        ({"epsilon": np.float32(0.5)}, {"epsilon": 0.5}),
        ({"epsilon": Fraction(1, 4)}, {"epsilon": 0.25}),
        ({"bit_precision": np.int64(20)}, {"bit_precision": 20}),
        ({"b": 20}, {"bit_precision": 20}),
        ({"bit-precision": 20}, {"bit_precision": 20}),
        ({"quadratic": "ab"}, {"quadratic": ("ab",)}),
        ({"q": ["ab", "cd"]}, {"quadratic": ("ab", "cd")}),
        ({"quadratic": ("ab",)}, {"quadratic": ("ab",)}),
        ({"quadratic": []}, {}),
        ({"data": Path("events.txt")}, {"data": ("events.txt",)}),
        ({"progress": 1000}, {"progress": "1000"}),
        ({"progress": 1.5}, {"progress": "1.5"}),
        ({"testonly": True}, {"testonly": True}),
        ({"automl": True}, {"automl": 4}),
        ({"testonly": False}, {}),
        ({"epsilon": None, "data": None, "quadratic": None, "quiet": None}, {}),
        ({"examples": 0}, {"examples": 0}),
        ({"initial_t": 0}, {"initial_t": 0.0}),
    ],
)
def test_keywords(keywords: dict[str, object], expected: dict[str, object]) -> None:
    configuration = REGISTRY.from_keywords(**keywords)
    values = {name: configuration.get(name) for name in configuration.supplied}
    assert values == expected
    assert [type(values[name]) for name in expected] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"epsilom": 0.1}, "unknown option epsilom; did you mean epsilon?"),
        ({"n_estimators": 3}, "unknown option n_estimators; did you mean estimator?"),
        (
            {"metrics": "m"},
            "--metrics is an option of Vowpal Wabbit that onlineauto does not have: `--extra_metrics",
        ),
        (
            {"audit_regressor": "m"},
            "--audit_regressor is an option of Vowpal Wabbit that onlineauto does not have: `onlineauto",
        ),
        ({"affix": 2}, "--affix is an option of Vowpal Wabbit that onlineauto does not have"),
        ({"affix": "2"}, "--affix is an option of Vowpal Wabbit that onlineauto does not have"),
        ({"epsilon": "0.1"}, "--epsilon cannot be '0.1'; it takes a number from 0 to 1"),
        ({"epsilon": True}, "--epsilon cannot be True; it takes a number from 0 to 1"),
        ({"epsilon": float("nan")}, "--epsilon cannot be 'nan'; it takes a number from 0 to 1"),
        ({"passes": 2.0}, "--passes cannot be 2.0; it takes a whole number from 1 to 2^63 - 1"),
        ({"testonly": 1}, "--testonly cannot be 1; it takes True or False"),
        ({"data": b"events.txt"}, "--data cannot be b'events.txt'; it takes a word that is not empty"),
        ({"quadratic": {"ab"}}, "--quadratic cannot be {'ab'}; it takes a word that is not empty"),
        ({"b": 18, "bit_precision": 18}, "--bit_precision is given twice"),
    ],
)
def test_invalid_keywords(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        REGISTRY.from_keywords(**keywords)
    assert str(caught.value).startswith(message)
