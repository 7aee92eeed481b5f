"""``ParentSlots``: the variant of DEHB whose parents are the slots of earlier brackets.

The first rung of the first bracket has configs of the searcher, and that bracket promotes. Every later slot
has a new config. Its *parent
slot* is the slot of the same number and level in the latest earlier bracket that has one with a loss.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from onlineauto.tune.schedulers.evolution.parents import Parents
from onlineauto.tune.schedulers.rungs import geometric

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy as np

    from onlineauto.tune.schedulers.brackets import Slot
    from onlineauto.tune.spaces.draw import Draw

_FEWEST = 3
"""Number of parents of a mutation."""


class ParentSlots(Parents):
    """Parents from the slots of earlier brackets."""

    keeps = True
    promoting = 1

    def _set_up(self, draw: Draw, brackets: int | None) -> None:  # noqa: ARG002
        setting = self._setting
        kinds = geometric(setting.min_resource, setting.max_resource, setting.eta, brackets)
        self.system = [kinds[0][offset:] for offset in range(len(kinds))]
        self._ladder = [level for _, level in kinds[0]]
        self._pools: dict[tuple[int, int], list[int]] = {}
        self._tops: dict[tuple[int, int], list[int]] = {}
        self._at_level: dict[int, list[int]] = {level: [] for level in self._ladder}

    def searches(self, slot: Slot) -> bool:  # noqa: D102
        return slot.bracket == 0 and slot.rung_slot.rung == 0

    def trial_to_promote(
        self,
        slot: Slot,  # noqa: ARG002
        running: Collection[int],  # noqa: ARG002
        reached: Mapping[int, int],  # noqa: ARG002
    ) -> int | None:
        """Return None: the first bracket promotes its own trials, and no other bracket promotes."""
        return None

    def target(self, slot: Slot) -> int | None:
        """Return the trial of the parent slot, or None."""
        parent = self._parent(slot.bracket, self._ladder.index(slot.rung_slot.level), slot.rung_slot.slot)
        return None if parent is None else parent[0]

    def _parent(self, bracket: int, step: int, slot: int) -> tuple[int, float] | None:
        """Return the trial and the loss of the parent slot for a slot number and a step of the ladder."""
        for earlier in range(bracket - 1, -1, -1):
            rung = step - earlier % len(self.system)
            other = self.brackets[earlier]
            if 0 <= rung < len(other.trials) and slot < len(other.trials[rung]):
                trial, loss = other.trials[rung][slot], other.losses[rung][slot]
                if trial is not None and loss is not None and not isnan(loss):
                    return trial, loss
        return None

    def child(self, slot: Slot, target: int | None, rng: np.random.Generator) -> np.ndarray:  # noqa: D102
        pool = [self._codes[trial] for trial in self._pool(slot)]
        while len(pool) < _FEWEST:
            pool.append(rng.random(self._setting.space.width))
        goal = self._codes[target] if target is not None else pool[int(rng.integers(len(pool)))]
        return self._offspring(goal, pool, rng)

    def _pool(self, slot: Slot) -> list[int]:
        """Return the trials that may be parents, which are the same for all slots of a rung."""
        key = slot.bracket, slot.rung_slot.rung
        if slot.bracket == 0:  # children are needed only if the searcher repeats a config
            return self._candidates(slot)
        if key not in self._pools:
            pool = self._candidates(slot)
            if len(pool) < _FEWEST:
                return pool
            open_ones = [each for each in self._pools if each[0] >= self.brackets.primary]
            self._pools = {each: self._pools[each] for each in open_ones} | {key: pool}
        return self._pools[key]

    def _candidates(self, slot: Slot) -> list[int]:
        """Return the trials that may be parents now: at least three, if three have a loss at any level."""
        rung = slot.rung_slot.rung
        bracket = self.brackets[slot.bracket]
        if rung == 0:
            step = self._ladder.index(slot.rung_slot.level)
            parents = (self._parent(slot.bracket, step, each) for each in range(bracket.rungs[0][0]))
            pool = [each[0] for each in parents if each is not None]
        else:
            pool = self._top(slot.bracket, rung)
        others = [slot.rung_slot.level, *reversed(self._ladder)]
        for level in others if len(pool) < _FEWEST else ():
            pool = list(dict.fromkeys([*pool, *self._at_level[level]]))
            if len(pool) >= _FEWEST:
                break
        return pool

    def _top(self, number: int, rung: int) -> list[int]:
        """Return the best trials of the previous rung, which is complete."""
        if (number, rung) not in self._tops:
            bracket = self.brackets[number]
            trials = bracket.trials[rung - 1]
            best = (trials[slot] for slot in bracket.best(rung - 1, bracket.rungs[rung][0]))
            self._tops[number, rung] = [trial for trial in best if trial is not None]
        return self._tops[number, rung]

    def select(self, slot: Slot, trial: int, target: int | None, loss: float) -> tuple[int, float]:  # noqa: ARG002
        """Return the better of the trial and the trial of the parent slot, with its loss."""
        self._at_level[slot.rung_slot.level].append(trial)
        if slot.bracket == 0:
            return trial, loss
        step = self._ladder.index(slot.rung_slot.level)
        parent = self._parent(slot.bracket, step, slot.rung_slot.slot)
        return (trial, loss) if parent is None or loss < parent[1] else parent

    def pauses(self, slot: Slot) -> bool:  # noqa: D102
        return slot.bracket == 0 and slot.rung_slot.rung < len(self.system[0]) - 1

    def is_past_promotion(self) -> bool:  # noqa: D102
        return self.brackets.primary > 0

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        return {
            "at_level": {str(level): list(trials) for level, trials in self._at_level.items()},
            "pools": [[*key, pool] for key, pool in self._pools.items()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        self._at_level = {int(level): list(trials) for level, trials in state["at_level"].items()}
        self._pools = {(bracket, rung): list(pool) for bracket, rung, pool in state["pools"]}
        self._tops.clear()
