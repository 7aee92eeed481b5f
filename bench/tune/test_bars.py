"""The bars of the tuners: regret at an equal budget, and overhead."""

from __future__ import annotations

import pytest

from bench.tune import overhead, regret
from bench.tune import stream as stream_bench

pytestmark = pytest.mark.bench


@pytest.mark.parametrize(("who", "workers"), regret.BARS)
def test_regret(who: str, workers: int) -> None:
    bars = regret.BARS[who, workers]
    seeds = range(60) if who == "DEHB" else range(40)
    for function, bar in zip(regret.FUNCTIONS, bars, strict=True):
        row = regret.measured(who, function, seeds, workers)
        assert row.end <= bar, row


@pytest.mark.parametrize("who", overhead.BARS)
def test_overhead(who: str) -> None:
    suggest, result = overhead.BARS[who]
    best = min(
        (overhead.overhead(overhead.CONTENDERS[who], 2000) for _ in range(3)),
        key=lambda each: each.suggest,
    )
    assert best.suggest <= suggest
    assert best.result <= result


@pytest.mark.parametrize("stream", ["reg-flights", "cb-diamonds-u", "cb-surveys-u"])
def test_flags_of_a_stream(stream: str) -> None:
    rows = [stream_bench.measured(stream, seed) for seed in range(5)]
    assert sum(row.tuned <= row.random and row.tuned < row.defaults for row in rows) >= 4
    assert max(row.cost for row in rows) <= stream_bench.RANDOM / 3
    assert sum(row.champion is not None for row in rows) >= 3


def test_tpe_at_a_thousand_trials() -> None:
    assert overhead.tpe_overhead(1000) <= 2000
