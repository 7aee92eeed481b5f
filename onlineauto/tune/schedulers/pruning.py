"""``Pruning``: stop a trial by one of the rules of Optuna's pruners.

Steps count from 0, as in Optuna's scripts: a trial at resource 1 has reported step 0.
"""

from __future__ import annotations

from bisect import insort
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self
from zlib import crc32

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.plain import count, number
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.rungs import quantile
from onlineauto.tune.schedulers.scheduler import Decision, Setting, State

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHECKS: Final = {"n_warmup_steps": 0, "interval_steps": 1}
_PATIENCE: Final = {"patience": None, "min_delta": 0.0}
_RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "percentile": {"percentile": 50.0, "n_startup_trials": 5, **_CHECKS, "n_min_trials": 1},
    "threshold": {"lower": None, "upper": None, **_CHECKS},
    "halving": {"min_resource": "auto", "reduction_factor": 4, "bootstrap_count": 0}
    | {"min_early_stopping_rate": 0},
    "hyperband": {"min_resource": 1, "max_resource": "auto", "reduction_factor": 3, "bootstrap_count": 0},
    "patience": {},
}
"""The options of each rule, with their defaults."""
_LEAST: Final = {"interval_steps": 1, "n_min_trials": 1, "min_resource": 1, "max_resource": 1} | {
    "reduction_factor": 2
}
_UNSET: Final[Mapping[str, Any]] = {
    "lower": None,
    "upper": None,
    "patience": None,
    "min_resource": "auto",
    "max_resource": "auto",
}
_NUMBERS: Final = ("percentile", "lower", "upper", "min_delta")


class Pruning(FifoScheduler):
    """Stops trials by a rule of Optuna's pruners, and never resumes them.

    ``percentile`` stops a trial whose best value is worse than this percentile of the complete trials at the
    same step; ``threshold`` one whose value is outside of bounds, which are those of losses; ``halving`` one
    that is not among the best ``1/reduction_factor`` at a rung; ``hyperband`` does the same with several
    systems of rungs; ``patience`` stops one that has not improved. With the option ``patience``, every rule
    applies only to a trial that has not improved by `min_delta` within this number of steps. With `history`
    "start", it compares with what others had reported when the trial began.

    Create it by `onlineauto.tune.pruners`, whose functions have Optuna's names and arguments.
    """

    name = "pruning"
    STATE: ClassVar = {
        "_curves": dict[int, list[tuple[int, float]]],
        "_by_step": dict[int, list[float]],
        "_rungs": dict[int, list[list[float]]],
        "_passed": dict[int, int],
        "_complete": int,
        "_furthest": int,
    }

    def __init__(self, rule: str = "percentile", *, history: str = "now", **options: Any) -> None:
        if rule not in _RULES:
            raise OptionError(f"rule = {rule!r} is unknown; valid are {', '.join(_RULES)}")
        defaults = {**_RULES[rule], **_PATIENCE}
        if unknown := [name for name in options if name not in defaults]:
            raise OptionError(f"rule {rule!r} has no option {unknown[0]!r}; it has {', '.join(defaults)}")
        checked = {name: _checked(name, options.get(name, default)) for name, default in defaults.items()}
        self.options = {"rule": rule, **checked} | self.history_option(history)
        if not 0 <= checked.get("percentile", 50) <= 100:
            raise OptionError(f"percentile = {checked['percentile']}: give a number from 0 to 100")
        if rule == "patience" and checked["patience"] is None:
            raise OptionError("rule 'patience' needs patience=, a number of steps")
        self._rule = getattr(self, f"_{rule}")

    def mirrored(self) -> Self:
        """Return the scheduler for a study that maximizes: the loss of a value is its negative."""
        if self.options["rule"] != "threshold":
            return self
        lower, upper = (
            None if (bound := self.options[name]) is None else -bound for name in ("lower", "upper")
        )
        return type(self)(**{**self.options, "lower": upper, "upper": lower})

    def begin(self, setting: Setting) -> None:  # noqa: D102
        super().begin(setting)
        self._curves: dict[int, list[tuple[int, float]]] = {}  # of running trials: steps and losses
        self._by_step: dict[int, list[float]] = {}  # of complete trials: the losses at each step, ascending
        self._rungs: dict[int, list[list[float]]] = {}  # by bracket: the losses at each rung, ascending
        self._passed: dict[int, int] = {}  # of running trials: number of rungs
        self._complete, self._furthest = 0, 0

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:  # noqa: D102
        curve = self._curves.setdefault(trial, [])
        curve.append((resource - 1, loss))
        stops = self._has_stagnated(curve) and self._rule(trial, curve)
        return Decision.STOP if stops or resource >= self.setting.max_resource else Decision.CONTINUE

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:  # noqa: D102
        curve = self._curves.pop(trial, [])
        self._passed.pop(trial, None)
        if resource >= self.setting.max_resource:
            self._complete += 1
            self._furthest = max(self._furthest, curve[-1][0] if curve else 0)
            for step, reported in curve if self.options["rule"] == "percentile" else ():
                insort(self._by_step.setdefault(step, []), reported)
        return super().on_result(trial, resource, loss)

    def on_error(self, trial: int) -> dict[int, State]:  # noqa: D102
        self._curves.pop(trial, None)
        self._passed.pop(trial, None)
        return super().on_error(trial)

    def _has_stagnated(self, curve: list[tuple[int, float]]) -> bool:
        """Return whether the trial has not improved within `patience` steps, so that the rule applies."""
        patience = self.options["patience"]
        if patience is None:
            return True
        losses = [loss for _, loss in curve]
        before, after = losses[: -patience - 1], losses[-patience - 1 :]
        return bool(before and min(before) + self.options["min_delta"] < min(after))

    def _is_due(self, curve: list[tuple[int, float]]) -> bool:
        """Return whether the last step is the first one of its interval, after the steps of warm-up."""
        warmup, interval = self.options["n_warmup_steps"], self.options["interval_steps"]
        since = curve[-1][0] - warmup
        before = curve[-2][0] if len(curve) > 1 else -1
        return bool(since >= 0 and before < since // interval * interval + warmup)

    def _patience(self, trial: int, curve: list[tuple[int, float]]) -> bool:  # noqa: ARG002
        return True

    def _threshold(self, trial: int, curve: list[tuple[int, float]]) -> bool:  # noqa: ARG002
        lower, upper = self.options["lower"], self.options["upper"]
        loss = curve[-1][1]
        outside = (lower is not None and loss < lower) or (upper is not None and loss > upper)
        return outside and self._is_due(curve)

    def _percentile(self, trial: int, curve: list[tuple[int, float]]) -> bool:  # noqa: ARG002
        others = self._by_step.get(curve[-1][0], [])
        if self._complete < self.options["n_startup_trials"] or len(others) < self.options["n_min_trials"]:
            return False
        best = min(loss for _, loss in curve)
        return self._is_due(curve) and best > quantile(others, self.options["percentile"] / 100)

    def _halving(self, trial: int, curve: list[tuple[int, float]], bracket: int = 0) -> bool:
        """Add the trial to each rung that it has reached; return whether it is not promoted from one."""
        least, eta = self.options["min_resource"], self.options["reduction_factor"]
        if least == "auto":
            if not self._complete:
                return False
            least = max(self._furthest // 100, 1)
        rungs = self._rungs.setdefault(bracket, [])
        step, loss = curve[-1]
        while step >= least * eta ** (
            self.options.get("min_early_stopping_rate", 0) + bracket + (rung := self._passed.get(trial, 0))
        ):
            if rung == len(rungs):
                rungs.append([])
            insort(rungs[rung], loss)
            self._passed[trial] = rung + 1
            n = len(rungs[rung])
            if n <= self.options["bootstrap_count"] or loss > rungs[rung][max(n // eta, 1) - 1]:
                return True
        return False

    def _hyperband(self, trial: int, curve: list[tuple[int, float]]) -> bool:
        most, eta = self.options["max_resource"], self.options["reduction_factor"]
        if most == "auto":
            if not self._complete:
                return False
            most = self._furthest + 1
        n_brackets = int(log(max(most / self.options["min_resource"], 1), eta) + 1e-9) + 1
        # Each bracket has the share of the trials that gives all brackets about the same budget.
        shares = [-(-n_brackets * eta**kind // (kind + 1)) for kind in reversed(range(n_brackets))]
        place = crc32(f"{self.setting.seed} {trial}".encode()) % sum(shares)
        bracket = 0
        while place >= shares[bracket]:
            place -= shares[bracket]
            bracket += 1
        return self._halving(trial, curve, bracket)


def _checked(name: str, value: Any) -> Any:
    if name in _UNSET and value == _UNSET[name]:
        return value
    if name not in _NUMBERS:
        return count(name, value, _LEAST.get(name, 0))
    if number(value) != number(value) or isinstance(value, bool):
        raise OptionError(f"{name} = {short_repr(value)}: give a number")
    return number(value)
