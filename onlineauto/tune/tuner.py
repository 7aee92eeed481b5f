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

import builtins
import logging
import os
import pickle
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from onlineauto.errors import OptionError, kind_of, short_repr
from onlineauto.tune.plain import count, number
from onlineauto.tune.replica import rows
from onlineauto.tune.schedulers import SCHEDULERS, State
from onlineauto.tune.searchers.random import RandomSearcher
from onlineauto.tune.settings import UNLIMITED
from onlineauto.tune.spaces import Categorical, Float, Int, Parameter
from onlineauto.tune.study import Study
from onlineauto.tune.study_view import frame_of
from onlineauto.tune.workers.hooks import Timeout
from onlineauto.tune.workers.resources import RayWorkers
from onlineauto.tune.workers.running import EXECUTORS
from onlineauto.tune.workers.trainable import Report, Trainable, name_of_trainable

if TYPE_CHECKING:
    from onlineauto.tune.trial import Trial


__all__ = [
    "CheckpointConfig",
    "FailureConfig",
    "ResultGrid",
    "RunConfig",
    "Trainable",
    "TrialError",
    "TuneConfig",
    "Tuner",
    "report",
    "saved",
]

_LOG: Final = logging.getLogger("onlineauto")
_NUMBER: Final = "_metric"
"""The metric of a trainable that returns a number, as in Ray."""
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
    error: TrialError | None


class TrialError(Exception):
    """The error of a trial, also an instance of the error's class if that is one of Python's own."""

    traceback: str = ""

    @classmethod
    def of(cls, trial: Trial) -> TrialError | None:
        """Return the error of a trial; None if the trial has not failed."""
        if trial.state is not State.ERRORED:
            return None  # also if a later attempt has succeeded
        name, _, message = trial.error.partition(": ")
        kind = getattr(builtins, name, None)
        error = cls(trial.error)
        others = UnicodeError, BaseExceptionGroup  # whose arguments are not a message
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, others):
            error = type(name, (cls, kind), {})(message)
        error.traceback = trial.traceback
        return error


class ResultGrid(list[Result]):
    """The trials of a `Tuner`, in the order in which they began; `study` is the study."""

    def __init__(
        self, study: Study, metric: str | None, mode: str | None, constants: Mapping[str, Any]
    ) -> None:
        self.study, self._metric, self._mode = study, metric, mode
        self._reports: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in rows(study._replica.records(), lists=True):  # noqa: SLF001 - of the same package
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
            value = {} if metric is None else {metric: row["value"]}
            reports[len(reports) - (not is_new) :] = [last | metrics | value]
        for trial in study.trials:
            metrics = (self._reports[trial.number] or [{}])[-1]
            config = {**constants, **trial.config}
            self.append(Result(trial.number, config, metrics, TrialError.of(trial)))
        names = {name for result in self for name in result.metrics} - {"training_iteration"}
        if metric is None and len(names) == 1:
            [self._metric] = names

    @property
    def errors(self) -> list[TrialError]:
        """The errors of the trials that failed."""
        return [result.error for result in self if result.error is not None]

    def get_best_result(
        self,
        metric: str | None = None,
        mode: str | None = None,
        scope: str = "last",
        filter_nan_and_inf: bool = True,
    ) -> Result:
        """Return the trial with the best metric, also one that was stopped early; see Ray's `ResultGrid`.

        `metric` and `mode` are by default those of the `TuneConfig`; without one there, `metric` is the only
        one that trials have reported, and `mode` has to be given. `scope` is ``last``, ``all`` or ``avg``,
        ``last-5-avg``, ``last-10-avg``. Values that are not finite are always left out. `OptionError` is
        raised if an argument is not valid, or no trial has a value.
        """
        metric, best = metric or self._metric, _best("mode", mode or self._mode)
        if metric is None:
            raise OptionError("metric = None: trials have reported several metrics; name one of them")
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


def _best(argument: str, mode: str | None) -> Callable[..., Any]:
    """Return ``min`` or ``max``."""
    if mode not in ("min", "max"):
        raise OptionError(f"{argument} = {short_repr(mode)}: valid are min and max")
    return min if mode == "min" else max


def randint(lower: int, upper: int) -> Int:
    """Return a whole number from `lower` to ``upper - 1``."""
    return Int(lower, upper - 1)


class grid_search(Categorical):  # noqa: N801 - Ray's name
    """Values that take turns, with those of other grids: all combinations are tried `num_samples` times."""


def with_resources(trainable: Any, resources: Mapping[str, float]) -> Any:
    """Return a trainable whose trials need resources, such as ``{"cpu": 2}``; ``gpu`` needs Ray."""
    return trainable, {name.upper(): amount for name, amount in resources.items()}


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
    """The metric and its mode, the number of trials, how they are chosen, and where they run.

    Trials run in parallel: in `max_concurrent_trials` processes, by default as many as there are processors,
    or with ``executor="ray"`` in actors of a Ray cluster. 1 runs them in this process, and so does a function
    that cannot be sent to others, with a warning. (The package cloudpickle, of the extra ``tune``, sends
    functions of a script and of other functions.) `metric` and `mode` may be left out if there is no
    `scheduler`; then configs are random. Otherwise the default of `search_alg` is ``auto``.
    """

    metric: str | None = None
    mode: str | None = None
    num_samples: int = 1
    max_concurrent_trials: int | None = None
    scheduler: FIFOScheduler | None = None
    search_alg: Any = None
    time_budget_s: float | timedelta | None = None
    executor: str = "processes"


@dataclass(frozen=True, kw_only=True)
class FailureConfig:
    """The number of times that a failed trial is tried again; -1 for any number."""

    max_failures: int = 0


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """The number of steps between two checkpoints; the last one is kept, and always saved at the end."""

    checkpoint_frequency: int = 0
    checkpoint_at_end: bool | None = None


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The name of the study, its store (a URL, or a folder), and the number of steps of a trial.

    `verbose` has no effect: nothing is printed.
    """

    name: str | None = None
    storage_path: str | Path | None = None
    stop: Mapping[str, int] | None = None
    failure_config: FailureConfig | None = None
    checkpoint_config: CheckpointConfig | None = None
    verbose: int | None = None


_CURRENT: ContextVar[tuple[Report, str | None]] = ContextVar("onlineauto_trial")


def report(metrics: Mapping[str, Any], *, save: Any = None) -> None:
    """Report the metrics after one more step, and maybe a checkpoint; end the function if its trial ends.

    Raises
    ------
    OptionError
        If no trial is running, or the metric of the `TuneConfig` is missing.
    """
    running, metric = _running()
    if metric is None and isinstance(metrics, dict):
        metric = next((name for name, value in metrics.items() if isfinite(number(value))), None)
    if not isinstance(metrics, dict) or metric is None or metric not in metrics:
        raise OptionError(f"report({short_repr(metrics)}): give a dict with the metric {metric!r}")
    running(metrics[metric], save=save, details=dict(metrics))


def saved() -> Any:
    """Return the last checkpoint of the running trial, as it was passed to `report`; None at first."""
    return _running()[0].saved


def _running() -> tuple[Report, str | None]:
    try:
        return _CURRENT.get()
    except LookupError:
        raise OptionError("no trial is running: only the function of a Tuner may call this") from None


@dataclass(frozen=True)
class _Reporting:
    """A function of a config that calls `report`, or a class, as a function that a study can run."""

    trainable: Callable[..., Any] | type[Any]
    constants: Mapping[str, Any]
    metric: str | None

    def __reduce__(self) -> tuple[Callable[..., _Reporting], tuple[Any, ...]]:
        """Send a function that no other process can import as its code, packed by cloudpickle."""
        if not self.can_be_imported and find_spec("cloudpickle"):
            import cloudpickle

            # Compressed, so that the name __main__ in it does not make a worker run the script again.
            return _unpack, (zlib.compress(cloudpickle.dumps((self.trainable, self.constants))), self.metric)
        return _Reporting, (self.trainable, self.constants, self.metric)

    @property
    def can_be_imported(self) -> bool:
        """True if another process can import the trainable by its name."""
        return name_of_trainable(self.trainable) is not None

    def __call__(self, config: Mapping[str, Any], resource: int, running: Report) -> None:
        token = _CURRENT.set((running, self.metric))
        config = {**self.constants, **config}
        try:
            if not isinstance(self.trainable, type):
                if (result := self.trainable(config)) is not None:
                    report(result if isinstance(result, dict) else {self.metric or _NUMBER: result})
                return
            trained = self.trainable()
            trained.setup(config)
            if running.saved is not None:
                trained.load(running.saved)
            while running.step < resource:
                report(trained.step(), save=trained.save)
        finally:
            _CURRENT.reset(token)


def _unpack(packed: bytes, metric: str | None) -> _Reporting:
    trainable, constants = pickle.loads(zlib.decompress(packed))  # noqa: S301 - from our own parent
    return _Reporting(trainable, constants, metric)


class Tuner:
    """Runs trials of a function or a class in parallel, as Ray Tune does; see `TuneConfig`.

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
        resourced: Any = trainable  # perhaps a pair of `with_resources`
        trainable, self._needs = resourced if isinstance(resourced, tuple) else (resourced, {})
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
        guided = metric is not None and mode is not None
        if not guided and (scheduler.name != "fifo" or config.search_alg not in (None, "random")):
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
        most = UNLIMITED if limit is None else limit
        if limit is None and isinstance(trainable, type):
            raise OptionError('no limit on steps: give RunConfig(stop={"training_iteration": N})')
        if not isinstance(param_space, Mapping):
            raise OptionError(f"param_space is {kind_of(param_space)}: give parameters by their names")
        if nested := [name for name, value in param_space.items() if isinstance(value, Mapping)]:
            raise OptionError(f"param_space[{nested[0]!r}] is a mapping: give its entries names of their own")
        space = {name: value for name, value in param_space.items() if isinstance(value, Parameter)}
        constants = {name: value for name, value in param_space.items() if name not in space}
        if not space:  # for example with {"rate": 0.1}: all trials have the same config
            space = {name: Categorical([value]) for name, value in constants.items()}
        grid = {name: len(values.values) for name, values in space.items() if isinstance(values, grid_search)}
        if grid and config.search_alg not in (None, "random"):
            raise OptionError(f"search_alg = {short_repr(config.search_alg)}: grid_search needs random")
        searcher = config.search_alg or (None if guided and not grid else "random")
        self._metric, self._mode, self._trainable = metric, mode, _Reporting(trainable, constants, metric)
        self._executor = config.executor
        if config.executor not in EXECUTORS:
            raise OptionError(f"executor = {short_repr(config.executor)}: valid are {', '.join(EXECUTORS)}")
        if self._needs.get("GPU") and config.executor != "ray":
            raise OptionError('with_resources: gpu needs TuneConfig(executor="ray")')
        workers = config.max_concurrent_trials
        self._count = 0 if workers is None else count("max_concurrent_trials", workers, 0)
        failures, saving = run.failure_config or FailureConfig(), run.checkpoint_config or CheckpointConfig()
        for argument, value, kind in (
            ("failure_config", failures, FailureConfig),
            ("checkpoint_config", saving, CheckpointConfig),
        ):
            if not isinstance(value, kind):
                raise OptionError(f"{argument} = {short_repr(value)}: give a {kind.__name__} of this module")
        self._every = count("checkpoint_frequency", saving.checkpoint_frequency, 0) or 1
        retries = failures.max_failures
        budget = config.time_budget_s
        self._seconds = budget.total_seconds() if isinstance(budget, timedelta) else budget
        if budget is not None and not number(self._seconds) > 0:
            raise OptionError(f"time_budget_s = {short_repr(budget)}: give a number of seconds above 0")
        samples = None if config.num_samples == -1 else count("num_samples", config.num_samples, 1)
        if samples is not None:
            samples *= prod(grid.values())
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
        grace = count("grace_period", getattr(scheduler, "grace_period", 1), 1)
        eta = count("reduction_factor", getattr(scheduler, "reduction_factor", 3), 2)
        algorithm = scheduler.name
        if algorithm != "median" and grace * eta > most and limits["stop"] == most:
            algorithm, options = "fifo", {}  # `stop` ends trials before they are compared
        self.study = Study(
            space,
            SCHEDULERS[algorithm](**options),
            RandomSearcher([*grid]) if grid else searcher,
            mode=mode or "min",
            retries=UNLIMITED if retries == -1 else count("max_failures", retries, 0),
            min_resource=min(grace, most),
            eta=eta,
            max_resource=most,
            max_trials=samples,
            name=str(name),
            storage=None if url is None else str(url),
        )

    def fit(self) -> ResultGrid:
        """Run all trials and return them; an existing study of this name in the store is continued."""
        stoppers = [] if self._seconds is None else [Timeout(self._seconds)]
        run = partial(self.study.run, self._trainable, checkpoint_every=self._every, stoppers=stoppers)
        cpus = max(self._needs.get("CPU", 1), 1e-9)
        if self._executor == "ray":
            from onlineauto.work.on_ray import imported_ray, ray_connection

            with ray_connection(None):
                available = imported_ray().cluster_resources().get("CPU", 1) // cpus
                run(workers=RayWorkers(self._at_once(available), needs=self._needs), executor="ray")
        else:
            workers = self._at_once((os.cpu_count() or 1) // cpus)
            run(workers=workers if workers > 1 and self._can_be_sent() else 0)
        return ResultGrid(self.study, self._metric, self._mode, self._trainable.constants)

    def _at_once(self, available: float) -> int:
        """Return the number of trials that run at once."""
        most = self.study.settings.max_trials
        return min(self._count or max(int(available), 1), UNLIMITED if most is None else most)

    def _can_be_sent(self) -> bool:
        """Return whether other processes can run the trainable; warn if not, unless they were requested."""
        reason: object = "install cloudpickle, of the extra tune"
        try:
            if self._count or self._trainable.can_be_imported:
                return True
            if find_spec("cloudpickle"):
                return bool(pickle.dumps(self._trainable))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            reason = error
        function = self._trainable.trainable
        _LOG.warning("trials run one by one, since %r cannot be sent to processes: %s", function, reason)
        return False
