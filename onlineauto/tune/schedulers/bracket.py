"""``Bracket``: successive halving of one group of trials, which run in the slots of each rung."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from onlineauto.tune.plain import PlainState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.tune.schedulers.rungs import Rungs


class RungSlot(NamedTuple):
    """A pending slot of a rung."""

    rung: int  # The rung's number in its bracket.
    level: int  # The resource at which the rung compares.
    slot: int  # The slot's number in its rung.
    # The trial that was promoted from the previous rung; None if the slot is for a new trial.
    trial: int | None


class Bracket(PlainState):
    """Rungs whose slots are free, pending or occupied, and the promotion from one rung to the next.

    A rung is complete when all its slots are occupied. Its best trials are then the trials of the next rung.
    Failed trials are never promoted; if too few trials remain, the next rung is smaller.
    """

    STATE: ClassVar = {
        "rung": int,
        "_free": int,
        "_pending": int,
        "promotes": bool,
        "trials": list[list[int | None]],
        "losses": list[list[float | None]],
    }

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

    def next_slot(self) -> RungSlot | None:
        """Return the first free slot of the current rung, which becomes pending; None if there is none."""
        if self.is_complete or self._free == len(self.trials[self.rung]):
            return None
        slot = self._free
        self._free += 1
        self._pending += 1
        return RungSlot(self.rung, self.rungs[self.rung][1], slot, self.trials[self.rung][slot])

    def assign(self, rung_slot: RungSlot, trial: int) -> None:
        """Record the new trial of a pending slot."""
        self.trials[rung_slot.rung][rung_slot.slot] = trial

    def on_result(self, rung_slot: RungSlot, loss: float) -> list[int] | None:
        """Occupy a pending slot with a loss; NaN means that the trial failed."""
        pending = rung_slot.rung == self.rung and rung_slot.slot < self._free and not self.is_complete
        if not pending or self.losses[rung_slot.rung][rung_slot.slot] is not None:
            raise ValueError(f"slot {rung_slot.slot} of rung {rung_slot.rung} is not pending")
        self.losses[rung_slot.rung][rung_slot.slot] = loss
        self._pending -= 1
        return self._complete_rung()

    def close(self) -> list[int] | None:
        """Remove the free slots, which no trial will occupy.

        Returns the trials that are not promoted, or None, like `on_result`.
        """
        if not self.is_complete:
            del self.trials[self.rung][self._free :]
            del self.losses[self.rung][self._free :]
        return None if self.is_complete else self._complete_rung()

    def best(self, rung: int, size: int) -> list[int]:
        """Return the slots of the best trials of a rung that did not fail, the best first."""
        return best_slots(self.losses[rung], size)

    def _complete_rung(self) -> list[int] | None:
        """If this rung is complete, begin the next rung and return the trials that are not promoted."""
        if self._pending or self._free < len(self.trials[self.rung]):
            return None
        trials, losses = self.trials[self.rung], self.losses[self.rung]
        self.rung += 1
        self._free = 0
        if self.is_complete:
            return None
        size = self.rungs[self.rung][0]
        best = best_slots(losses, size)
        next_trials: list[int | None] = [trials[slot] for slot in best] if self.promotes else [None] * size
        if not next_trials:
            self.rung = len(self.rungs)
            return []
        self.trials.append(next_trials)
        self.losses.append([None] * len(next_trials))
        if not self.promotes:
            return []
        promoted = {trials[slot] for slot in best}
        valid = best_slots(losses, len(losses))
        return sorted(
            trial for slot in valid if (trial := trials[slot]) is not None and trial not in promoted
        )


def best_slots(losses: Sequence[float | None], size: int) -> list[int]:
    """Return the indices of the `size` lowest losses, the lowest first; of equal losses the first.

    >>> best_slots([3.0, float("nan"), 1.0, None, 3.0], 2)
    [2, 0]
    """
    valid = [index for index, loss in enumerate(losses) if loss is not None and not isnan(loss)]
    return sorted(valid, key=lambda index: losses[index] or 0.0)[:size]
