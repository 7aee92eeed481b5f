"""The bench of learning in partitions works, on a few events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.scale import Costs, earned, measure, measure_costs, simulate, write_stream
from onlineauto.cluster.partitions.coordinator import Schedule

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ci


def test_speeds_and_costs_are_measured(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    write_stream(path, name="planted", events=1500)
    single, workers = measure(path, 0), measure(path, 1)
    assert single.events == workers.events == 1500
    assert single.loss == workers.loss  # so few events are learnt alone
    costs = measure_costs(path, schedule=Schedule(alone=256, head=8, shortest=256, longest=128))
    assert costs.event + costs.chunk > 0  # a line through few chunks may be steep or flat
    assert costs.base > 0
    assert min(costs.found, costs.counted, costs.head) > 0
    assert costs.merge + costs.merged_end > 0


def test_simulated_workers_share_the_events_and_nothing_else() -> None:
    costs = Costs(*[0.0] * 8)._replace(event=1e-3)
    assert round(simulate(costs, 4, events=1000)) == 4000
    assert round(simulate(costs._replace(found=1e-4), 4, events=1000)) == 4000  # while workers learn
    assert round(simulate(costs._replace(found=1e-4), 64, events=1000)) == 10_000
    with_merges = costs._replace(chunk=0.1, counted=1e-4, base=0.1, merge=0.1, merged_end=0.05)
    rates = [simulate(with_merges, n, events=1000) for n in (1, 2, 64)]
    assert rates[0] < rates[1]
    assert rates[2] < 1 / 1e-4  # the coordinator counts no more


def test_rewards_are_true_ones_of_choices(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    truth = write_stream(path, name="planted", events=1500)
    single = earned(path, truth, 0, Schedule())
    assert truth.mean() < single[1000:].mean() < truth.max(axis=1).mean()
    assert (earned(path, truth, 2, Schedule()) == single).all()  # so few events are learnt alone
    assert (earned(path, truth, 2, Schedule(alone=256, head=8, shortest=256, longest=128)) != single).any()
