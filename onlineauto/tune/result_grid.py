"""``ResultGrid``: the trials of a ``Tuner``, with the calls that users of Ray Tune know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onlineauto.tune.optimizing import frame_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.tune.study import Study

_NO_METRICS = {"trial", "attempt", "resource", "value", "told"}
"""Columns of the history of a study that are not metrics."""


@dataclass(frozen=True)
class Result:
    """A trial: number, config, last metrics with ``training_iteration``, and error if it failed."""

    trial: int
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    error: str


class ResultGrid(list[Result]):
    """The trials of a `Tuner`, in the order in which they began; `study` is the study."""

    def __init__(self, study: Study, metric: str, constants: Mapping[str, Any]) -> None:
        self.study = study
        last: dict[int, dict[str, Any]] = {}
        for row in study.history():
            found = {
                name: each for name, each in row.items() if name not in _NO_METRICS and name[:7] != "config_"
            }
            step = last.get(row["trial"], {}).get("training_iteration", 0)
            if row["resource"] <= step + 1:  # a function that ends early is told at the resource of its job
                found["training_iteration"] = row["resource"]
            last[row["trial"]] = last.get(row["trial"], {}) | found | {metric: row["value"]}
        for each in study.trials:
            self.append(
                Result(each.number, {**constants, **each.config}, last.get(each.number, {}), each.error)
            )

    @property
    def errors(self) -> list[str]:
        """The errors of the trials that failed."""
        return [each.error for each in self if each.error]

    def get_best_result(self) -> Result:
        """Return the best trial; raise `OptionError` if no trial has a value."""
        best = self.study.best_trial.number
        return next(each for each in self if each.trial == best)

    def get_dataframe(self) -> Any:
        """Return a `pandas.DataFrame` with a row per trial: metrics, ``trial_id`` and ``config/…``."""
        return frame_of(
            {**each.metrics, "trial_id": each.trial}
            | {f"config/{name}": v for name, v in each.config.items()}
            for each in self
        )
