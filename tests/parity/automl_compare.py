"""How two runs of the search differ: metrics, state; and everything else as in other runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.parity.automl_state import state_differences
from tests.parity.result import differences, shortened

if TYPE_CHECKING:
    from tests.parity.automl_outputs import Outputs

TOLERANCE = 1e-6
"""How far two bounds may be apart: the precision to which VW finds them."""

BOUNDS = ("lb", "ub")
"""Metrics that are bounds."""

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


def differences_of_search(wheel: Outputs, ours: Outputs) -> list[str]:
    """Everything in which two runs differ, one line a difference."""
    found = differences(wheel.result, ours.result, models=not wheel.result.stopped_early)
    return [
        *found,
        *shortened("metrics", metric_differences(wheel.metrics, ours.metrics)),
        *state_differences(wheel.search, ours.search),
    ]
