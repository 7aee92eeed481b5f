"""``Brackets``: the open brackets of Hyperband, each a successive halving of one group of trials.

A new bracket is opened when no other bracket has a free slot.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.plain import PlainState
from onlineauto.tune.schedulers.rungs import is_strict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        "pending": int,
        "promotes": bool,
        "trials": list[list[int | None]],
        "losses": list[list[float | None]],
    }

    def __init__(self, rungs: Rungs, *, promotes: bool = True) -> None:
        if not is_strict(rungs):
            raise OptionError(
                f"rungs = {short_repr(rungs)}: numbers of trials have to fall, and resources to rise"
            )
        self.rungs = rungs
        self.promotes = promotes
        self.rung = 0
        self.trials: list[list[int | None]] = [[None] * rungs[0][0]]
        self.losses: list[list[float | None]] = [[None] * rungs[0][0]]
        self._free = 0
        self.pending = 0  # number of pending slots

    @property
    def is_complete(self) -> bool:
        """True if all rungs are complete."""
        return self.rung == len(self.rungs)

    def next_slot(self) -> RungSlot | None:
        """Return the first free slot of the current rung, which becomes pending; None if there is none."""
        if self.is_complete or self._free == len(self.trials[self.rung]):
            return None
        slot = self._free
        self._free += 1
        self.pending += 1
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
        self.pending -= 1
        return self._complete_rung()

    def close(self) -> list[int] | None:
        """Remove the free slots, which no trial will occupy.

        Returns the trials that are not promoted, or None, like `on_result`.
        """
        if not self.is_complete:
            del self.trials[self.rung][self._free :]
            del self.losses[self.rung][self._free :]
        return None if self.is_complete else self._complete_rung()

    def _complete_rung(self) -> list[int] | None:
        """If this rung is complete, begin the next rung and return the trials that are not promoted."""
        if self.pending or self._free < len(self.trials[self.rung]):
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


class Slot(NamedTuple):
    """A pending slot of one of the brackets."""

    bracket: int
    rung_slot: RungSlot


class Brackets:
    """Brackets in their order; bracket `b` has the rungs of ``system[b % len(system)]``.

    The *primary* bracket is the first that is not complete. The search for a free slot begins there.
    """

    def __init__(self, system: Sequence[Rungs], *, keeps: bool = False, promoting: int | None = None) -> None:
        self.system = system
        self._systems: list[tuple[int, Sequence[Rungs]]] = [(0, system)]  # by first bracket
        self.primary = 0
        self.count = 0
        self._keeps = keeps
        self._promoting = promoting
        self._brackets: dict[int, Bracket] = {}

    def __getitem__(self, bracket: int) -> Bracket:
        """Return a bracket by its number; complete brackets exist only if `keeps` is True."""
        return self._brackets[bracket]

    def extend(self, system: Sequence[Rungs]) -> None:
        """Use the rungs of another system for brackets that are opened from now on."""
        self.system = system
        self._systems.append((self.count, system))

    @property
    def rounds(self) -> int:
        """The number of times that all kinds of brackets are complete."""
        ends = [first for first, _ in self._systems[1:]]
        rounds = 0
        for (first, system), end in zip(self._systems, [*ends, self.primary], strict=True):
            rounds += max(min(end, self.primary) - first, 0) // len(system)
        return rounds

    @property
    def pending(self) -> dict[int, int]:
        """The number of pending slots of each bracket that is not complete."""
        return {
            number: self._brackets[number].pending
            for number in range(self.primary, self.count)
            if number in self._brackets
        }

    @property
    def trials(self) -> set[int]:
        """The trials in the current rungs of all open brackets."""
        rungs = (
            bracket.trials[bracket.rung] for bracket in self._brackets.values() if not bracket.is_complete
        )
        return {trial for rung in rungs for trial in rung if trial is not None}

    def next_slot(self, *, opens: bool = True) -> Slot | None:
        """Return a free slot of the first bracket that has one, or else, if `opens`, of a new bracket."""
        for number in range(self.primary, self.count):
            bracket = self._brackets.get(number)
            rung_slot = bracket.next_slot() if bracket is not None else None
            if rung_slot is not None:
                return Slot(number, rung_slot)
        return self._open() if opens else None

    def on_result(self, slot: Slot, loss: float) -> list[int]:
        """Occupy a pending slot; return the trials that are not promoted and therefore end."""
        bracket = self._brackets.get(slot.bracket)
        if bracket is None:
            raise ValueError(f"bracket {slot.bracket} is complete, or not open yet")
        return self._end_bracket(slot.bracket, bracket, bracket.on_result(slot.rung_slot, loss))

    def close(self) -> list[int]:
        """Remove the free slots for new trials in all brackets; return the same as `on_result`."""
        ended: list[int] = []
        for number in range(self.primary, self.count):
            bracket = self._brackets.get(number)
            if bracket is not None and (bracket.rung == 0 or not bracket.promotes):
                ended += self._end_bracket(number, bracket, bracket.close())
        return ended

    def _end_bracket(self, number: int, bracket: Bracket, dropped: list[int] | None) -> list[int]:
        ended = list(dropped or ())
        if bracket.is_complete:
            if not self._keeps:
                del self._brackets[number]
            while self.primary < self.count and self._is_complete(self.primary):
                self.primary += 1
        return ended

    def _is_complete(self, number: int) -> bool:
        return number not in self._brackets or self._brackets[number].is_complete

    def _bracket(self, number: int) -> Bracket:
        promotes = self._promoting is None or number < self._promoting
        first, system = next(entry for entry in reversed(self._systems) if entry[0] <= number)
        return Bracket(system[(number - first) % len(system)], promotes=promotes)

    def _open(self) -> Slot:
        number = self.count
        self._brackets[number] = bracket = self._bracket(number)
        self.count += 1
        rung_slot = bracket.next_slot()
        assert rung_slot is not None  # each rung has at least one slot
        return Slot(number, rung_slot)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON."""
        state: dict[str, Any] = {
            "primary": self.primary,
            "count": self.count,
            "brackets": {str(number): bracket.state_dict() for number, bracket in self._brackets.items()},
        }
        return state | ({"systems": self._systems} if len(self._systems) > 1 else {})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of brackets that have the same system of rungs."""
        self.primary, self.count = state["primary"], state["count"]
        if "systems" in state:
            self._systems = [
                (first, [[(size, level) for size, level in rungs] for rungs in system])
                for first, system in state["systems"]
            ]
            self.system = self._systems[-1][1]
        self._brackets = {}
        for number, part in state["brackets"].items():
            self._brackets[int(number)] = bracket = self._bracket(int(number))
            bracket.load_state_dict(part)
