"""Readers of events that come one at a time, as texts or as mappings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from onlineauto.engine.stream.source import kind_of, open_lines
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.mappings.mapping_reader import MappingReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.features.namespaces import Namespaces
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.lines.line_reader import LineReader
    from onlineauto.formats.mappings.encoded_event import EncodedEvent
    from onlineauto.formats.records.reader_state_kernels import Reader
    from onlineauto.options import Configuration

    OneEventLike: TypeAlias = str | bytes | Mapping[str, Any] | EncodedEvent | Sequence[str] | Sequence[bytes]
    """VW text or JSON of one event, or the lines of the text in a list; or a mapping as
    `onlineauto.interop.from_dicts` takes it."""

_TEXTS: Final = (str, bytes, list, tuple)
"""Types of an event that is a text, or the lines of one."""


class ReadsOne(Protocol):
    """Reads one event after the other."""

    namespaces: Namespaces
    records: Reader
    """The records that it fills: other arrays as soon as they must grow."""
    sizes: NDArray[np.int64]
    """The sizes of the event in the records: int64[SIZES]."""

    def read(self, event: Any, /) -> bool:
        """Read a usual event into the records; return False if it is another."""

    def make_block(self) -> Block:
        """Return a Block with copies of the records."""

    def parse_one(self, event: Any, /) -> Block:
        """Return the block of an event, whatever it is; raise an error if it is none."""

    def take_problems(self) -> Diagnostics:
        """Return the problems of the event that `parse_one` has read, and forget them."""


class EventReaders(NamedTuple):
    """A reader of texts and one of mappings, each with its own numbers of namespaces."""

    text: LineReader
    mapping: MappingReader

    def reader_of(self, event: OneEventLike) -> ReadsOne:
        """Return the reader for an event."""
        return self.text if isinstance(event, _TEXTS) else self.mapping


def event_readers(configuration: Configuration) -> EventReaders:
    """Return readers of events as the options say, which have seen nothing yet."""
    features, actions = configuration[FeatureOptions], kind_of(configuration).endswith("adf")
    return EventReaders(
        text=open_lines(b"", configuration),
        mapping=MappingReader(actions=actions, hash=features.hash, hash_seed=features.hash_seed),
    )
