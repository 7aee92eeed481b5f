"""``Bracket``: successive halving of one group of trials. The slots of a rung are handed out and filled."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.tune.schedulers.rungs import Rungs


class Place(NamedTuple):
    """A slot that was handed out.

    Attributes
    ----------
    rung : int
        The rung's number in its bracket.
    level : int
        The resource at which the rung compares.
    slot : int
        The slot's number in its rung.
    trial : int or None
        The trial that has come here from the rung before; None if the slot is for a new one.
    """

    rung: int
    level: int
    slot: int
    trial: int | None


class Bracket:
    """Rungs whose slots are free, pending or occupied, and the promotion from one rung to the next.

    A rung is complete when all its slots are occupied. Then the best of it are the trials of the next rung.
    Trials that failed are never promoted; if they leave too few, the next rung is smaller.

    Parameters
    ----------
    rungs : list of (int, int)
        Sizes and levels.
    promotes : bool
        False if the slots of every rung are for new trials, as in the later brackets of DEHB.

    Attributes
    ----------
    rung : int
        The rung that is being filled; the number of rungs if the bracket is complete.
    trials : list of list of (int or None)
        For each rung so far, the trial in each slot.
    losses : list of list of (float or None)
        For each rung so far, the loss in each slot; None if it is free or pending, NaN if the trial failed.
    """

    def __init__(self, rungs: Rungs, *, promotes: bool = True) -> None:
        self.rungs = rungs
        self.promotes = promotes
        self.rung = 0
        self.trials: list[list[int | None]] = [[None] * rungs[0][0]]
        self.losses: list[list[float | None]] = [[None] * rungs[0][0]]
        self._free = 0
        self._pending = 0

    @property
    def is_complete(self) -> bool:
        """True if all rungs are complete."""
        return self.rung == len(self.rungs)

    @property
    def pending(self) -> int:
        """The number of pending slots."""
        return self._pending

    def next_place(self) -> Place | None:
        """Hand out the first free slot of the rung; None if there is none."""
        if self.is_complete or self._free == len(self.trials[self.rung]):
            return None
        slot = self._free
        self._free += 1
        self._pending += 1
        return Place(self.rung, self.rungs[self.rung][1], slot, self.trials[self.rung][slot])

    def assign(self, place: Place, trial: int) -> None:
        """Say which new trial runs in a pending slot."""
        self.trials[place.rung][place.slot] = trial

    def on_result(self, place: Place, loss: float) -> list[int] | None:
        """Occupy a pending slot with a loss, NaN if the trial failed.

        Returns
        -------
        list of int or None
            If this completes the rung, the trials of it that have a loss and are not promoted. None if it
            does not, or if the rung was the last one. A bracket that does not promote ends no trial.

        Raises
        ------
        ValueError
            If the slot is not pending.
        """
        pending = place.rung == self.rung and place.slot < self._free and not self.is_complete
        if not pending or self.losses[place.rung][place.slot] is not None:
            raise ValueError(f"slot {place.slot} of rung {place.rung} is not pending")
        self.losses[place.rung][place.slot] = loss
        self._pending -= 1
        return self._completed()

    def close(self) -> list[int] | None:
        """Take the free slots away, since there are no trials for them; return what `on_result` does."""
        if not self.is_complete:
            del self.trials[self.rung][self._free :]
            del self.losses[self.rung][self._free :]
        return None if self.is_complete else self._completed()

    def best(self, rung: int, size: int) -> list[int]:
        """Return the slots of the best of a rung, the best first; none of them failed."""
        return best_places(self.losses[rung], size)

    def _completed(self) -> list[int] | None:
        """Go to the next rung, if this one is complete."""
        if self._pending or self._free < len(self.trials[self.rung]):
            return None
        trials, losses = self.trials[self.rung], self.losses[self.rung]
        self.rung += 1
        self._free = 0
        if self.is_complete:
            return None
        size = self.rungs[self.rung][0]
        kept = best_places(losses, size)
        coming: list[int | None] = [trials[slot] for slot in kept] if self.promotes else [None] * size
        if not coming:
            self.rung = len(self.rungs)
            return []
        self.trials.append(coming)
        self.losses.append([None] * len(coming))
        if not self.promotes:
            return []
        went_on = {trials[slot] for slot in kept}
        valid = best_places(losses, len(losses))
        return sorted(trial for slot in valid if (trial := trials[slot]) is not None and trial not in went_on)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON."""
        return {
            "rung": self.rung,
            "free": self._free,
            "pending": self._pending,
            "promotes": self.promotes,
            "trials": [list(each) for each in self.trials],
            "losses": [list(each) for each in self.losses],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; the rungs are the same."""
        self.rung, self._free, self._pending = state["rung"], state["free"], state["pending"]
        self.promotes = state["promotes"]
        self.trials = [list(each) for each in state["trials"]]
        self.losses = [list(each) for each in state["losses"]]


def best_places(losses: Sequence[float | None], size: int) -> list[int]:
    """Return the places of the lowest losses, the lowest first; of equal ones, the first.

    >>> best_places([3.0, float("nan"), 1.0, None, 3.0], 2)
    [2, 0]
    """
    valid = [place for place, loss in enumerate(losses) if loss is not None and not isnan(loss)]
    return sorted(valid, key=lambda place: losses[place] or 0.0)[:size]
