"""Slot finder: find the slots of each block, and remember whether slots have an index feature yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.explorers.options import SlotOptions
from onlineauto.features.options import FeatureOptions
from onlineauto.features.slots import Slots, find_slots

if TYPE_CHECKING:
    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.options import Configuration
    from onlineauto.state.stored import Stored


class SlotFinder:
    """Finds slots; see `onlineauto.features.slots`."""

    def __init__(self, configuration: Configuration) -> None:
        self._hash_seed = configuration[FeatureOptions].hash_seed
        self._indexed = None if configuration[SlotOptions].ccb_no_slot_index else False

    def find(self, block: Block, layout: StreamLayout) -> Slots:
        """Return the slots of a block, and remember whether later slots have an index feature.

        The layout decides which features are ignored.
        """
        slots = self.found(block, layout)
        if self._indexed is False:
            self._indexed = slots.first_indexed < len(block)
        return slots

    def found(self, block: Block, layout: StreamLayout) -> Slots:
        """Return the slots of a block like `find`, but leave the state unchanged."""
        return find_slots(block, layout, hash_seed=self._hash_seed, indexed=self._indexed)

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {"told": self._indexed}

    def restore(self, stored: Stored) -> None:
        """Restore a state that was stored with the same options."""
        indexed = stored["told"]
        if indexed.is_none() != (self._indexed is None):
            raise indexed.fail("known" if indexed.is_none() else "unknown, as these options have it")
        self._indexed = None if indexed.is_none() else indexed.truth()
