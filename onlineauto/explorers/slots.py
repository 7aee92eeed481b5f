"""The flags of conditional contextual bandits: several slots, each with an action of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlineauto.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOptions:
    """Slots."""

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
