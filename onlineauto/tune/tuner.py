"""``Tuner``: the calls that users of Ray Tune know, on a `Study`.

``from onlineauto.tune import tuner as tune`` replaces ``from ray import tune``.

>>> def train(config):
...     for step in range(9):
...         report({"loss": abs(config["rate"] - 0.1) + 1 / (step + 1)})
>>> tuner = Tuner(
...     train,
...     param_space={"rate": loguniform(1e-4, 1)},
...     tune_config=TuneConfig(metric="loss", mode="min", num_samples=8),
... )
>>> results = tuner.fit()
>>> len(results), results.get_best_result().metrics["training_iteration"]
(8, 9)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from onlineauto.errors import OptionError, kind_of, short_repr
from onlineauto.tune.plain import count, number
from onlineauto.tune.schedulers import SCHEDULERS
from onlineauto.tune.settings import UNLIMITED
from onlineauto.tune.spaces import Categorical, Float, Int, Parameter
from onlineauto.tune.study import Study
from onlineauto.tune.study_view import frame_of, rows
from onlineauto.tune.workers.hooks import Timeout
from onlineauto.tune.workers.trainable import Report, Trainable

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["ResultGrid", "RunConfig", "Trainable", "TuneConfig", "Tuner", "report", "saved"]

uniform, loguniform, choice = Float, partial(Float, log=True), Categorical

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
        for row in rows(study._applied_records(), lists=True):  # noqa: SLF001 - of the same package
            reports = self._reports[row["trial"]]
            last = reports[-1] if reports else {}
            metrics = {
                name: value
                for name, value in row.items()
                if name not in _NO_METRICS and name[:7] != "config_"
            }
            is_new = not (row["told"] and reports) or row["resource"] == last["training_iteration"] + 1
            if is_new:  # a job that has ended repeats its last report, at the resource that it was to reach
                metrics["training_iteration"] = row["resource"]
            reports[len(reports) - (not is_new) :] = [last | metrics | {metric: row["value"]}]
        for trial in study.trials:
            metrics = (self._reports[trial.number] or [{}])[-1]
            self.append(Result(trial.number, {**constants, **trial.config}, metrics, trial.error))

    @property
    def errors(self) -> list[str]:
        """The errors of the trials that failed."""
        return [result.error for result in self if result.error]

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
        for index, reports in enumerate(self._finite("metric", metric)):
            values = [row[metric] for row in reports]
            if values and scope != "all":
                last = values[-_SCOPES[scope] :]
                values = [sum(last) / len(last)]
            if values:
                scores[index] = best(values)
        chosen: int = best(scores, key=scores.__getitem__)
        return self[chosen]

    def get_dataframe(self, filter_metric: str | None = None, filter_mode: str | None = None) -> Any:
        """Return a `pandas.DataFrame` with a row per trial: metrics, ``trial_id`` and ``config/…``.

        Metrics are the last ones, or those of the step where `filter_metric` was best.
        """
        chosen = [result.metrics for result in self]
        if filter_metric is not None:
            best = _best("filter_mode", filter_mode or self._mode)
            for index, reports in enumerate(self._finite("filter_metric", filter_metric)):
                chosen[index] = best(reports, key=lambda row: row[filter_metric], default=chosen[index])
        elif filter_mode is not None:
            raise OptionError(f"filter_mode = {short_repr(filter_mode)}: give filter_metric, too")
        return frame_of(
            {**metrics, "trial_id": result.trial} | {f"config/{name}": v for name, v in result.config.items()}
            for metrics, result in zip(chosen, self, strict=True)
        )

    def _finite(self, argument: str, metric: str) -> list[list[dict[str, Any]]]:
        """Return the reports of each trial in which a metric is a finite number; raise if there are none."""
        reports = [
            [row for row in self._reports[result.trial] if isfinite(number(row.get(metric)))]
            for result in self
        ]
        if not any(reports):
            if metric == self._metric:
                self.study.best_trial  # noqa: B018 - it raises an error with the reason
            names = ", ".join(sorted({name for result in self for name in result.metrics}))
            raise OptionError(f"{argument} = {short_repr(metric)}: no trial has reported it, but {names}")
        return reports


def _best(argument: str, mode: str) -> Callable[..., Any]:
    """Return ``min`` or ``max``."""
    if mode not in ("min", "max"):
        raise OptionError(f"{argument} = {short_repr(mode)}: valid are min and max")
    return min if mode == "min" else max


def randint(lower: int, upper: int) -> Int:
    """Return a whole number from `lower` to ``upper - 1``."""
    return Int(lower, upper - 1)


@dataclass(frozen=True)
class FIFOScheduler:
    """Runs all trials to the end. Base class of schedulers with the arguments that they have in Ray."""

    name: ClassVar[str] = "fifo"
    time_attr: str = "training_iteration"
    metric: str | None = None
    mode: str | None = None


@dataclass(frozen=True)
class ASHAScheduler(FIFOScheduler):
    """Stops a trial at a rung, unless it is among the best ``1 / reduction_factor`` that have reached it."""

    name = "asha"
    max_t: int = 100
    grace_period: int = 1
    reduction_factor: int = 4


@dataclass(frozen=True)
class HyperBandScheduler(FIFOScheduler):
    """Hyperband."""

    name = "hyperband"
    max_t: int = 81
    reduction_factor: int = 3


@dataclass(frozen=True)
class MedianStoppingRule(FIFOScheduler):
    """Stops a trial whose average is worse than the median of others; `grace_period` counts steps."""

    name = "median"
    grace_period: int = 1
    min_samples_required: int = 3


AsyncHyperBandScheduler = ASHAScheduler


@dataclass(frozen=True, kw_only=True)
class TuneConfig:
    """The metric and its mode, the number of trials, and how they are chosen.

    With `max_concurrent_trials`, trials run in up to that number of processes, which must be able to import
    the trainable; by default they run in this process. The default of `search_alg` is ``tpe``.
    """

    metric: str | None = None
    mode: str | None = None
    num_samples: int = 1
    max_concurrent_trials: int | None = None
    scheduler: FIFOScheduler | None = None
    search_alg: Any = None
    time_budget_s: float | timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The name of the study, its store (a URL, or a folder), and the number of steps of a trial."""

    name: str | None = None
    storage_path: str | Path | None = None
    stop: Mapping[str, int] | None = None


_CURRENT: ContextVar[tuple[Report, str]] = ContextVar("onlineauto_trial")


def report(metrics: Mapping[str, Any], *, save: Any = None) -> None:
    """Report the metrics after one more step, and maybe a checkpoint; end the function if its trial ends.

    Raises
    ------
    OptionError
        If no trial is running, or the metric of the `TuneConfig` is missing.
    """
    running, metric = _running()
    if not isinstance(metrics, dict) or metric not in metrics:
        raise OptionError(f"report({short_repr(metrics)}): give a dict with the metric {metric!r}")
    running(metrics[metric], save=save, details=dict(metrics))


def saved() -> Any:
    """Return the last checkpoint of the running trial, as it was passed to `report`; None at first."""
    return _running()[0].saved


def _running() -> tuple[Report, str]:
    try:
        return _CURRENT.get()
    except LookupError:
        raise OptionError("no trial is running: only the function of a Tuner may call this") from None


@dataclass(frozen=True)
class _Reporting:
    """A function of a config that calls `report`, or a class, as a function that a study can run."""

    trainable: Callable[..., Any] | type[Any]
    constants: Mapping[str, Any]
    metric: str

    def __call__(self, config: Mapping[str, Any], resource: int, running: Report) -> None:
        token = _CURRENT.set((running, self.metric))
        config = {**self.constants, **config}
        try:
            if not isinstance(self.trainable, type):
                if (result := self.trainable(config)) is not None:
                    report(result)
                return
            trained = self.trainable()
            trained.setup(config)
            if running.saved is not None:
                trained.load(running.saved)
            while running.step < resource:
                report(trained.step(), save=trained.save)
        finally:
            _CURRENT.reset(token)


class Tuner:
    """Runs trials of a function or a class, as Ray Tune does, in this process or in worker processes.

    Parameters
    ----------
    trainable : callable or class
        A function of a config that calls `report`, or returns its metrics; or a `Trainable` whose ``step``
        returns metrics.
    param_space : mapping
        `uniform`, `loguniform`, `randint`, `choice`, any `Parameter`, or constants.
    tune_config, run_config : TuneConfig, RunConfig
        What to optimize and how; where to store it, and when trials end.

    Raises
    ------
    OptionError
        If an argument is not valid, or nothing ends a trial.
    """

    def __init__(
        self,
        trainable: Callable[..., Any] | type[Any],
        *,
        param_space: Mapping[str, Any],
        tune_config: TuneConfig | None = None,
        run_config: RunConfig | None = None,
    ) -> None:
        config, run = tune_config or TuneConfig(), run_config or RunConfig()
        scheduler = FIFOScheduler() if config.scheduler is None else config.scheduler
        if not isinstance(scheduler, FIFOScheduler):
            raise OptionError(
                f"scheduler = {short_repr(scheduler)}: give one of this module, such as ASHAScheduler()"
            )
        if scheduler.time_attr != "training_iteration":
            raise OptionError(f"time_attr = {short_repr(scheduler.time_attr)}: valid is training_iteration")
        for name in ("metric", "mode"):
            configured, scheduled = getattr(config, name), getattr(scheduler, name)
            if None not in (configured, scheduled) and configured != scheduled:
                raise OptionError(
                    f"TuneConfig({name}={configured!r}), but the scheduler has {scheduled!r}: give one"
                )
        metric, mode = config.metric or scheduler.metric, config.mode or scheduler.mode
        if metric is None or mode is None:
            raise OptionError(
                f'metric = {metric!r}, mode = {mode!r}: give TuneConfig(metric="loss", mode="min")'
            )
        stop: Any = {} if run.stop is None else run.stop
        if not isinstance(stop, Mapping) or {*stop} - {"training_iteration"}:
            raise OptionError(f"stop = {short_repr(stop)}: valid is training_iteration")
        limits = {"stop": stop.get("training_iteration"), "max_t": getattr(scheduler, "max_t", None)}
        limit = min(
            (count(name, limit, 1) for name, limit in limits.items() if limit is not None), default=None
        )
        if limit is None and isinstance(trainable, type):
            raise OptionError('no limit on steps: give RunConfig(stop={"training_iteration": N})')
        if not isinstance(param_space, Mapping):
            raise OptionError(f"param_space is {kind_of(param_space)}: give parameters by their names")
        if nested := [name for name, value in param_space.items() if isinstance(value, Mapping)]:
            raise OptionError(f"param_space[{nested[0]!r}] is a mapping: give its entries names of their own")
        space = {name: value for name, value in param_space.items() if isinstance(value, Parameter)}
        constants = {name: value for name, value in param_space.items() if name not in space}
        self._metric, self._mode, self._trainable = metric, mode, _Reporting(trainable, constants, metric)
        workers = config.max_concurrent_trials
        self._workers = 0 if workers is None else count("max_concurrent_trials", workers, 0)
        budget = config.time_budget_s
        self._seconds = budget.total_seconds() if isinstance(budget, timedelta) else budget
        if budget is not None and not number(self._seconds) > 0:
            raise OptionError(f"time_budget_s = {short_repr(budget)}: give a number of seconds above 0")
        samples = None if config.num_samples == -1 else count("num_samples", config.num_samples, 1)
        url, name = run.storage_path, "study" if run.name is None else run.name
        for argument, text in (("name", name), ("storage_path", url)):
            if not isinstance(text, str | Path | None):
                raise OptionError(f"{argument} = {short_repr(text)}: give a text")
        if url is not None and "://" not in str(url):
            folder = Path(url).expanduser().resolve()
            folder.mkdir(parents=True, exist_ok=True)
            url = f"sqlite:///{folder / name}.db"
        options: dict[str, Any] = {"variant": "stopping"} if scheduler.name == "asha" else {}
        if (enough := getattr(scheduler, "min_samples_required", None)) is not None:
            options["grace_population"] = count("min_samples_required", enough, 1)
        self.study = Study(
            space,
            SCHEDULERS[scheduler.name](**options),
            config.search_alg,
            mode=mode,
            min_resource=count("grace_period", getattr(scheduler, "grace_period", 1), 1),
            eta=count("reduction_factor", getattr(scheduler, "reduction_factor", 3), 2),
            max_resource=UNLIMITED if limit is None else limit,
            max_trials=samples,
            name=str(name),
            storage=None if url is None else str(url),
        )

    def fit(self) -> ResultGrid:
        """Run all trials and return them; an existing study of this name in the store is continued."""
        workers = self._workers if self._workers > 1 else 0
        stoppers = [] if self._seconds is None else [Timeout(self._seconds)]
        self.study.run(self._trainable, workers=workers, stoppers=stoppers)
        return ResultGrid(self.study, self._metric, self._mode, self._trainable.constants)
