"""Values of every kind: what is taken, what is refused, and with which words."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("quick")


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
        (
            "-b 33",
            "--bit_precision cannot be 33; it takes a whole number from 1 to 32 (a feature's index has 32",
        ),
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
        ({"epsilom": 0.1}, "unknown option --epsilom; did you mean --epsilon?"),
        ({"ngram": 2}, "--ngram is an option of Vowpal Wabbit that onlineauto does not have"),
        ({"ngram": "2"}, "--ngram is an option of Vowpal Wabbit that onlineauto does not have"),
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
