"""``Hyperband``: synchronous successive halving in brackets that trade many short trials for few long ones.

A rung is compared only when all its trials have ended. Until then, idle workers get slots of later brackets.

Source: Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar: Hyperband, JMLR 2018.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.errors import OptionError
from onlineauto.tune.plain import PlainState
from onlineauto.tune.schedulers.brackets import Brackets, Slot
from onlineauto.tune.schedulers.rungs import geometric, hpbandster, own_system
from onlineauto.tune.schedulers.scheduler import Decision, ResumeFrom, Scheduler, Setting, State, Suggestion
from onlineauto.tune.spaces import Config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onlineauto.tune.schedulers.rungs import Rungs
    from onlineauto.tune.searchers.searcher import Searcher

SYSTEMS: Mapping[str, Callable[[int, int, int, int | None], list[Rungs]]] = {
    "geometric": geometric,
    "hpbandster": hpbandster,
}
"""Rung systems by name."""


class Hyperband(PlainState, Scheduler):
    """Synchronous Hyperband: trials begin in the first rung of a bracket and are paused after each rung.

    Parameters
    ----------
    sizes : {"geometric", "hpbandster"}
        The system of rungs: levels computed from the minimum resource, or from the maximum.
    brackets : int, optional
        Number of different brackets; by default as many as there are.
    rungs : sequence of sequence of (int, int), optional
        Rungs of your own in place of both: for each bracket, pairs of a number of trials and a resource. The
        numbers of trials fall, and the resources rise.
    """

    name = "hyperband"
    STATE: ClassVar = {
        "_brackets": Brackets,
        "_running": dict[int, Slot],
        "_configs": dict[int, Config],
        "_reached": dict[int, int],
        "_ended": list[int],
        "_trials": int,
        "_exhausted": bool,
    }

    def __init__(
        self, sizes: str = "geometric", *, brackets: int | None = None, rungs: Sequence[Any] | None = None
    ) -> None:
        if sizes not in tuple(SYSTEMS):  # also for what cannot be a key
            raise OptionError(f"sizes = {sizes!r} is unknown; valid are {', '.join(SYSTEMS)}")
        self._rungs = None if rungs is None else own_system(rungs)
        self.options = {"sizes": sizes, "brackets": brackets}
        if self._rungs is not None:
            if sizes != "geometric" or brackets is not None:
                raise OptionError("rungs replace sizes and brackets: give one or the other")
            self.options = {"rungs": [[list(rung) for rung in bracket] for bracket in self._rungs]}
        self._sizes, self._count = sizes, brackets

    def begin(self, setting: Setting) -> None:  # noqa: D102
        super().begin(setting)
        self._brackets = Brackets(self._system(setting))
        self._running: dict[int, Slot] = {}
        self._configs: dict[int, Config] = {}
        self._reached: dict[int, int] = {}
        self._ended: list[int] = []
        self._trials = 0
        self._exhausted = False

    def _system(self, setting: Setting) -> list[Rungs]:
        if self._rungs is not None:
            for bracket in self._rungs:
                low, high = bracket[0][1], bracket[-1][1]
                if not setting.min_resource <= low <= high <= setting.max_resource:
                    raise OptionError(
                        f"the rungs {bracket} have resources from {low} to {high}; min_resource is "
                        f"{setting.min_resource}, and max_resource {setting.max_resource}"
                    )
            return self._rungs
        make = SYSTEMS[self._sizes]
        return make(setting.min_resource, setting.max_resource, setting.eta, self._count)

    def extend(self, setting: Setting) -> None:  # noqa: D102
        if self._rungs is not None:
            super().extend(setting)
        elif setting.max_resource != self.setting.max_resource:
            self._brackets.extend(self._system(setting))
        self.setting = setting
        self._exhausted = False

    def suggest(self, searcher: Searcher) -> Suggestion | None:  # noqa: D102
        searcher.lowest = self._brackets.system[0][0][1]
        slot = self._brackets.next_slot(opens=not self._exhausted)
        if slot is None:
            return None
        rung_slot, trial = slot.rung_slot, slot.rung_slot.trial
        if trial is not None:
            self._running[trial] = slot
            came_from = ResumeFrom(trial, self._reached[trial])
            return Suggestion(trial, self._configs[trial], rung_slot.level, came_from)
        config = searcher.ask()
        if config is None:
            return self._without_more(slot, searcher)
        trial = self._trials
        self._trials += 1
        self._brackets[slot.bracket].assign(rung_slot, trial)
        self._running[trial], self._configs[trial] = slot, config
        return Suggestion(trial, config, rung_slot.level)

    def _without_more(self, slot: Slot, searcher: Searcher) -> Suggestion | None:
        """Close the rungs that lack new trials, because there are none, and suggest a trial to resume."""
        self._exhausted = True
        self._ended += self._brackets.close()
        self._ended += self._brackets.on_result(slot, nan)
        return self.suggest(searcher)

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:  # noqa: ARG002, D102
        return Decision.STOP if resource >= self._running[trial].rung_slot.level else Decision.CONTINUE

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:  # noqa: D102
        slot = self._running[trial]
        if resource != slot.rung_slot.level:
            raise ValueError(
                f"trial {trial} ended at {resource}, not at its rung's level {slot.rung_slot.level}"
            )
        self._reached[trial] = resource
        last = slot.rung_slot.rung == len(self._brackets[slot.bracket].rungs) - 1
        changed = self._occupy(trial, loss, {trial: State.PAUSED})
        if last:
            self._forget(trial)
            changed[trial] = State.TERMINATED
        return changed

    def on_error(self, trial: int) -> dict[int, State]:  # noqa: D102
        changed = self._occupy(trial, nan, {})
        self._forget(trial)
        return changed

    def _occupy(self, trial: int, loss: float, changed: dict[int, State]) -> dict[int, State]:
        """Occupy the slot of a trial; return `changed` with the trials that are not promoted."""
        self._ended += self._brackets.on_result(self._running.pop(trial), loss)
        for ended in self._ended:
            changed[ended] = State.TERMINATED
            self._forget(ended)
        self._ended.clear()
        return changed

    def _forget(self, trial: int) -> None:
        self._configs.pop(trial, None)
        self._reached.pop(trial, None)

    @property
    def is_done(self) -> bool:  # noqa: D102
        return self._exhausted and not self._running and self._brackets.primary == self._brackets.count

    @property
    def rounds(self) -> int:
        """The number of times that all kinds of brackets are complete."""
        return self._brackets.rounds
