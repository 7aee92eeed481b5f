"""``Dehb``: differential evolution in the brackets of Hyperband.

There are two variants, which differ in the source of parents and targets; see `populations` and
`parent_slots`. Both store one loss for each trial and level, so losses of different levels are never
compared. Both look up a job in its own bracket and not in the newest one.

Source: Awad, Mallik and Hutter: DEHB, IJCAI 2021.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlineauto.errors import OptionError
from onlineauto.tune.plain import PlainState
from onlineauto.tune.schedulers.brackets import Brackets, Slot
from onlineauto.tune.schedulers.evolution import STRATEGIES, Parents, ParentSlots, Populations
from onlineauto.tune.schedulers.scheduler import Decision, ResumeFrom, Scheduler, Setting, State, Suggestion
from onlineauto.tune.spaces import Config
from onlineauto.tune.spaces.draw import Draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.tune.searchers.searcher import Searcher

_PURPOSE = 2
_PURPOSE_OF_CODES = 4
_VARIANTS: Mapping[str, type[Parents]] = {"population": Populations, "slots": ParentSlots}
_TRIES = 50
"""Maximum number of children per trial if configs were tried before; the second half are random configs."""


class Dehb(PlainState, Scheduler):
    """DEHB: evolved configs replace random ones; later brackets have new configs in all rungs."""

    name = "dehb"
    needs_space = True
    STATE: ClassVar = {
        "_configs": list[Config],
        "_reached": dict[int, int],
        "_brackets": Brackets,
        "_parents": Parents,
        "_running": dict[int, tuple[Slot, int | None]],
        "_asked": int,
        "_exhausted": bool,
    }
    default_searcher = "random"

    def __init__(
        self,
        variant: str = "population",
        *,
        factor: float = 0.5,
        rate: float = 0.5,
        strategy: str = "rand1_bin",
        allow_duplicates: bool = False,
        brackets: int | None = None,
    ) -> None:
        if variant not in _VARIANTS:
            raise OptionError(f"variant = {variant!r} is unknown; valid are {', '.join(_VARIANTS)}")
        if not 0 < factor <= 2 or not 0 <= rate <= 1:
            raise OptionError(f"factor = {factor}, rate = {rate}: valid is 0 < factor <= 2, 0 <= rate <= 1")
        valid = STRATEGIES if variant == "population" else ("rand1_bin",)
        if strategy not in valid:
            raise OptionError(f"strategy = {strategy!r}: valid for {variant} are {', '.join(valid)}")
        self.options = {
            "variant": variant,
            "factor": factor,
            "rate": rate,
            "strategy": strategy,
            "allow_duplicates": allow_duplicates,
            "brackets": brackets,
        }
        self._variant, self._count, self._allows = variant, brackets, allow_duplicates
        self._factor, self._rate, self._strategy = factor, rate, strategy

    def begin(self, setting: Setting) -> None:  # noqa: D102
        super().begin(setting)
        self._draw = Draw(setting.seed, _PURPOSE)
        self._draw_of_codes = Draw(setting.seed, _PURPOSE_OF_CODES)
        self._codes: list[np.ndarray] = []
        self._configs: list[Config] = []
        self._reached: dict[int, int] = {}
        self._tried: set[tuple[Any, ...]] = set()
        self._parents = _VARIANTS[self._variant](
            setting,
            self._codes,
            self._draw,
            factor=self._factor,
            rate=self._rate,
            strategy=self._strategy,
            brackets=self._count,
        )
        self._brackets = Brackets(
            self._parents.system, keeps=self._parents.keeps, promoting=self._parents.promoting
        )
        self._parents.brackets = self._brackets
        self._running: dict[int, tuple[Slot, int | None]] = {}
        self._asked = 1  # random stream 0 creates the populations
        self._exhausted = False

    def extend(self, setting: Setting) -> None:  # noqa: D102
        super().extend(setting)
        self._exhausted = False

    def suggest(self, searcher: Searcher) -> Suggestion | None:  # noqa: D102
        slot = self._brackets.next_slot(opens=not self._exhausted)
        if slot is None:
            return None
        trial = slot.rung_slot.trial
        if trial is None:
            trial = self._parents.trial_to_promote(slot, self._running.keys(), self._reached)
        if trial is not None:
            return self._resume_trial(slot, trial)
        number = self._asked
        self._asked += 1
        code: np.ndarray | None = None
        config: Config | None = None
        target = self._parents.target(slot)
        refusals = searcher.refusals
        if searcher.queued or self._parents.searches(slot):
            config = searcher.ask(self._was_tried)
        if config is None and searcher.refusals == refusals:
            config, code = self._child(slot, target, self._draw.at(number))
            if config is None:
                searcher.refuse()
            elif not searcher.take(searcher.config_of_log or config):
                config = None
        if config is None:
            return self._without_more(slot, searcher)
        if self._parents.searches(slot) or (searcher.config_of_log or config) != config:
            config = searcher.config_of_log or config
            code = self.setting.space.encode_within(config, self._draw_of_codes.at(number))
        return self._begin_trial(slot, target, config, code)

    def _was_tried(self, config: Config) -> bool:
        return not self._allows and tuple(config.items()) in self._tried

    def _child(
        self, slot: Slot, target: int | None, rng: np.random.Generator
    ) -> tuple[Config | None, np.ndarray | None]:
        """Return an untried config and its code, or None and None if all attempts were tried before."""
        for tried in range(_TRIES):
            by_chance = 2 * tried >= _TRIES
            code = (
                rng.random(self.setting.space.width) if by_chance else self._parents.child(slot, target, rng)
            )
            config = self.setting.space.decode(code)
            if not self._was_tried(config):
                return config, code
        return None, None

    def _begin_trial(
        self, slot: Slot, target: int | None, config: Config, code: np.ndarray | None
    ) -> Suggestion:
        trial = len(self._codes)
        self._codes.append(self.setting.space.encode(config) if code is None else code)
        self._configs.append(config)
        self._tried.add(tuple(config.items()))
        self._brackets[slot.bracket].assign(slot.rung_slot, trial)
        self._running[trial] = slot, target
        return Suggestion(trial, config, slot.rung_slot.level)

    def _resume_trial(self, slot: Slot, trial: int) -> Suggestion:
        self._brackets[slot.bracket].assign(slot.rung_slot, trial)
        self._running[trial] = slot, self._parents.target(slot)
        came_from = ResumeFrom(trial, self._reached[trial])
        return Suggestion(trial, self._configs[trial], slot.rung_slot.level, came_from)

    def _without_more(self, slot: Slot, searcher: Searcher) -> Suggestion | None:
        """Close the rungs that lack new trials, because there are none, and suggest a trial to resume."""
        self._exhausted = True
        self._brackets.close()
        self._brackets.on_result(slot, nan)
        return self.suggest(searcher)

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:  # noqa: ARG002, D102
        return Decision.STOP if resource >= self._running[trial][0].rung_slot.level else Decision.CONTINUE

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:  # noqa: D102
        slot, target = self._running.pop(trial)
        if resource != slot.rung_slot.level:
            raise ValueError(
                f"trial {trial} ended at {resource}, not at its rung's level {slot.rung_slot.level}"
            )
        self._reached[trial] = resource
        selected, selected_loss = self._parents.select(slot, trial, target, loss)
        self._brackets[slot.bracket].assign(slot.rung_slot, selected)
        ended = self._brackets.on_result(slot, selected_loss)
        changed = {trial: State.PAUSED if self._parents.pauses(slot) else State.TERMINATED}
        return changed | self._state_changes(ended)

    def on_error(self, trial: int) -> dict[int, State]:  # noqa: D102
        slot, _ = self._running.pop(trial)
        self._reached.pop(trial, None)
        return self._state_changes(self._brackets.on_result(slot, nan))

    def _state_changes(self, trials: list[int]) -> dict[int, State]:
        """Return the state changes of trials that are not promoted, now or in any later bracket."""
        if self._parents.is_past_promotion():
            trials = [*trials, *(trial for trial in self._reached if trial not in self._running)]
        for trial in trials:
            self._reached.pop(trial, None)
        return dict.fromkeys(trials, State.TERMINATED)

    @property
    def is_done(self) -> bool:  # noqa: D102
        return self._exhausted and not self._running and self._brackets.primary == self._brackets.count

    @property
    def rounds(self) -> int:
        """The number of times that all kinds of brackets are complete."""
        return self._brackets.rounds

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        return {**super().state_dict(), "codes": [code.tolist() for code in self._codes]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        self._codes[:] = [np.array(code) for code in state["codes"]]
        super().load_state_dict(state)
        self._tried = {tuple(config.items()) for config in self._configs}
