"""``Parents``: where the parents and targets of DEHB come from. The base class of both kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from onlineauto.tune.schedulers.evolution.differential_evolution import offspring, parents_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy as np

    from onlineauto.tune.schedulers.brackets import Brackets, Slot
    from onlineauto.tune.schedulers.rungs import Rungs
    from onlineauto.tune.schedulers.scheduler import Setting
    from onlineauto.tune.spaces.draw import Draw


class Parents(ABC):
    """Chooses parents and targets, and keeps the better of a child and its target.

    Parameters
    ----------
    setting : Setting
    codes : list of float64[width]
        The code of each trial; DEHB adds to it.
    draw : Draw
    factor, rate : float
        Of mutation and crossover.
    strategy : str
        Both by name.
    brackets : int or None
        How many kinds of brackets take turns.

    Attributes
    ----------
    system : list of rungs
    brackets : Brackets
        Set by DEHB.
    keeps : bool
        True if brackets that are complete are still read.
    promoting : int
        Brackets from this number on have new trials in all their slots.
    """

    keeps: bool
    promoting: int
    system: list[Rungs]
    brackets: Brackets

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
        """Make the rung system, and what else there is."""

    @abstractmethod
    def searches(self, slot: Slot) -> bool:
        """Return whether the config of a slot comes from the searcher."""

    @abstractmethod
    def promoted(self, slot: Slot, running: Collection[int], reached: Mapping[int, int]) -> int | None:
        """Return the trial that goes on in a slot; None if a new one begins there."""

    @abstractmethod
    def target(self, slot: Slot) -> int | None:
        """Return the number of what the trial in a slot competes with, or None."""

    @abstractmethod
    def child(self, slot: Slot, target: int | None, rng: np.random.Generator) -> np.ndarray:
        """Return the code of a new config for a slot."""

    @abstractmethod
    def selected(self, slot: Slot, trial: int, target: int | None, loss: float) -> tuple[int, float]:
        """Keep the better of a trial and its target; return the trial of the slot and its loss."""

    @abstractmethod
    def pauses(self, slot: Slot) -> bool:
        """Return whether a trial in this slot may be promoted."""

    @abstractmethod
    def is_past_promotion(self) -> bool:
        """Return whether no trial is promoted any more."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""

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
