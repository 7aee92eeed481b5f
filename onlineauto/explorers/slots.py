"""The flags of conditional contextual bandits: several slots, each with an action of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlineauto.options import option

__all__ = ["SlotOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOptions:
    """Slots."""

    title: ClassVar[str] = "Exploration: slots"

    ccb_explore_adf: bool = option(
        False,
        "Learn like --cb_explore_adf for each slot of an event, one after the other; what one chose the next "
        "cannot have. Always samples as --cb_sample does.",
        keep=True,
    )
    all_slots_loss: bool = option(
        False, "Report the loss of all slots, not of the first one only.", needs=("ccb_explore_adf",)
    )
    ccb_no_slot_index: bool = option(
        False,
        "Do not tell slots from one another by features and interactions of their number.",
        keep=True,
        needs=("ccb_explore_adf",),
    )
