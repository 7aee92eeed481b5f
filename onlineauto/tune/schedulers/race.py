"""``Race``: Hyperband whose rungs close early, by paired tests that are valid at any time.

A trial reports its losses on batches of events, and all trials of a rung learn the same events. Two trials
are therefore compared by paired differences, which vary far less than losses. If a rung promotes k trials, a
trial ends as soon as k others are proved better, because it can no longer be promoted.

Each proof is a champion test on the batches of this rung alone; batches of earlier rungs do not count again.
In a rung of n trials, each test has the level k·α/(n - 1).

*Guarantee.* A rung drops its best trial with a probability of at most α, however often the test is evaluated.
Proof: the best trial is tested against n - 1 others, so the expected number of false proofs is at most k·α.
By Markov's inequality, the probability of k false proofs is at most α. "Best" refers to the mean loss on the
events that two trials have in common.

The guarantee assumes that trials were chosen without these events. It is only approximate if the searcher has
seen losses of other trials on the same events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlineauto.errors import OptionError
from onlineauto.estimators.difference_kernels import SPREAD_SIZE, observe_any_difference, share
from onlineauto.estimators.paired_kernels import SIZE, is_worse
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.schedulers.scheduler import Decision, Setting, State, Suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.tune.schedulers.brackets import Slot
    from onlineauto.tune.searchers.searcher import Searcher


@dataclass
class _Losses:
    """The mean losses of consecutive batches; the first batch has the number `first`."""

    first: int = 0
    means: list[float] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.first + len(self.means)

    def add(self, first: int, means: Sequence[float]) -> None:
        """Append batches; if batches are missing in between, drop the earlier ones."""
        if first != self.end:
            self.first, self.means = first, []
        self.means += means

    def mean_gain(self, other: _Losses) -> float:
        """Return the mean of these losses minus the mean of the others, on the batches that both have."""
        begin, end = max(self.first, other.first), min(self.end, other.end)
        if begin >= end:
            return 0.0
        total = sum(self.means[begin - self.first : end - self.first])
        return (total - sum(other.means[begin - other.first : end - other.first])) / (end - begin)


class Race(Hyperband):
    """Hyperband whose trials end when enough others of their rung are proved better on the same events.

    A trial reports the details ``batch``, the number of events of a batch; ``first``, the offset of the first
    event; and ``losses``, the mean losses of batches, of which lower is better in both modes. Without these
    details, `Race` is the same as `Hyperband`.
    """

    name = "race"
    STATE: ClassVar = {"_losses": dict[int, _Losses], "_dropped": set[int]}

    def __init__(self, sizes: str = "geometric", *, brackets: int | None = 2, alpha: float = 0.05) -> None:
        super().__init__(sizes, brackets=brackets)
        if not 0 < alpha < 1:
            raise OptionError(f"alpha = {alpha!r}: give a probability above 0 and below 1")
        self.options = {"sizes": sizes, "brackets": brackets, "alpha": alpha}
        self._alpha = alpha

    def begin(self, setting: Setting) -> None:  # noqa: D102
        super().begin(setting)
        self._losses: dict[int, _Losses] = {}
        self._duels: dict[tuple[int, int], _Duel] = {}
        self._dropped: set[int] = set()

    def suggest(self, searcher: Searcher) -> Suggestion | None:  # noqa: D102
        job = super().suggest(searcher)
        if job is not None:
            self._losses[job.trial] = _Losses()
            self._duels = {pair: duel for pair, duel in self._duels.items() if job.trial not in pair}
        return job

    def on_details(self, trial: int, details: Mapping[str, Any]) -> None:  # noqa: D102
        if trial in self._losses and _is_complete(details):
            self._losses[trial].add(details["first"] // details["batch"], details["losses"])

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:  # noqa: D102
        if super().on_report(trial, resource, loss) is Decision.STOP:
            return Decision.STOP
        if not self._is_behind(trial, self._running[trial]):
            return Decision.CONTINUE
        self._dropped.add(trial)
        return Decision.STOP

    def _is_behind(self, trial: int, slot: Slot) -> bool:
        """Return whether k trials of the rung are proved better, where k trials are promoted.

        Only the k trials with the largest gains are tested. The smallest of these gains is tested first,
        because this test most often decides.
        """
        bracket, rung = self._brackets[slot.bracket], slot.rung_slot.rung
        trials = bracket.trials[rung]
        promoted = bracket.rungs[rung + 1][0] if rung + 1 < len(bracket.rungs) else 1
        level = self._alpha * promoted / max(len(trials) - 1, 1)
        losses = self._losses[trial]
        gains = {
            other: losses.mean_gain(self._losses[other])
            for other in trials
            if other is not None and other != trial and other not in self._dropped and other in self._losses
        }
        ahead = sorted((other for other in gains if gains[other] > 0), key=lambda other: -gains[other])
        if len(ahead) < promoted:
            return False
        return all(
            self._duels.setdefault((trial, other), _Duel()).is_lost(losses, self._losses[other], level)
            for other in reversed(ahead[:promoted])
        )

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:  # noqa: D102
        if trial not in self._dropped:
            return super().on_result(trial, resource, loss)
        return self._occupy(trial, nan, {trial: State.TERMINATED})

    def _occupy(self, trial: int, loss: float, changed: dict[int, State]) -> dict[int, State]:
        changed = super()._occupy(trial, loss, changed)
        present = self._brackets.trials
        self._losses = {number: losses for number, losses in self._losses.items() if number in present}
        self._duels = {pair: duel for pair, duel in self._duels.items() if present.issuperset(pair)}
        self._dropped &= present
        for number in {trial} - present:
            self._forget(number)
        return changed


def _is_complete(details: Mapping[str, Any]) -> bool:
    """Return whether details have all entries that a test needs; a log may have details without them."""
    batch, first, losses = (details.get(name) for name in ("batch", "first", "losses"))
    is_valid = isinstance(batch, int) and batch >= 1 and isinstance(first, int)
    return is_valid and isinstance(losses, list) and all(isinstance(loss, int | float) for loss in losses)


class _Duel:
    """A champion test between two trials, on the batches that both have."""

    def __init__(self) -> None:
        self._state, self._spread = np.zeros(SIZE), np.zeros(SPREAD_SIZE)
        self._next = 0

    def is_lost(self, losses: _Losses, other: _Losses, level: float) -> bool:
        """Return whether the other trial is proved better."""
        begin = max(self._next, losses.first, other.first)
        for batch in range(begin, min(losses.end, other.end)):
            gain = other.means[batch - other.first] - losses.means[batch - losses.first]
            observe_any_difference(self._state, self._spread, gain, 0.0)
            self._next = batch + 1
        return bool(is_worse(self._state, level * float(share(self._spread))))
