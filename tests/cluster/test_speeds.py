"""Speeds: recovered coefficients, and kinds with few observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.cluster import Record, Speeds
from onlineauto.cluster.policies.speeds import fit_slowness, terms

pytestmark = pytest.mark.lane("quick")

scipy_optimize = pytest.importorskip("scipy.optimize")


def record(**also: Any) -> Record:
    known = {"slot": 0, "job": "a", "kind": "study", "arrived": 0, "worker": {"CPU": 1}, "total": 1e6}
    return Record(**{"workers": 1, "servers": 1, "before": 0.0, "done": 1.0, **known, **also})


COEFFICIENTS = st.lists(st.sampled_from([0.0, 0.001, 0.05, 0.3, 1.0, 7.0]), min_size=5, max_size=5)


@given(COEFFICIENTS, st.integers(0, 99))
def test_the_fit_recovers_coefficients_without_noise(true: list[float], seed: int) -> None:
    if not any(true):
        return
    draw = np.random.default_rng(seed)
    rows = terms(draw.integers(1, 17, 40), draw.integers(1, 17, 40))
    fitted = fit_slowness(rows, rows @ true)
    assert np.allclose(fitted, true, rtol=1e-5, atol=1e-7)


@given(st.integers(0, 999))
def test_the_fit_is_that_of_scipy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = terms(draw.integers(1, 9, 12), draw.integers(1, 9, 12))
    times = rows @ draw.uniform(-0.3, 1, 5) + 3
    actual = fit_slowness(rows, times)
    actual *= (rows @ actual / times).sum() / ((rows @ actual / times) ** 2).sum()  # the fit has no scale
    expected, _ = scipy_optimize.nnls(rows / times[:, None], np.ones(12))
    error = [((rows @ coefficients / times - 1) ** 2).sum() for coefficients in (actual, expected)]
    assert error[0] == pytest.approx(error[1], abs=1e-9)


@pytest.mark.parametrize("noise", [0.15, 0.5])
def test_noisy_speeds_are_right_on_average(noise: float) -> None:
    """Errors relative to observed times would make times 2 % and 22 % too short."""
    draw = np.random.default_rng(3)
    rows = terms(draw.integers(1, 9, 4000), draw.integers(1, 9, 4000))
    true = rows @ np.array([0.6, 0.2, 0.1, 0.02, 0.02])
    faster = np.exp(noise * draw.standard_normal(4000) - noise**2 / 2)  # 1 on average
    fitted = rows @ fit_slowness(rows, true / faster)
    assert float((fitted / true).mean()) == pytest.approx(1, abs=0.012)


def test_speeds_are_learned_by_kind() -> None:
    speeds = Speeds()
    for workers, servers in ((1, 1), (2, 1), (4, 2), (8, 3), (3, 6)):
        slowness = 2 * (0.7 / workers + 0.2 + 0.1 * workers / servers)
        speeds.observe([record(workers=workers, servers=servers, done=1 / slowness)])
    assert float(speeds.time_per_unit("study", 5, 5)) == pytest.approx(2 * (0.7 / 5 + 0.2 + 0.1), rel=0.05)
    assert speeds.kinds == ("study",)
    assert float(speeds.time_per_unit("study", 0, 0)) == np.inf


def test_one_observation_gives_the_scale() -> None:
    speeds = Speeds()
    speeds.observe([record(done=20.0)])
    assert float(speeds.time_per_unit("study", 1, 1)) == pytest.approx(1 / 20, rel=0.01)
    assert 1 / 40 < float(speeds.time_per_unit("study", 2, 2)) < 1 / 20  # what is unknown is guessed


def test_units_longer_than_a_slot_are_timed_over_all_their_slots() -> None:
    """Otherwise a study, which counts whole units, would seem equally fast with any number of workers."""
    speeds, done, slot = Speeds(), 0.0, 0
    for workers in (1, 2, 4, 8) * 3:
        for _ in range(40):
            before, done, slot = done, done + workers / 10, slot + 1
            whole = {"before": float(int(before)), "done": float(int(done))}
            speeds.observe([record(slot=slot, workers=workers, servers=0, **whole)])
    for workers in (1, 2, 4, 8):
        assert float(speeds.time_per_unit("study", workers, 0)) == pytest.approx(10 / workers, rel=0.2)


def test_slots_without_information_are_ignored() -> None:
    speeds = Speeds({"known": [1, 0, 0, 0, 0]})
    speeds.observe(
        [
            record(workers=0, done=0.0),
            record(done=0.0),
            record(used=0.0),
            record(kind="known"),
            record(endless=True, done=1.0, total=1.0),  # it would have been faster, with more to do
        ]
    )
    assert speeds.kinds == ("known",)
    speeds.observe([record(endless=True, done=1.0, total=2.0)])
    assert "study" in speeds.kinds
