"""``Parents``: the source of parents and targets of DEHB. The base class of both variants."""

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
    """Chooses parents and targets, and selects the better of a child and its target.

    Parameters
    ----------
    setting : Setting
    codes : list of float64[width]
        The code of each trial; DEHB appends to it.
    draw : Draw
    factor, rate : float
        Parameters of mutation and crossover.
    strategy : str
        Name of the mutation and the crossover.
    brackets : int or None
        Number of kinds of brackets that alternate.

    Attributes
    ----------
    system : list of rungs
    brackets : Brackets
        Set by DEHB.
    keeps : bool
        True if complete brackets are still read.
    promoting : int
        Brackets from this number on have new trials in all slots.
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
        """Set up the rung system and the state of the subclass."""

    @abstractmethod
    def searches(self, slot: Slot) -> bool:
        """Return whether the config of a slot comes from the searcher."""

    @abstractmethod
    def trial_to_promote(
        self, slot: Slot, running: Collection[int], reached: Mapping[int, int]
    ) -> int | None:
        """Return the trial that is promoted to a slot; None if a new trial begins there."""

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

    @abstractmethod
    def is_past_promotion(self) -> bool:
        """Return whether no more trials will be promoted."""

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
