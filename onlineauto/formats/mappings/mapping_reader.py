"""MappingReader: reads events that are Python mappings, one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from onlineauto.errors import EventTypeError, InputError
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.lines.line_reader import RecordReader
from onlineauto.formats.lines.reader_state_kernels import FINE, NAMES, ReaderRules
from onlineauto.formats.mappings.encoded_event import (
    KEYS,
    EncodedEvent,
    marshal_values,
    values_of,
    with_lists,
)
from onlineauto.formats.mappings.event_kernels import read_event, read_outcome
from onlineauto.formats.mappings.identities import name_values
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import named_block, named_event
from onlineauto.jit import Bound, Sealed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.formats.lines.reader_state_kernels import Reader
    from onlineauto.formats.mappings.identities import Identities

_KEYS = frozenset(KEYS)
_FIRST_BYTES = 1 << 12
_BRIEF = 1 << 16
"""Maximum size in bytes of events that are read without releasing the GIL."""
_LEAST_SPAN, _LEAST_LINE = 5, 2
"""Minimum size in bytes of a span (its name), and of a line (an empty dictionary); a feature may have one."""


class EncodedReading(NamedTuple):
    """Arguments of a kernel that reads encoded events into the records of a reader, until these grow."""

    of_type: type[EncodedEvent] | None  # events of this type have their encoding as `data`
    encode: Callable[[Any], bytes | None]  # for all others
    kernel: int  # address of `read_event`
    outcome_kernel: int  # address of `read_outcome`
    data: NDArray[np.uint8]  # the encoded event, and as much free space after it
    most_bytes: int  # maximum size of an event
    records: Sealed[Reader]


class _Bound(NamedTuple):
    """The kernel that reads single events, bound to the records of a reader."""

    view: memoryview[int]
    sizes: memoryview[int]
    read: Bound
    reading: EncodedReading


class MappingReader(RecordReader):
    """Reads events that are mappings; `onlineauto.interop.from_dicts` documents their keys.

    A kernel reads an event of ordinary values, encoded by `marshal`. `named_event` reads all other events,
    many times slower. Both give the same result.

    >>> reader = MappingReader(actions=True)
    >>> event = {"context": {"user": "tom"}, "actions": [{"article": "politics"}, {"article": "sports"}]}
    >>> reader.read(event)
    True
    >>> reader.make_block().namespaces.names
    [b'user', b'article']
    """

    objects = "event"

    def __init__(
        self,
        *,
        actions: bool,
        hash: str = "strings",  # noqa: A002 - the option's name
        hash_seed: int = 0,
        identities: Identities = frozenset(),
    ) -> None:
        rules = ReaderRules(hash_all=hash == "all", hash_seed=np.uint32(hash_seed))
        super().__init__(rules, np.empty(0, np.uint8))
        self._names = NameHashes(hash=hash, hash_seed=hash_seed).of_columns(identities)
        self.identities, self.read_by = identities, self._names.rules
        self._actions = actions
        self._bound: _Bound | None = None
        self.last: bytes | None = None  # the encoded event in the records
        self._enlarge(_FIRST_BYTES)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy: all except the addresses of arrays."""
        return vars(self) | {"_bound": None}

    def read(self, event: Mapping[str, Any] | EncodedEvent) -> bool:
        """Read an event of ordinary values into the records and measure it; return False for other events."""
        data = self.encode(event)
        if data is None:
            return self._read_lists(event)
        end = len(data)
        if end > self._most_bytes:
            self._enlarge(2 * end)
        view, sizes, read, _ = self._bound or self._bind()
        view[:end] = data
        read(end)
        self.last = data if sizes[FINE] else None
        names = sizes[NAMES]
        if names != len(self.namespaces.names):
            self._collect_names()
        if sizes[FINE]:
            return True
        if 4 * names > len(self.records.names):
            self._grow_names()
            self._bound = None
        return self._read_lists(event)

    def _read_lists(self, event: Mapping[str, Any] | EncodedEvent) -> bool:
        """Read an event whose arrays are lists now; return False if it has no arrays."""
        if type(event) is EncodedEvent:
            return event.list_arrays() and self.read(event)
        lists = with_lists(event) if type(event) is dict else None
        return lists is not None and self.read(lists)

    def encode(self, event: Mapping[str, Any] | EncodedEvent) -> bytes | None:
        """Return an event, encoded by `marshal`; None if it is not of this reader's kind, or not ordinary."""
        if type(event) is EncodedEvent and self._actions:
            return event.data
        if self.identities and type(event) is dict:
            event = name_values(event, self.identities)
        if type(event) is dict and event.keys() <= _KEYS and ("actions" in event) == self._actions:
            return marshal_values(values_of(event))
        return None

    def encoded(self) -> EncodedReading:
        """Return what a kernel needs to read encoded events into the present records."""
        return (self._bound or self._bind()).reading

    def _bind(self) -> _Bound:
        """Return the reading kernel, bound to the records."""
        buffer, sizes, records = self._buffer, self.sizes, Sealed(self.records)
        arguments = buffer, 0, records.record, sizes
        read = Bound(read_event, *arguments, varying=1, brief=self._most_bytes <= _BRIEF)
        event, outcome = (cast("Any", each).address(*arguments) for each in (read_event, read_outcome))
        of_type = EncodedEvent if self._actions else None
        reading = EncodedReading(of_type, self.encode, event, outcome, buffer, self._most_bytes, records)
        self._bound = bound = _Bound(buffer.data, sizes.data, read, reading)
        return bound

    def parse_one(self, event: Mapping[str, Any] | EncodedEvent) -> Block:
        """Return the block of an event with any values."""
        mapping = event.mapping() if type(event) is EncodedEvent else event
        if not isinstance(mapping, Mapping):
            type_name = type(event).__name__
            raise EventTypeError(f"an event is a text, a list of its lines, or a mapping, not {type_name}")
        mapping = name_values(mapping, self.identities)
        if ("actions" in mapping) != self._actions:
            actual, expected = ("no actions", "actions") if self._actions else ("actions", "none")
            raise InputError(f"event: it has {actual}, but events of this workspace have {expected}")
        if self.read(event):
            return self.make_block()
        return named_block([named_event(mapping)], self._names)

    def take_problems(self) -> Diagnostics:
        """Return no problems: any problem of a mapping raises an error."""
        return Diagnostics()

    def _enlarge(self, most_bytes: int) -> None:
        """Allocate for events of up to `most_bytes` bytes, and for names that a kernel joins with values."""
        self._most_bytes = most_bytes
        self._buffer = np.empty(2 * most_bytes + 8, np.uint8)
        self._make_records(
            events=1,
            lines=most_bytes // _LEAST_LINE + 1,
            spans=most_bytes // _LEAST_SPAN + 1,
            features=3 * (most_bytes + 1) + 2,
            costs=1,
        )
        self._bound = None
