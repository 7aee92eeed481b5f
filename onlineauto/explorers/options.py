"""The options that explorers share: how a bandit's scores become probabilities of actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.sampling import SampleOptions
from onlineauto.options import option

if TYPE_CHECKING:
    from onlineauto.options.option import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOptions:
    """Options of slots."""

    title: ClassVar[str] = "Exploration: slots"

    ccb_explore_adf: bool = option(
        False,
        "Learn like --cb_explore_adf for each slot of an event, one after the other. A slot cannot have the "
        "action of an earlier slot. Always samples as --cb_sample does.",
        keep=True,
    )
    all_slots_loss: bool = option(
        False, "Report the loss of all slots, not of the first one only.", needs=("ccb_explore_adf",)
    )
    ccb_no_slot_index: bool = option(
        False,
        "Leave out the features and interactions by which models distinguish the slots of an event.",
        keep=True,
        needs=("ccb_explore_adf",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorerOptions:
    """Options of exploration."""

    title: ClassVar[str] = "Exploration"

    cb_explore: int | None = option(
        None,
        "Learn like --cb K; predict a probability for each of the K actions.",
        keep=True,
        minimum=1,
        maximum=2**32 - 1,
        metavar="K",
    )
    cb_explore_adf: bool = option(
        False, "Learn like --cb_adf; predict a probability for each action.", keep=True
    )
    epsilon: float = option(
        0.05,
        "Probability that all actions share; the best one gets the rest. With another explorer, the least "
        "probability times the number of actions; then the default is 0, or 0.01 for --scaled_squarecb and "
        "--synthcover.",
        keep=True,
        override=True,
        minimum=0,
        maximum=1,
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    first_only: bool = option(
        False,
        "Let only the first of several best actions get the rest. Without it, they share the rest.",
        keep=True,
        override=True,
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )


EXPLORER_GROUPS: tuple[Group, ...] = (
    ExplorerOptions,
    *(group for explorer in EXPLORERS.values() for group in explorer.options),
    SampleOptions,
    SlotOptions,
)
"""All groups of options of explorers, in the order of the help."""
