"""The bench of streams of several kinds: streams are what they say, and ratios are those of the medians."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.speed_kinds.__main__ import curves_of, report, sides_of
from bench.speed_kinds.streams import KINDS
from onlineauto import read

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ci


@pytest.mark.parametrize("kind", KINDS)
def test_streams_have_the_namespaces_and_actions_that_they_say(kind: str, tmp_path: Path) -> None:
    what, file = KINDS[kind], tmp_path / "stream.txt"
    assert what.write(file, share=3 / what.events) == 3
    events = list(read(file, cb_explore_adf=True).events())
    assert len(events) == 3
    for event in events:
        assert event.shared is not None
        assert len(event.actions) == what.actions
        assert sum(bool(line.costs) for line in event.actions) == 1
        for line, parts in ((event.shared, what.context), (event.actions[0], what.action)):
            assert len(line.features) == sum(part.many for part in parts)
            sizes = [part.names + part.numbers for part in parts for _ in range(part.many)]
            assert [len(found) for found in line.features.values()] == sizes


def test_ratios_are_those_of_medians_and_the_worst_is_named() -> None:
    def taken(*cpu: float) -> list[list[dict[str, float]]]:
        return [[{"wall": 2 * each, "cpu": each}, {"wall": each, "cpu": each / 2}] for each in cpu]

    sides = {"VW -q ::": taken(8, 1, 9), "VW --automl 4": taken(100, 100, 100)}
    ours = {"stack": taken(4, 4, 400), "champion": taken(2, 1, 3)}
    streams = {"tiny": {**sides, **ours}, "ids": {**sides, **ours, "stack": taken(16, 16, 16)}}
    lines, met = report(streams, [1.0, 10.0])
    assert "| first 20,000 | 16, 8 | 200, 100 | 8, 4 | 4, 2 | 2.00, 4.00 | 25.00, 50.00 |" in lines[2]
    assert "| 20,000 to 200,000 | 8, 4 | 100, 50 | 4, 2 | 2, 1 | 2.00, 4.00 | 25.00, 50.00 |" in lines[3]
    assert "- VW -q :: / stack, first events: 1.00 (geometric mean), 0.50 (worst)" in lines
    assert "- VW -q :: / stack, up to 10 times as many: 1.00 (geometric mean), 0.50 (worst)" in lines
    assert not met


def test_each_kind_runs_what_its_targets_need() -> None:
    assert {"1 live", "32 live"} <= set(sides_of("news"))
    assert sides_of("300 namespaces") == ["stack", "champion", "no search"]


def test_curves_have_the_median_of_each_part() -> None:
    rounds = [[{"wall": 0.0, "cpu": cpu}, {"wall": 0.0, "cpu": cpu / 2}] for cpu in (9.0, 4.0, 6.0)]
    curves = curves_of({"numbers": {"stack": rounds}}, [1.0, 10.0])
    assert list(curves.values()) == [{"ends": [10_000, 100_000], "sides": {"stack": [6.0, 3.0]}}]
