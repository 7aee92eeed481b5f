"""The conformance suite accepts every registered explorer, and rejects faulty ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import OptionError
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.policy import Policy
from onlineauto.testing import check_explorer, check_pmf

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "greedy": [{}, {"epsilon": 0.5, "first_only": True}, {"epsilon": 1.0}],
    "first": [{"first": 100}, {"first": 0, "epsilon": 0.2}],
    "softmax": [{"softmax": True}, {"softmax": True, "lambda_": 20.0, "epsilon": 0.1}],
    "squarecb": [
        {"squarecb": True},
        {"squarecb": True, "gamma_scale": 1000.0, "epsilon": 0.2},
        {"squarecb": True, "elim": True},
        {"squarecb": True, "elim": True, "epsilon": 0.1},
    ],
    "scaled_squarecb": [
        {"scaled_squarecb": True},
        {"scaled_squarecb": True, "gamma_scale": 1000.0, "epsilon": 0.2},
        {"scaled_squarecb": True, "gamma_scale": 0.0, "epsilon": 0.0},
    ],
    "regcb": [{"regcb": True}, {"regcbopt": True}, {"regcb": True, "regcbopt": True, "first_only": True}],
    "synthcover": [{"synthcover": True}, {"synthcover": True, "synthcoverpsi": 2.0, "epsilon": 0.1}],
    "rnd": [{"rnd": 1}, {"rnd": 3, "epsilon": 0.2}],
}
"""Options with which the promises of each explorer are tested."""

VOTERS = {"bag", "cover", "epsilon_decay"}
"""Explorers of several models, which `tests.engine.test_explorers` tests."""

EACH = [pytest.param(options, id=str(options)) for several in SETTINGS.values() for options in several]
STEPS = st.lists(st.integers(-400, 400), min_size=1, max_size=8, unique=True)
"""Scores that differ by at least 1/256, since `synthcover` adds costs in steps of 0.01."""


def test_every_explorer_is_tested() -> None:
    assert set(SETTINGS) | VOTERS == set(EXPLORERS)


@pytest.mark.parametrize("options", EACH)
def test_conformance(options: dict[str, Any]) -> None:
    check_explorer(Policy(**options))


@pytest.mark.parametrize("options", EACH)
@given(steps=STEPS, learnt=st.integers(0, 10**9), reach=st.floats(0, 2))
def test_promises(options: dict[str, Any], steps: list[int], learnt: int, reach: float) -> None:
    check_pmf(Policy(**options), [step / 256 for step in steps], learnt=learnt, reach=reach)


class Broken:
    """An explorer with one fault."""

    floor = 0.2
    needs_plausible = False

    def __init__(self, wrong: str) -> None:
        self._wrong = wrong

    def pmf(self, scores: Any, **_: Any) -> Any:
        n = len(scores)
        pmf = np.full(n, 1 / n, np.float32)
        if self._wrong == "sum":
            pmf *= 1.1
        elif self._wrong == "negative" and n > 1:
            pmf[0], pmf[-1] = pmf[0] + 1, pmf[-1] - 1
        elif self._wrong == "floor" and n > 1:
            pmf[np.argmax(scores)], pmf[np.argmin(scores)] = 0.01 / n, 1.99 / n
        elif self._wrong == "first" and n > 1:
            pmf[0], pmf[1] = 1.5 / n, 0.5 / n
        elif self._wrong == "finite":
            pmf[0] = np.nan
        return pmf


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("sum", "the sum is not 1"),
        ("negative", "one is negative"),
        ("floor", "below the floor"),
        ("first", "in the order"),
        ("finite", "not all are finite"),
    ],
)
def test_a_faulty_explorer_is_rejected(wrong: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_explorer(Broken(wrong))


def test_a_policy_declares_its_needs() -> None:
    with pytest.raises(ValueError, match="plausible cost of each action"):
        Policy(regcb=True).pmf([0, 1])
    with pytest.raises(ValueError, match="bag needs the scores of several models"):
        Policy(bag=3).pmf([0, 1])
    with pytest.raises(OptionError, match="exclude each other"):
        Policy(softmax=True, squarecb=True)
