"""The typical size of numbers, beside its slow reference implementation."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from onlineauto.api.numbers import TypicalSize
from onlineauto.estimators.typical_size_kernels import (
    BEYOND,
    FIRST_EVENTS,
    GAP,
    NARROW_GAP,
    ORDINARY,
    RUINED,
    STATE,
    judge_number,
    size_of,
)
from tests.naive.outliers import Size, exponent

VERDICTS = {"ordinary": ORDINARY, "beyond": BEYOND, "ruined": RUINED}


def numbers(seed: int, n: int = 3000) -> list[float]:
    """Return numbers of a scale that changes at times, with absurd ones among them."""
    draw, found, scale = random.Random(seed), [], 1.0
    for _ in range(n):
        if draw.random() < 0.01:
            scale = 10.0 ** draw.uniform(-12, 30)
        number = (
            scale * draw.lognormvariate(0, 1) * (10.0 ** draw.uniform(0, 38) if draw.random() < 0.02 else 1)
        )
        found.append(float(np.float32(min(number, 3e38))) * draw.choice((-1, 1)))
    return found


def test_the_size_of_a_number_is_its_exponent() -> None:
    for number in (1e-45, 2.0**-10, 2.0**-9, 0.999, 1.0, 2.0, 3e38, 2.0**127):
        assert size_of(number) == exponent(number) + 10
        assert size_of(-number) == size_of(number)
        assert size_of(math.nextafter(number, 0)) == exponent(math.nextafter(number, 0)) + 10


@pytest.mark.parametrize("seed", range(4))
def test_verdicts_are_those_of_the_reference(seed: int) -> None:
    slow, state, one_by_one = Size(), np.zeros((1, STATE), np.uint8), TypicalSize()
    for at, number in enumerate(numbers(seed)):
        first = at < FIRST_EVENTS
        verdict = VERDICTS[slow.judge(number, first=first)]
        assert judge_number(state, 0, number, 0, first, GAP) == verdict
        assert one_by_one.judge(number) == verdict
        assert state[0].tolist() == one_by_one.state


@pytest.mark.parametrize("seed", range(4))
def test_verdicts_within_the_narrow_gap_are_those_of_the_reference(seed: int) -> None:
    slow, state = Size(), np.zeros((1, STATE), np.uint8)
    for number in numbers(seed):
        verdict = VERDICTS[slow.judge(number, first=False, gap=7)]
        assert judge_number(state, 0, number, 0, False, NARROW_GAP) == verdict


def test_a_rare_absurd_number_is_always_an_outlier() -> None:
    size = TypicalSize()
    for _ in range(100):
        assert all(size.judge(1.0) == ORDINARY for _ in range(400))
        assert size.judge(-1e6) == BEYOND


def test_a_new_scale_is_ordinary_after_a_few_numbers() -> None:
    size = TypicalSize()
    assert all(size.judge(1.0) == ORDINARY for _ in range(5000))
    assert [size.judge(1e9) for _ in range(20)] == [BEYOND] * 16 + [ORDINARY] * 4
    assert size.judge(1.0) == ORDINARY


def test_small_numbers_do_not_ruin_what_was_learnt_long_ago() -> None:
    size = TypicalSize()
    verdicts = {size.judge(number) for number in (1e6, *[0.0] * 100, *[1.0] * 20, 1e6)}
    assert verdicts == {ORDINARY}


def test_the_first_number_may_be_the_absurd_one() -> None:
    size = TypicalSize()
    assert [size.judge(number) for number in (1e9, 1.0, 2.0, 3.0)] == [ORDINARY, ORDINARY, RUINED, ORDINARY]
    assert size.judge(1e9) == BEYOND
