"""``Race``: Hyperband whose rungs close early, by tests on pairs that hold whenever one looks.

A trial reports the losses that it had on batches of events, and the trials of a rung have theirs on the same
events. So two of them are compared by differences, which vary far less than losses do. A trial ends as soon
as as many others are proved better as the rung promotes: it could not be among those.

Each proof is one of the champion test, on the batches of this rung alone; what promoted a trial before does
not count again. If n trials are in a rung, of which k are promoted, each test has the level k·α/(n - 1). The
best trial meets n - 1 others, so no more than k·α of them are expected to be taken for better; that k are,
has a probability of α at most. Hence a rung drops its best trial, by the mean loss on the events that the two
have in common, with that probability at most, however often one looks. This is about trials that were chosen
without these events. A searcher that has seen how others did on the same events makes it a rule of thumb.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

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


class Race(Hyperband):
    """Hyperband whose trials end when enough others of their rung are proved better on the same events.

    A trial reports the details ``batch``, how many events a batch has; ``first``, the offset of the first one
    reported; and ``losses``, their mean losses: lower ones are better, whatever the mode. Without
    these it is Hyperband.

    Parameters
    ----------
    sizes, brackets
        As for `Hyperband`; two kinds of brackets by default, since bad trials end early anyway.
    alpha : float
        Most probability with which a rung drops its best trial.

    Raises
    ------
    OptionError
        If `sizes` is unknown, or `alpha` is no probability; from `begin`, if the ladder has one rung only.
    """

    name = "race"

    def __init__(self, sizes: str = "geometric", brackets: int | None = 2, alpha: float = 0.05) -> None:
        super().__init__(sizes, brackets)
        if not 0 < alpha < 1:
            raise OptionError(f"alpha = {alpha!r}: a probability, above 0 and below 1")
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
        """Return whether as many trials of the rung are proved better as it promotes: those with most gain.

        The one with least gain among them comes first: most often, that is the only test.
        """
        bracket, rung = self._brackets[slot.bracket], slot.place.rung
        trials = bracket.trials[rung]
        promoted = bracket.rungs[rung + 1][0] if rung + 1 < len(bracket.rungs) else 1
        level = self._alpha * promoted / max(len(trials) - 1, 1)
        mine = self._losses[trial]
        gains = {
            other: mine.mean_gain(self._losses[other])
            for other in trials
            if other is not None and other != trial and other not in self._dropped and other in self._losses
        }
        ahead = sorted((other for other in gains if gains[other] > 0), key=lambda other: -gains[other])
        if len(ahead) < promoted:
            return False
        return all(self._is_worse(trial, other, level) for other in reversed(ahead[:promoted]))

    def _is_worse(self, trial: int, other: int, level: float) -> bool:
        duel = self._duels.setdefault((trial, other), _Duel())
        return duel.is_lost(self._losses[trial], self._losses[other], level)

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:  # noqa: D102
        if trial not in self._dropped:
            return super().on_result(trial, resource, loss)
        return self._occupied(trial, nan, {trial: State.TERMINATED})

    def _occupied(self, trial: int, loss: float, changed: dict[int, State]) -> dict[int, State]:
        changed = super()._occupied(trial, loss, changed)
        present = self._brackets.trials
        self._losses = {each: losses for each, losses in self._losses.items() if each in present}
        self._duels = {pair: duel for pair, duel in self._duels.items() if present.issuperset(pair)}
        self._dropped &= present
        for each in {trial} - present:
            self._forget(each)
        return changed

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        return super().state_dict() | {
            "losses": {str(trial): [each.first, each.means] for trial, each in self._losses.items()},
            "dropped": sorted(self._dropped),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        super().load_state_dict(state)
        self._losses = {int(trial): _Losses(*each) for trial, each in state["losses"].items()}
        self._dropped = set(state["dropped"])
        self._duels.clear()


def _is_complete(details: Mapping[str, Any]) -> bool:
    """Return whether details have all that a test needs; a log may have others, which are left alone."""
    batch, first, losses = (details.get(name) for name in ("batch", "first", "losses"))
    whole = isinstance(batch, int) and batch >= 1 and isinstance(first, int)
    return whole and isinstance(losses, list) and all(isinstance(each, int | float) for each in losses)


class _Losses:
    """The mean losses of consecutive batches, the first of which has the number `first`."""

    def __init__(self, first: int = 0, means: Sequence[float] = ()) -> None:
        self.first, self.means = first, list(means)

    @property
    def end(self) -> int:
        return self.first + len(self.means)

    def add(self, first: int, means: Sequence[float]) -> None:
        """Add batches; where some are missing between, begin anew."""
        if first != self.end:
            self.first, self.means = first, []
        self.means += means

    def mean_gain(self, other: _Losses) -> float:
        """Return how much lower the losses of another one are on average, where both have them."""
        begin, end = max(self.first, other.first), min(self.end, other.end)
        if begin >= end:
            return 0.0
        mine = sum(self.means[begin - self.first : end - self.first])
        return (mine - sum(other.means[begin - other.first : end - other.first])) / (end - begin)


class _Duel:
    """A champion test between two trials, on the batches that both have."""

    def __init__(self) -> None:
        self._state, self._spread = np.zeros(SIZE), np.zeros(SPREAD_SIZE)
        self._next = 0

    def is_lost(self, mine: _Losses, theirs: _Losses, level: float) -> bool:
        """Return whether the other one is proved better."""
        begin = max(self._next, mine.first, theirs.first)
        for batch in range(begin, min(mine.end, theirs.end)):
            gain = theirs.means[batch - theirs.first] - mine.means[batch - mine.first]
            observe_any_difference(self._state, self._spread, gain, 0.0)
            self._next = batch + 1
        return bool(is_worse(self._state, level * float(share(self._spread))))
