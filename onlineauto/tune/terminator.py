"""``Terminator``: end a study when another improvement is proved to be improbable.

Each trial that ends is an observation: 1 if it improves on the best value of all earlier trials by more than
`min_improvement`, 0 otherwise. A confidence sequence bounds the mean probability of an improvement over all
trials since trial 1, 2, 4, 8, …; the bounds hold at all times at once.

*Guarantee.* If configs are drawn independently, as by ``random``, the probability of an improvement never
increases. It is then at most its mean over earlier trials, and so, with probability `confidence`, a study is
ended only if the next trial improves the best value with a probability of at most `chance`. A searcher that
learns may improve its proposals, for which this is a rule of thumb.

Source: Howard, Ramdas, McAuliffe, Sekhon, *Time-uniform, nonparametric, nonasymptotic confidence sequences*,
2021; see `onlineauto.estimators.interval_kernels`.
"""

from __future__ import annotations

from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import OptionError
from onlineauto.tune.plain import number
from onlineauto.tune.schedulers import State
from onlineauto.tune.workers.hooks import Stopper

if TYPE_CHECKING:
    from onlineauto.tune.study_view import StudyView


class Terminator(Stopper):
    """Ends a study when the next trial improves the best value with a probability of at most `chance`.

    Pass it to ``optimize(callbacks=[…])`` or ``run(stoppers=[…])``. The proof is valid at any time if
    configs are drawn independently, as by ``random``; with other searchers, it is a rule of thumb.

    Parameters
    ----------
    min_improvement : float
        The improvement of the value that matters.
    chance : float
        The probability of such an improvement by one trial that is too small to go on.
    confidence : float
        The probability that the proof holds, at all times at once.

    >>> from onlineauto.tune import create_study
    >>> study = create_study(searcher="random")
    >>> rule = Terminator(min_improvement=0.01)
    >>> study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=500, callbacks=[rule])
    >>> 50 < len(study.trials) < 200, rule.bound <= 0.1
    (True, True)
    """

    def __init__(
        self, min_improvement: float = 0.0, *, chance: float = 0.1, confidence: float = 0.95
    ) -> None:
        for name, value in (("chance", chance), ("confidence", confidence)):
            if not 0 < number(value) < 1:
                raise OptionError(f"{name} = {value!r}: give a probability above 0 and below 1")
        if not 0 <= number(min_improvement) < inf:
            raise OptionError(f"min_improvement = {min_improvement!r}: give a number of at least 0")
        self._least, self._chance, self._alpha = float(min_improvement), float(chance), 1 - float(confidence)
        self._lock = Lock()
        self._watch(None)

    def _watch(self, study: StudyView | None) -> None:
        """Begin to observe a study."""
        self._study = study
        self._seen: set[int] = set()
        self._version = -1
        self._best = inf
        self._improvements: list[int] = []  # after each trial: the number of improvements so far
        self.bound = 1.0
        """The upper bound of the probability that the next trial improves the best value."""

    def on_begin(self, study: Any) -> None:
        """Receive the study before a run.

        Raises
        ------
        OptionError
            If the study has several objectives.
        """
        with self._lock:
            if study is self._study:
                return
            if len(study._replica.progress.objectives) > 1:  # noqa: SLF001 - of the same package
                raise OptionError("a Terminator needs a study with one objective")
            self._watch(study)

    def ends_run(self) -> bool:
        """Return whether the bound is at most `chance`."""
        with self._lock:
            self._observe()
        return self.bound <= self._chance

    def __call__(self, study: Any, trial: Any) -> None:
        """Stop a study of an objective if the bound is at most `chance`."""
        del trial
        self.on_begin(study)
        if self.ends_run():
            study.stop()

    def _observe(self) -> None:
        """Add the trials that have ended since the last call, and update the bound."""
        if self._study is None:
            return
        progress = self._study._replica.progress  # noqa: SLF001 - of the same package
        if progress.version == self._version:
            return
        self._version, sign = progress.version, next(iter(progress.objectives.values()))
        most = progress.scheduler.setting.max_resource
        for trial in [*progress.trials.values()]:
            if trial.number in self._seen or trial.state not in (State.TERMINATED, State.ERRORED):
                continue
            self._seen.add(trial.number)
            loss = sign * trial.value if trial.resource >= most and trial.value is not None else inf
            if self._best < inf:
                improves = loss < self._best - self._least
                self._improvements.append((self._improvements or [0])[-1] + improves)
            self._best = min(self._best, loss)
        self.bound = min([1.0, *self._bounds()])

    def _bounds(self) -> list[float]:
        """Return the bound of each start: after 0, 1, 3, 7, … observations."""
        from onlineauto.estimators.interval_kernels import (
            BOUND,
            FIRST_BOUND,
            LOSS,
            LOSS_SQUARES,
            SUMS,
            interval,
        )

        bounds, start, test = [], 0, 1
        while start < len(self._improvements):
            before = self._improvements[start - 1] if start else 0
            improvements = self._improvements[-1] - before
            sums = np.zeros(SUMS)
            sums[LOSS], sums[LOSS_SQUARES] = -improvements, improvements
            sums[FIRST_BOUND] = sums[BOUND] = 1.0
            # The interval gives half of its error to each side, and only the upper one is used.
            high = interval(sums, min(2 * self._alpha / (test * (test + 1)), 1.0))[1]
            bounds.append(high / (len(self._improvements) - start))
            start, test = 2 * start + 1, test + 1
        return bounds
