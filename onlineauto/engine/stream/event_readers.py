"""Readers of single events, as texts or as mappings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from onlineauto.engine.stream.source import kind_of, open_lines
from onlineauto.engine.stream.validity import other_names
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.mappings.mapping_reader import MappingReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.features.block import Block, Rules
    from onlineauto.features.namespaces import Namespaces
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.lines.line_reader import LineReader
    from onlineauto.formats.mappings.encoded_event import EncodedEvent
    from onlineauto.formats.records.reader_state_kernels import Reader
    from onlineauto.options import Configuration

    OneEventLike: TypeAlias = str | bytes | Mapping[str, Any] | EncodedEvent | Sequence[str] | Sequence[bytes]
    """VW text or JSON of one event, a list of the lines of the text, or a mapping for
    `onlineauto.interop.from_dicts`."""

_TEXTS: Final = (str, bytes, list, tuple)
"""Types of an event that is a text, or the lines of one."""


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
    has_vw_names: bool = False

    def reader_of(self, event: OneEventLike) -> ReadsOne:
        """Return the reader for an event."""
        if isinstance(event, _TEXTS):
            return self.text
        if self.has_vw_names:
            raise other_names("vw", "columns")
        return self.mapping


def event_readers(configuration: Configuration) -> EventReaders:
    """Return new readers of events, configured by the options."""
    features, actions = configuration[FeatureOptions], kind_of(configuration).endswith("adf")
    return EventReaders(
        text=open_lines(b"", configuration),
        mapping=MappingReader(
            actions=actions,
            hash=features.hash,
            hash_seed=features.hash_seed,
            identities=frozenset(features.name_columns),
        ),
        has_vw_names=features.names == "vw",
    )
