"""``Populations``: the variant of DEHB with one population for each level, like its authors' program.

A population is permanent. Its members begin as random codes without a loss, and are replaced by children that
are no worse. In the first bracket of each kind, upper rungs promote the best trials of the level below, from
all brackets. In later brackets, the parents of an upper rung are the best of the population below.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.tune.schedulers.evolution.parents import Parents
from onlineauto.tune.schedulers.rungs import hpbandster

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from onlineauto.tune.schedulers.brackets import Slot
    from onlineauto.tune.spaces.draw import Draw


class _Population:
    """The members of one level: their codes, losses and trials."""

    def __init__(self, codes: np.ndarray) -> None:
        self.codes = codes
        self.losses = np.full(len(codes), inf)
        self.trials: list[int | None] = [None] * len(codes)
        self.next = 0

    def best(self, size: int) -> np.ndarray:
        """Return the indices of the lowest losses, the lowest first; members without a loss are last."""
        return self.losses.argsort(kind="stable")[:size]


class Populations(Parents):
    """Parents from a population for each level."""

    keeps = False

    def _set_up(self, draw: Draw, brackets: int | None) -> None:
        setting = self._setting
        self.system = hpbandster(setting.min_resource, setting.max_resource, setting.eta, brackets)
        self.promoting = 0  # the populations promote, not the brackets
        sizes: dict[int, int] = {}
        for rungs in self.system:
            for size, level in rungs:
                sizes[level] = max(size, sizes.get(level, 0))
        rng = draw.at(0)
        self.levels = {
            level: _Population(rng.random((size, setting.space.width)))
            for level, size in sorted(sizes.items())
        }

    def searches(self, slot: Slot) -> bool:  # noqa: D102
        return slot.bracket == 0 and slot.rung_slot.rung == 0

    def trial_to_promote(
        self, slot: Slot, running: Collection[int], reached: Mapping[int, int]
    ) -> int | None:
        """Return the best trial of the level below that is neither running nor promoted already, or None."""
        if slot.rung_slot.rung == 0 or not self.pauses_in(slot.bracket):
            return None
        size, level = self._level_below(slot)
        population = self.levels[level]
        for index in population.best(size):
            trial = population.trials[int(index)]
            if trial is not None and trial not in running and reached.get(trial) == level:
                return trial
        return None

    def pauses_in(self, bracket: int) -> bool:
        """Return whether upper rungs of a bracket promote."""
        return bracket < len(self.system)

    def _level_below(self, slot: Slot) -> tuple[int, int]:
        """Return the number of trials of this rung, and the level below (in the first rung its own level)."""
        rungs = self.brackets[slot.bracket].rungs
        rung = slot.rung_slot.rung
        return rungs[rung][0], rungs[max(rung - 1, 0)][1]

    def target(self, slot: Slot) -> int:
        """Return the index of the next member of the level's population, in cyclic order."""
        population = self.levels[slot.rung_slot.level]
        index = population.next
        population.next = (index + 1) % len(population.codes)
        return index

    def child(self, slot: Slot, target: int | None, rng: np.random.Generator) -> np.ndarray:  # noqa: D102
        assert target is not None
        size, level = self._level_below(slot)
        population = self.levels[level]
        goal = self.levels[slot.rung_slot.level].codes[target]
        pool = [population.codes[index] for index in population.best(size).tolist()]
        best = pool[0]
        if len(pool) < self._fewest:
            codes = np.concatenate([each.codes for each in self.levels.values()])
            while len(pool) <= self._fewest:
                parents = codes[rng.permutation(len(codes))[: self._fewest]]
                pool.append(self._offspring(parents[0], list(parents), rng, best))
        return self._offspring(goal, pool, rng, best)

    def select(self, slot: Slot, trial: int, target: int | None, loss: float) -> tuple[int, float]:
        """Replace the target by the trial if the trial is no worse; equal losses favour the new code."""
        population = self.levels[slot.rung_slot.level]
        assert target is not None
        if loss <= population.losses[target]:
            population.codes[target] = self._codes[trial]
            population.losses[target] = loss
            population.trials[target] = trial
        return trial, loss

    def pauses(self, slot: Slot) -> bool:  # noqa: D102
        rungs = self.system[slot.bracket % len(self.system)]
        return slot.rung_slot.rung < len(rungs) - 1 and not self.is_past_promotion()

    def is_past_promotion(self) -> bool:  # noqa: D102
        return self.brackets.primary >= len(self.system)

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        return {
            str(level): {
                "codes": each.codes.tolist(),
                "losses": each.losses.tolist(),
                "trials": list(each.trials),
                "next": each.next,
            }
            for level, each in self.levels.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        for level, each in state.items():
            self.levels[int(level)] = population = _Population(np.array(each["codes"]))
            population.losses[:] = each["losses"]
            population.trials, population.next = list(each["trials"]), each["next"]
