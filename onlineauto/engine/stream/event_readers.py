"""Readers of single events, as texts or as mappings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from onlineauto.engine.stream.dialect import NATIVE, dialect_of
from onlineauto.engine.stream.source import kind_of, open_lines
from onlineauto.engine.stream.validity import check_names, unknown_names
from onlineauto.explorers.options import SlotOptions
from onlineauto.features.block import NAME_RULES
from onlineauto.features.options import FeatureOptions
from onlineauto.features.slots import Slots, find_slots
from onlineauto.formats.mappings.mapping_reader import MappingReader
from onlineauto.formats.options import TEXT, format_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.features.block import Block, Namespaces, Rules
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.lines.line_reader import LineReader
    from onlineauto.formats.lines.reader_state_kernels import Reader
    from onlineauto.formats.mappings.encoded_event import EncodedEvent
    from onlineauto.options import Configuration

    OneEventLike: TypeAlias = str | bytes | Mapping[str, Any] | EncodedEvent | Sequence[str] | Sequence[bytes]
    """VW text or JSON of one event, a list of the lines of the text, or a mapping for
    `onlineauto.interop.from_dicts`."""
    from onlineauto.features.layout import StreamLayout
    from onlineauto.state.stored import Stored

_TEXTS: Final = (str, bytes, list, tuple)
"""Types of an event that is a text, or the lines of one."""


class SlotFinder:
    """Finds slots; see `onlineauto.features.slots`."""

    def __init__(self, configuration: Configuration) -> None:
        self._hash_seed = configuration[FeatureOptions].hash_seed
        self._indexed = None if configuration[SlotOptions].ccb_no_slot_index else False

    def find(self, block: Block, layout: StreamLayout) -> Slots:
        """Return the slots of a block, and remember whether later slots have an index feature."""
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


class ReadsOne(Protocol):
    """Reads one event after the other."""

    namespaces: Namespaces
    records: Reader
    """The records that the reader fills; other arrays once they have grown."""
    sizes: NDArray[np.int64]
    """The sizes of the event in the records: int64[SIZES]."""

    def names_of(self, event: Any, /) -> Rules:
        """Return the rules by which the names of an event are made, as far as they are known."""

    def read(self, event: Any, /) -> bool:
        """Read an ordinary event into the records; return False if the event needs `parse_one`."""

    def make_block(self) -> Block:
        """Return a Block with copies of the records."""

    def parse_one(self, event: Any, /) -> Block:
        """Return the block of any event; raise an error if the event is invalid."""

    def take_problems(self) -> Diagnostics:
        """Return the problems of the event last read by `parse_one`, and clear them."""


class EventReaders(NamedTuple):
    """A reader of texts and a reader of mappings, each with its own numbers of namespaces."""

    text: LineReader
    mapping: MappingReader
    names: str = "any"
    reads_texts: bool = True  # False if texts are JSON, and the model does not know the rule of its names

    def reader_of(self, event: OneEventLike) -> ReadsOne:
        """Return the reader for an event."""
        if isinstance(event, _TEXTS):
            if not self.reads_texts:
                raise unknown_names()
            return self.text
        check_names(self.names, "columns")
        return self.mapping


def event_readers(configuration: Configuration) -> EventReaders:
    """Return new readers of events, configured by the options."""
    features, actions = configuration[FeatureOptions], kind_of(configuration).endswith("adf")
    is_json, is_exact = format_of(configuration) is not TEXT, dialect_of(configuration) is not NATIVE
    return EventReaders(
        text=open_lines(b"", configuration),
        mapping=MappingReader(
            actions=actions,
            hash=features.hash,
            hash_seed=features.hash_seed,
            identities=frozenset(features.name_columns),
        ),
        names="vw" if is_json and is_exact and features.names not in NAME_RULES else features.names,
        reads_texts=is_exact or not is_json or features.names != "unknown",
    )
