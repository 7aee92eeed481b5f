"""Random orders of configs, fair and like VW's."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.automl.random_draw import FairDraw, float32
from onlineauto.exact.control import VwDraw

pytestmark = pytest.mark.lane("quick")


@given(seed=st.integers(0, 2**64 - 1), n=st.integers(0, 50))
def test_fair_order_contains_each_number_once(seed: int, n: int) -> None:
    assert sorted(FairDraw(seed).order(n)) == list(range(n))


def test_fair_orders_are_equally_likely() -> None:
    draw = FairDraw(0)
    counts = Counter(tuple(draw.order(3)) for _ in range(6000))
    assert len(counts) == 6
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 20.5  # 99.9% of chi² with 5


def test_incomplete_last_interval_is_drawn_again() -> None:
    """Without a second draw, the lowest third of the numbers would come every other time."""
    draw = FairDraw(0)
    low = sum(draw._draw_below(3 * 2**62) < 2**62 for _ in range(3000))
    assert 900 < low < 1100


def test_fair_numbers_are_splitmix64() -> None:
    """The first numbers of seed 1234567, as the reference implementation gives them."""
    draw = FairDraw(1234567)
    assert [draw._next_number() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_vw_numbers() -> None:
    draw = VwDraw(10)
    expected = [0.0170166492, 0.370730162, 0.166691661, 0.362691283, 0.969445825]
    assert [draw.uniform() for _ in expected] == pytest.approx(expected, abs=1e-9)


@given(seed=st.integers(0, 2**64 - 1), n=st.integers(0, 50))
def test_a_vw_order_has_zeros_beside_the_numbers(seed: int, n: int) -> None:
    assert sorted(VwDraw(seed).order(n)) == sorted([0] * n + list(range(n)))


@given(st.floats(-1e30, 1e30))
def test_rounding_to_single_precision(number: float) -> None:
    assert float32(number) == float(np.float32(number))
