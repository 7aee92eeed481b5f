"""``ResultGrid``: the trials of a ``Tuner``, with the calls that users of Ray Tune know."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.optimizing import frame_of
from onlineauto.tune.plain import number
from onlineauto.tune.study_view import rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.tune.study import Study

_NO_METRICS: Final = {"trial", "attempt", "resource", "value", "told"}
"""Columns of the history of a study that are not metrics."""
_SCOPES: Final = {"last": 1, "last-5-avg": 5, "last-10-avg": 10, "avg": 0}
"""Number of last values whose average is compared, by scope; 0 for all."""


@dataclass(frozen=True)
class Result:
    """A trial: number, config, last metrics with ``training_iteration``, and error if it failed."""

    trial: int
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    error: str


class ResultGrid(list[Result]):
    """The trials of a `Tuner`, in the order in which they began; `study` is the study."""

    def __init__(self, study: Study, metric: str, mode: str, constants: Mapping[str, Any]) -> None:
        self.study, self._metric, self._mode = study, metric, mode
        self._reports: dict[int, list[dict[str, Any]]] = defaultdict(list)
        skipped = {each.version for each in study.skipped}
        for row in rows(study._store.load(), skipped, lists=True):  # noqa: SLF001 - of the same package
            reports = self._reports[row["trial"]]
            last = reports[-1] if reports else {}
            found = {
                name: each for name, each in row.items() if name not in _NO_METRICS and name[:7] != "config_"
            }
            is_new = not (row["told"] and reports) or row["resource"] == last["training_iteration"] + 1
            if is_new:  # a job that has ended repeats its last report, at the resource that it was to reach
                found["training_iteration"] = row["resource"]
            reports[len(reports) - (not is_new) :] = [last | found | {metric: row["value"]}]
        for trial in study.trials:
            metrics = (self._reports[trial.number] or [{}])[-1]
            self.append(Result(trial.number, {**constants, **trial.config}, metrics, trial.error))

    @property
    def errors(self) -> list[str]:
        """The errors of the trials that failed."""
        return [each.error for each in self if each.error]

    def get_best_result(
        self,
        metric: str | None = None,
        mode: str | None = None,
        scope: str = "last",
        filter_nan_and_inf: bool = True,
    ) -> Result:
        """Return the trial with the best metric, also one that was stopped early; see Ray's `ResultGrid`.

        `metric` and `mode` are by default those of the `TuneConfig`. `scope` is ``last``, ``all`` or ``avg``,
        ``last-5-avg``, ``last-10-avg``. Values that are not finite are always left out. `OptionError` is
        raised if an argument is not valid, or no trial has a value.
        """
        metric, best = metric or self._metric, _best("mode", mode or self._mode)
        if scope != "all" and scope not in _SCOPES:
            raise OptionError(f"scope = {short_repr(scope)}: valid are all, {', '.join(_SCOPES)}")
        if not filter_nan_and_inf:
            raise OptionError("filter_nan_and_inf = False is not supported: NaN has no rank")
        scores: dict[int, float] = {}
        for at, found in enumerate(self._finite("metric", metric)):
            values = [row[metric] for row in found]
            if values and scope != "all":
                last = values[-_SCOPES[scope] :]
                values = [sum(last) / len(last)]
            if values:
                scores[at] = best(values)
        chosen: int = best(scores, key=scores.__getitem__)
        return self[chosen]

    def get_dataframe(self, filter_metric: str | None = None, filter_mode: str | None = None) -> Any:
        """Return a `pandas.DataFrame` with a row per trial: metrics, ``trial_id`` and ``config/…``.

        Metrics are the last ones, or those of the step where `filter_metric` was best.
        """
        chosen = [each.metrics for each in self]
        if filter_metric is not None:
            best = _best("filter_mode", filter_mode or self._mode)
            for at, found in enumerate(self._finite("filter_metric", filter_metric)):
                chosen[at] = best(found, key=lambda row: row[filter_metric], default=chosen[at])
        elif filter_mode is not None:
            raise OptionError(f"filter_mode = {short_repr(filter_mode)}: give filter_metric, too")
        return frame_of(
            {**metrics, "trial_id": each.trial} | {f"config/{name}": v for name, v in each.config.items()}
            for metrics, each in zip(chosen, self, strict=True)
        )

    def _finite(self, argument: str, metric: str) -> list[list[dict[str, Any]]]:
        """Return the reports of each trial in which a metric is a finite number; raise if there are none."""
        found = [
            [row for row in self._reports[each.trial] if isfinite(number(row.get(metric)))] for each in self
        ]
        if not any(found):
            if metric == self._metric:
                self.study.best_trial  # noqa: B018 - it raises an error with the reason
            known = ", ".join(sorted({name for each in self for name in each.metrics}))
            raise OptionError(f"{argument} = {short_repr(metric)}: no trial has reported it, but {known}")
        return found


def _best(argument: str, mode: str) -> Callable[..., Any]:
    """Return ``min`` or ``max``."""
    if mode not in ("min", "max"):
        raise OptionError(f"{argument} = {short_repr(mode)}: valid are min and max")
    return min if mode == "min" else max
