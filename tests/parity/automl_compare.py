"""How two runs of the search differ: metrics, traces, state; and everything else as in other runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.parity.automl_state import state_differences
from tests.parity.result import differences, shortened

if TYPE_CHECKING:
    from tests.parity.automl_outputs import Outputs

__all__ = ["BOUNDS", "TOLERANCE", "differences_of_search", "metric_differences", "trace_differences"]

TOLERANCE = 1e-6
"""How far two bounds may be apart: the precision to which VW finds them."""

BOUNDS = ("lb", "ub")
"""Metrics that are bounds."""

_PRINTED = 1e-6
"""Two bounds of at most 1 printed with six digits may be farther apart by this."""

_KEYS = 3
"""Leading columns of the trace of bounds that are whole numbers."""

_LOG = "total_log_calls"
"""Counts the wheel's messages on model files too, which we do not write."""


def metric_differences(wheel: Any, ours: Any, *, path: str = "") -> list[str]:
    """Differences of two metrics objects, lists of pairs as `parsed_metrics` gives them."""
    if isinstance(wheel, list) and isinstance(ours, list):
        theirs, mine = ([key for key, _ in each if key != _LOG] for each in (wheel, ours))
        if theirs != mine:
            return [f"metrics {path or '.'}: wheel has {theirs}, ours {mine}"]
        values = dict(ours)
        return [
            found
            for key, value in wheel
            if key != _LOG
            for found in metric_differences(value, values[key], path=f"{path}.{key}")
        ]
    return [] if _same_metric(wheel, ours, key=path.rpartition(".")[2]) else [_unlike(path, wheel, ours)]


def _same_metric(wheel: Any, ours: Any, *, key: str) -> bool:
    if key in BOUNDS and isinstance(wheel, float) and isinstance(ours, float):
        return abs(wheel - ours) <= TOLERANCE
    return repr(wheel) == repr(ours)


def _unlike(path: str, wheel: Any, ours: Any) -> str:
    return f"metrics {path}: wheel {wheel!r}, ours {ours!r}"


def _same_bounds(wheel: str, ours: str) -> bool:
    """Whether two lines of the trace of bounds say the same."""
    theirs, mine = wheel.split(","), ours.split(",")
    return (
        len(theirs) == len(mine)
        and theirs[:_KEYS] == mine[:_KEYS]
        and all(
            abs(float(a) - float(b)) <= TOLERANCE + _PRINTED
            for a, b in zip(theirs[_KEYS:], mine[_KEYS:], strict=True)
        )
    )


def trace_differences(name: str, wheel: tuple[str, ...], ours: tuple[str, ...]) -> list[str]:
    """Differences of two trace files, line by line; bounds may be apart by `TOLERANCE`."""
    bounds = name.endswith(".cs.csv")
    found = [
        f"{name} line {number}: wheel {theirs!r}, ours {mine!r}"
        for number, (theirs, mine) in enumerate(zip(wheel, ours, strict=False), start=1)
        if theirs != mine and not (bounds and number > 1 and _same_bounds(theirs, mine))
    ]
    if len(wheel) != len(ours):
        found.append(f"{name}: wheel has {len(wheel)} lines, ours {len(ours)}")
    return shortened(name, found)


def differences_of_search(wheel: Outputs, ours: Outputs) -> list[str]:
    """Everything in which two runs differ, one line a difference."""
    found = differences(wheel.result, ours.result, models=not wheel.result.stopped_early)
    for name, lines in wheel.traces.items():
        found += trace_differences(name, lines, ours.traces[name])
    return [
        *found,
        *shortened("metrics", metric_differences(wheel.metrics, ours.metrics)),
        *state_differences(wheel.search, ours.search),
    ]
