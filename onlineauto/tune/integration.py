"""Callbacks that prune a trial while LightGBM or XGBoost train its model, by the names of Optuna's.

The libraries are no dependencies: install the one that you use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError, PackageError
from onlineauto.tune.active_trial import ActiveTrial, TrialPruned

if TYPE_CHECKING:
    from collections.abc import Mapping


class LightGBMPruningCallback:
    """Report a metric of LightGBM after each round, and end the training if the trial should be pruned.

    Pass it to ``lightgbm.train``, ``lightgbm.cv`` or ``fit`` in ``callbacks``.

    Parameters
    ----------
    trial : ActiveTrial
        The argument of the objective.
    metric : str
        The name of the metric, such as ``auc``.
    valid_name : str
        The name of the evaluated set; ``lightgbm.cv`` has one, which is always taken.
    report_interval : int
        Number of rounds from one report to the next.

    Raises
    ------
    OptionError
        If there is no such metric, or higher values of it are better and the study minimizes, or vice versa.
    """

    def __init__(
        self, trial: ActiveTrial, metric: str, valid_name: str = "valid_0", report_interval: int = 1
    ) -> None:
        self._trial, self._metric, self._valid_name = trial, metric, valid_name
        self._interval = report_interval

    def __call__(self, env: Any) -> None:
        """Receive the state of the training after a round."""
        if (env.iteration + 1) % self._interval:
            return
        is_cv = bool(env.evaluation_result_list) and len(env.evaluation_result_list[0]) == 5
        for valid_name, metric, value, higher_is_better, *_ in env.evaluation_result_list:
            name = metric.split(" ")[-1]  # LightGBM 3 has "valid auc"
            if name == self._metric and (valid_name == self._valid_name or (is_cv and valid_name != "train")):
                if higher_is_better is not self._trial.maximizes:
                    goal = "maximize" if higher_is_better else "minimize"
                    raise OptionError(f"metric = {self._metric!r} needs a study of direction={goal!r}")
                _report(self._trial, value, env.iteration)
                return
        names = [f"{result[0]}: {result[1]}" for result in env.evaluation_result_list]
        raise OptionError(
            f"valid_name = {self._valid_name!r}, metric = {self._metric!r}: "
            f"the training evaluates {', '.join(names) or 'nothing'}"
        )


def XGBoostPruningCallback(trial: ActiveTrial, observation_key: str) -> Any:  # noqa: N802 - the name in Optuna
    """Return a callback of XGBoost that reports a metric after each round, and ends a trial by pruning.

    Parameters
    ----------
    trial : ActiveTrial
        The argument of the objective.
    observation_key : str
        The name of the evaluated set and the metric, such as ``validation-auc``; ``test-auc`` in
        ``xgboost.cv``.

    Raises
    ------
    PackageError
        If XGBoost is not installed.
    OptionError
        If there is no such metric.
    """
    try:
        from xgboost.callback import TrainingCallback
    except ImportError as error:
        raise PackageError("XGBoostPruningCallback needs the package xgboost: pip install xgboost") from error

    class PruningCallback(TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Any]) -> bool:
            del model
            values = {
                f"{data}-{metric}": log for data, logs in evals_log.items() for metric, log in logs.items()
            }
            if observation_key not in values:
                evaluated = ", ".join(values) or "nothing"
                raise OptionError(
                    f"observation_key = {observation_key!r}: the training evaluates {evaluated}"
                )
            last = values[observation_key][-1]
            _report(trial, last[0] if isinstance(last, tuple) else last, epoch)  # cv: mean and deviation
            return False

    return PruningCallback()


def _report(trial: ActiveTrial, value: float, step: int) -> None:
    trial.report(value, step)
    if trial.should_prune():
        raise TrialPruned(f"the trial was pruned at round {step}")
