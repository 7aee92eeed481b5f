"""Adaptive windows, compared bit for bit with river's ADWIN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from river.drift import ADWIN

from onlineauto.engine.search.drift import make_window, stored_window
from onlineauto.estimators.adaptive_window_kernels import (
    LARGEST_ROW,
    SPREAD,
    SUM,
    WIDTH,
    Window,
    clear,
    mean,
    rises,
    take_in,
)
from onlineauto.state.stored import Stored

LEVELS = st.lists(st.tuples(st.integers(1, 400), st.floats(0, 1)), min_size=1, max_size=6)
"""Number of consecutive numbers of one kind, and their level."""
NOISES = ["none", "coin", "normal", "tiny"]


def stream(levels: list[tuple[int, float]], noise: str, seed: int) -> NDArray[np.float64]:
    """Return numbers in [0, 1] whose kind changes from time to time."""
    draw = np.random.default_rng(seed)
    level = np.concatenate([np.full(n, at) for n, at in levels])
    if noise == "coin":
        return (draw.random(len(level)) < level).astype(np.float64)
    spread = {"none": 0.0, "normal": 0.2, "tiny": 1e-9}[noise]
    return np.clip(level + spread * draw.normal(size=len(level)), 0.0, 1.0)


STREAMS = st.builds(stream, LEVELS, st.sampled_from(NOISES), st.integers(0, 2**32))


def river() -> Any:
    return ADWIN(delta=0.002, clock=1)  # type: ignore[no-untyped-call]


def check_twins(numbers: NDArray[np.float64]) -> int:
    """Compare after every number; return the number of alarms."""
    window, twin = make_window(), river()
    alarms = 0
    for x in numbers:
        changed = take_in(window, x)
        twin.update(float(x))
        assert changed == twin.drift_detected
        assert window.whole[WIDTH] == twin.width
        assert window.whole[SUM] == twin.total
        assert window.whole[SPREAD] == twin.variance
        assert mean(window) == twin.estimation
        if changed:  # river begins anew with the next number
            clear(window)
            alarms += 1
    return alarms


@pytest.mark.ci
@given(numbers=STREAMS)
def test_the_window_equals_rivers(numbers: NDArray[np.float64]) -> None:
    check_twins(numbers)


@given(numbers=st.lists(st.floats(0, 1), max_size=300))
def test_the_window_equals_rivers_for_any_numbers(numbers: list[float]) -> None:
    check_twins(np.array(numbers))


@pytest.mark.parametrize(("noise", "least"), [("none", 5), ("coin", 3), ("normal", 5), ("tiny", 5)])
def test_long_streams_are_cut_like_rivers(noise: str, least: int) -> None:
    levels = [(5000, 0.2), (3000, 0.6), (500, 0.5), (100, 1.0), (2000, 0.0), (9000, 0.3)]
    assert check_twins(stream(levels, noise, seed=3)) >= least


def test_numbers_of_one_kind_raise_no_alarm() -> None:
    assert check_twins(np.full(3000, 0.7)) == 0
    assert check_twins(stream([(20_000, 0.3)], "coin", seed=1)) == 0


def rises_by_river(numbers: NDArray[np.float64]) -> bool:
    """Return the result of `rises` by river's window."""
    rose, twin = False, river()
    for x in numbers:
        before = twin.estimation
        twin.update(float(x))
        if twin.drift_detected:
            rose = rose or twin.estimation > before
            twin = river()
    return rose


@given(numbers=STREAMS, split=st.floats(0, 1))
def test_an_alarm_reports_whether_the_mean_rose(numbers: NDArray[np.float64], split: float) -> None:
    window, at = make_window(), int(split * len(numbers))
    first = rises(window, numbers[:at])
    assert first == rises_by_river(numbers[:at])
    assert (rises(window, numbers[at:]) or first) == rises_by_river(numbers)


def test_a_fall_is_no_rise() -> None:
    low, high = np.full(200, 0.1), np.full(200, 0.9)
    assert rises(make_window(), np.concatenate([low, high]))
    assert not rises(make_window(), np.concatenate([high, low]))
    assert rises(make_window(), np.concatenate([high, low, high]))


def arrays_of(window: Window) -> dict[str, NDArray[Any]]:
    return {name: array.copy() for name, array in window._asdict().items()}


@given(numbers=STREAMS, split=st.floats(0, 1))
def test_a_restored_window_continues_to_the_same_state(numbers: NDArray[np.float64], split: float) -> None:
    window, at = make_window(), int(split * len(numbers))
    for x in numbers[:at]:
        take_in(window, x)
    other = stored_window(Stored(arrays_of(window)))
    for x in numbers[at:]:
        assert take_in(window, x) == take_in(other, x)
    for mine, its in zip(window, other, strict=True):
        assert mine.tobytes() == its.tobytes()


def filled() -> Window:
    window = make_window()
    for x in stream([(300, 0.4)], "coin", seed=0):
        take_in(window, x)
    return window


def test_restoring_copies_the_arrays() -> None:
    arrays = arrays_of(filled())
    for array in arrays.values():
        array.flags.writeable = False
    before = [array.tobytes() for array in arrays.values()]
    take_in(stored_window(Stored(arrays)), 0.5)
    assert [array.tobytes() for array in arrays.values()] == before


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("counts", lambda counts: counts.astype(np.int32), r"counts is int32\[48\], and not int64\[48\]"),
        ("sums", lambda sums: sums[:-1], r"sums is float64\[47, 6\], and not float64\[48, 6\]"),
        ("whole", lambda whole: whole[:1], r"whole is float64\[1\], and not float64\[3\]"),
        ("counts", lambda counts: counts - 1, "counts has a number that is not from 0 to 5"),
        (
            "counts",
            lambda counts: counts + LARGEST_ROW + 1,
            "counts has a number that is not from 0 to 5",
        ),
        ("counts", lambda counts: counts * 0, "the buckets of a window have 0 numbers, not 300"),
        ("whole", lambda whole: whole + 1, "the buckets of a window have 300 numbers, not 301"),
        ("whole", lambda whole: whole * [np.nan, 1, 1], "the buckets of a window have 300 numbers, not nan"),
        ("whole", lambda whole: whole * [1, np.nan, 1], "a sum of a window is larger"),
        ("spreads", lambda spreads: spreads + np.inf, "a sum of a window is larger"),
    ],
)
def test_arrays_of_no_window_are_rejected(name: str, change: Any, message: str) -> None:
    arrays = arrays_of(filled())
    with pytest.raises(ValueError, match=message):
        stored_window(Stored(arrays | {name: change(arrays[name])}))


def test_windows_that_no_stream_produces_are_rejected() -> None:
    arrays = arrays_of(make_window())
    arrays["counts"][-1] = 1
    arrays["whole"][WIDTH] = 2.0**47
    with pytest.raises(ValueError, match="no stream fills a window of 140737488355328 numbers"):
        stored_window(Stored(arrays))
