"""What an explorer says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration

__all__ = ["Explorer", "explores"]

_EXPLORING = ("cb_explore", "cb_explore_adf", "ccb_explore_adf")


def explores(configuration: Configuration) -> bool:
    """Whether there is anything to explore; else options of explorers have no effect."""
    return not configuration.supplied.isdisjoint(_EXPLORING)


class Explorer(ABC):
    """How scores become probabilities of actions; what it computes is its kernel's part.

    Attributes
    ----------
    name : str
        What VW calls it, mostly behind ``cb_explore_adf_``.
    flags : tuple of str
        Options of which any chooses it; of the default explorer there is none.
    uses : tuple of str
        Options that explorers share and this one goes by.
    epsilon : float
        The default of ``--epsilon``.
    stack : tuple of str
        What VW calls its reductions, from the bottom to the top, if not ``cb_explore_adf_`` and the name.
    cb_types : tuple of str
        What costs can be learnt from. With mtr alone they are learnt as they are, whatever their probability.
    predicts_apart : bool
        VW's driver has it predict before it learns, since its learning returns no prediction.
    """

    name: ClassVar[str]
    flags: ClassVar[tuple[str, ...]]
    uses: ClassVar[tuple[str, ...]] = ("epsilon",)
    epsilon: ClassVar[float] = 0.0
    stack: ClassVar[tuple[str, ...]] = ()
    cb_types: ClassVar[tuple[str, ...]] = ("mtr", "ips", "dr", "dm")
    predicts_apart: ClassVar[bool] = True

    @property
    def reductions(self) -> tuple[str, ...]:
        """What VW calls its reductions, from the bottom to the top."""
        return self.stack or (f"cb_explore_adf_{self.name}",)

    @abstractmethod
    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """What its kernel is to know, by the fields of `onlineauto.explorers._kernels.Exploration`."""

    def announced(self, configuration: Configuration) -> tuple[str, ...]:
        """Lines that VW prints of it before all others."""
        del configuration
        return ()

    def parts(self, configuration: Configuration, *, estimates: bool, exact: bool) -> int:
        """Models that it needs, each a lane of weights; those that estimate costs for it are among them."""
        del configuration, exact
        return 2 if estimates else 1

    def bounds(self, configuration: Configuration) -> bool:
        """Whether it goes by the range in which the cost of each action plausibly lies."""
        del configuration
        return False
