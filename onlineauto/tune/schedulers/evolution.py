"""Differential evolution of DEHB: mutation and crossover of codes, and ``Parents``, from which both are made.

A strategy is a mutation and a crossover: ``rand1_bin``, ``currenttobest1_exp``, … A mutation adds differences
of parents to a parent, to the best of the pool, or to the target. Crossover selects each parameter separately
(``bin``), or a run of parameters (``exp``). The variants of `Parents` are `ParentSlots` and `Populations`.

Source: Storn and Price: Differential evolution, 1997.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import inf, isnan
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from onlineauto.tune.schedulers.brackets import best_slots
from onlineauto.tune.schedulers.rungs import geometric, hpbandster

if TYPE_CHECKING:
    from collections.abc import Collection

    from onlineauto.tune.schedulers.brackets import Brackets, Slot
    from onlineauto.tune.schedulers.rungs import Rungs
    from onlineauto.tune.schedulers.scheduler import Setting
    from onlineauto.tune.spaces.draw import Draw

Mutation: TypeAlias = Callable[[np.ndarray, np.ndarray, Sequence[np.ndarray], float], np.ndarray]
"""Takes the target, the best, the parents and the factor."""
_MUTATIONS: Mapping[str, tuple[int, Mutation]] = {
    "rand1": (3, lambda _target, _best, p, f: p[0] + f * (p[1] - p[2])),
    "rand2": (5, lambda _target, _best, p, f: p[0] + f * (p[1] - p[2]) + f * (p[3] - p[4])),
    "rand2dir": (3, lambda _target, _best, p, f: p[0] + f / 2 * (p[0] - p[1] - p[2])),
    "best1": (2, lambda _target, best, p, f: best + f * (p[0] - p[1])),
    "best2": (4, lambda _target, best, p, f: best + f * (p[0] - p[1]) + f * (p[2] - p[3])),
    "currenttobest1": (2, lambda target, best, p, f: target + f * (best - target) + f * (p[0] - p[1])),
    "randtobest1": (3, lambda _target, best, p, f: p[0] + f * (best - p[0]) + f * (p[1] - p[2])),
}
"""By name: the number of parents, and the mutation."""
STRATEGIES = tuple(f"{mutation}_{kind}" for mutation in _MUTATIONS for kind in ("bin", "exp"))
"""All pairs of a mutation and a crossover."""


def parents_of(strategy: str) -> int:
    """Return the number of parents of a strategy.

    >>> parents_of("rand1_bin"), parents_of("best2_exp")
    (3, 4)
    """
    return _MUTATIONS[strategy.partition("_")[0]][0]


def mutant(
    parents: Sequence[np.ndarray],
    factor: float,
    fill: np.ndarray,
    *,
    strategy: str = "rand1_bin",
    target: np.ndarray | None = None,
    best: np.ndarray | None = None,
) -> np.ndarray:
    """Return the mutant of parents: by default the first parent plus `factor` times a difference.

    Numbers outside [0, 1] are replaced by those of `fill`.

    >>> parents = [np.array([0.5, 0.9]), np.array([0.8, 0.9]), np.array([0.2, 0.1])]
    >>> mutant(parents, 0.5, np.array([0.3, 0.3])).tolist()
    [0.8, 0.3]
    """
    other = parents[0]
    moved = _MUTATIONS[strategy.partition("_")[0]][1](
        other if target is None else target, other if best is None else best, parents, factor
    )
    return np.where((moved < 0) | (moved > 1), fill, moved)


def mask(rate: float, drawn: Sequence[float] | np.ndarray, forced: int) -> np.ndarray:
    """Return which parameters the mutant gives: those drawn below `rate`, or else `forced`.

    >>> mask(0.5, [0.45, 0.7], 1).tolist(), mask(0.1, [0.15, 0.55], 0).tolist()
    ([True, False], [True, False])
    """
    chosen = np.asarray(drawn) < rate
    if not chosen.any():
        chosen[forced] = True
    return chosen


def run_mask(rate: float, drawn: Sequence[float] | np.ndarray, first: int) -> np.ndarray:
    """Return which parameters the mutant gives: `first`, and those after it until a number is `rate` or more.

    >>> run_mask(0.5, [0.1, 0.2, 0.9, 0.1], 3).tolist()
    [True, True, False, True]
    """
    lasts = np.roll(np.asarray(drawn) < rate, -first - 1)[:-1]
    size = 1 + int(np.cumprod(lasts).sum())
    chosen = np.zeros(len(drawn), dtype=bool)
    chosen[(first + np.arange(size)) % len(chosen)] = True
    return chosen


def crossover(
    target: np.ndarray, mutated: np.ndarray, chosen: np.ndarray, widths: Sequence[int]
) -> np.ndarray:
    """Return the target with the chosen parameters of the mutant; the code of a word is copied as one block.

    >>> crossover(np.zeros(4), np.ones(4), np.array([False, True]), [1, 3]).tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    return np.where(np.repeat(chosen, widths), mutated, target)


def offspring(
    target: np.ndarray,
    pool: Sequence[np.ndarray],
    widths: Sequence[int],
    rng: np.random.Generator,
    *,
    factor: float,
    rate: float,
    strategy: str = "rand1_bin",
    best: np.ndarray | None = None,
) -> np.ndarray:
    """Return a child of a target and of distinct members of a pool by a strategy."""
    count = parents_of(strategy)
    many = len(pool) > count
    order = rng.random(len(pool)).argpartition(count - 1)[:count] if many else rng.permutation(count)
    parents = [pool[index] for index in order]
    fill = rng.random(len(target))
    mutated = mutant(parents, factor, fill, strategy=strategy, target=target, best=best)
    chosen = (run_mask if strategy.endswith("_exp") else mask)(
        rate, rng.random(len(widths)), int(rng.integers(len(widths)))
    )
    return crossover(target, mutated, chosen, widths)


class Parents(ABC):
    """Chooses parents and targets, and selects the better of a child and its target.

    DEHB appends the code of each trial, float64[width], to `codes`.
    """

    keeps: bool  # True if complete brackets are still read.
    promoting: int  # Brackets from this number on have new trials in all slots.
    promoting_brackets: int  # Number of brackets with promotions, by the brackets or by the populations.
    system: list[Rungs]
    brackets: Brackets  # Set by DEHB.

    def __init__(
        self,
        setting: Setting,
        codes: list[np.ndarray],
        draw: Draw,
        *,
        factor: float,
        rate: float,
        strategy: str,
        brackets: int | None,
    ) -> None:
        self._setting = setting
        self._codes = codes
        self._factor, self._rate, self._strategy = factor, rate, strategy
        self._fewest = max(parents_of(strategy), 3)
        self._widths = [parameter.width for parameter in setting.space.parameters.values()]
        self._set_up(draw, brackets)

    @abstractmethod
    def _set_up(self, draw: Draw, brackets: int | None) -> None:
        """Set up the rung system and the state of the subclass."""

    def searches(self, slot: Slot) -> bool:
        """Return whether the config of a slot comes from the searcher: those of the first rung do."""
        return slot.bracket == 0 and slot.rung_slot.rung == 0

    def trial_to_promote(
        self,
        slot: Slot,  # noqa: ARG002
        running: Collection[int],  # noqa: ARG002
        reached: Mapping[int, int],  # noqa: ARG002
    ) -> int | None:
        """Return the trial that is promoted to a slot; None if a new trial begins there."""
        return None

    @abstractmethod
    def target(self, slot: Slot) -> int | None:
        """Return the number of the target with which the trial in a slot competes, or None."""

    @abstractmethod
    def child(self, slot: Slot, target: int | None, rng: np.random.Generator) -> np.ndarray:
        """Return the code of a new config for a slot."""

    @abstractmethod
    def select(self, slot: Slot, trial: int, target: int | None, loss: float) -> tuple[int, float]:
        """Select the better of a trial and its target; return the trial of the slot and its loss."""

    @abstractmethod
    def pauses(self, slot: Slot) -> bool:
        """Return whether a trial in this slot pauses at its end, since it may be promoted."""

    def is_past_promotion(self) -> bool:
        """Return whether no more trials will be promoted."""
        return self.brackets.primary >= self.promoting_brackets

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""

    def _offspring(
        self,
        target: np.ndarray,
        pool: Sequence[np.ndarray],
        rng: np.random.Generator,
        best: np.ndarray | None = None,
    ) -> np.ndarray:
        return offspring(
            target,
            pool,
            self._widths,
            rng,
            factor=self._factor,
            rate=self._rate,
            strategy=self._strategy,
            best=best,
        )


_FEWEST = 3
"""Number of parents of a mutation."""


class ParentSlots(Parents):
    """Parents from the slots of earlier brackets.

    The first rung of the first bracket has configs of the searcher, and that bracket promotes. Every later
    slot has a new config. Its *parent slot* is the slot of the same number and level in the latest earlier
    bracket that has one with a loss.
    """

    keeps = True
    promoting = promoting_brackets = 1

    def _set_up(self, draw: Draw, brackets: int | None) -> None:  # noqa: ARG002
        setting = self._setting
        kinds = geometric(setting.min_resource, setting.max_resource, setting.eta, brackets)
        self.system = [kinds[0][offset:] for offset in range(len(kinds))]
        self._ladder = [level for _, level in kinds[0]]
        self._pools: dict[tuple[int, int], list[int]] = {}
        self._tops: dict[tuple[int, int], list[int]] = {}
        self._at_level: dict[int, list[int]] = {level: [] for level in self._ladder}

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
            open_ones = [rung_key for rung_key in self._pools if rung_key[0] >= self.brackets.primary]
            self._pools = {rung_key: self._pools[rung_key] for rung_key in open_ones} | {key: pool}
        return self._pools[key]

    def _candidates(self, slot: Slot) -> list[int]:
        """Return the trials that may be parents now: at least three, if three have a loss at any level."""
        rung = slot.rung_slot.rung
        bracket = self.brackets[slot.bracket]
        if rung == 0:
            step = self._ladder.index(slot.rung_slot.level)
            parents = (self._parent(slot.bracket, step, number) for number in range(bracket.rungs[0][0]))
            pool = [parent[0] for parent in parents if parent is not None]
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
            best = (trials[slot] for slot in best_slots(bracket.losses[rung - 1], bracket.rungs[rung][0]))
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

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        return {
            "at_level": {str(level): list(trials) for level, trials in self._at_level.items()},
            "pools": [[*key, pool] for key, pool in self._pools.items()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        self._at_level = {int(level): list(trials) for level, trials in state["at_level"].items()}
        self._pools = {(bracket, rung): list(pool) for bracket, rung, pool in state["pools"]}
        self._tops.clear()


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
    """Parents from a population for each level, as in the program of DEHB's authors.

    A population is permanent. Its members begin as random codes without a loss, and are replaced by children
    that are no worse. In the first bracket of each kind, upper rungs promote the best trials of the level
    below, from all brackets. In later brackets, the parents of an upper rung are the best of the population
    below.
    """

    keeps = False

    def _set_up(self, draw: Draw, brackets: int | None) -> None:
        setting = self._setting
        self.system = hpbandster(setting.min_resource, setting.max_resource, setting.eta, brackets)
        self.promoting, self.promoting_brackets = 0, len(self.system)  # populations promote, not brackets
        sizes: dict[int, int] = {}
        for rungs in self.system:
            for size, level in rungs:
                sizes[level] = max(size, sizes.get(level, 0))
        rng = draw.at(0)
        self.levels = {
            level: _Population(rng.random((size, setting.space.width)))
            for level, size in sorted(sizes.items())
        }

    def trial_to_promote(
        self, slot: Slot, running: Collection[int], reached: Mapping[int, int]
    ) -> int | None:
        """Return the best trial of the level below that is neither running nor promoted already, or None."""
        if slot.rung_slot.rung == 0 or slot.bracket >= self.promoting_brackets:
            return None
        size, level = self._level_below(slot)
        population = self.levels[level]
        for index in population.best(size):
            trial = population.trials[int(index)]
            if trial is not None and trial not in running and reached.get(trial) == level:
                return trial
        return None

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
            codes = np.concatenate([level.codes for level in self.levels.values()])
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

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        return {
            str(level): {
                "codes": population.codes.tolist(),
                "losses": population.losses.tolist(),
                "trials": list(population.trials),
                "next": population.next,
            }
            for level, population in self.levels.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        for level, part in state.items():
            self.levels[int(level)] = population = _Population(np.array(part["codes"]))
            population.losses[:] = part["losses"]
            population.trials, population.next = list(part["trials"]), part["next"]
