"""MappingReader: reads events given as mappings, one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from marshal import dumps
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.errors import InputError
from onlineauto.formats.mappings.event_kernels import read_event
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_block import named_block
from onlineauto.formats.mappings.named_event import named_event
from onlineauto.formats.records.reader_state_kernels import Rules
from onlineauto.formats.records.record_reader import InPlace, RecordReader
from onlineauto.formats.records.size_kernels import SIZES
from onlineauto.jit import Bound

if TYPE_CHECKING:
    from onlineauto.features.block import Block

__all__ = ["MappingReader"]

_MISSING: Final = ...
_VERSION = 2
"""Version of what `marshal` writes, the last one that writes each value where it stands."""
_KEYS = frozenset(
    ("context", "actions", "chosen", "action", "cost", "probability", "label", "weight", "initial")
)
_FIRST_BYTES = 1 << 12
_LEAST_FEATURE, _LEAST_LINE = 5, 2
"""Bytes of the shortest feature, an empty name in a list, and of the shortest line, an empty dictionary."""


class MappingReader(RecordReader):
    """Reads events given as mappings; see `onlineauto.interop.from_dicts` for what they have.

    An event of usual values is read by a kernel, from what `marshal` writes of it. All others are read by
    `named_event`, many times slower; what both read is the same.

    Parameters
    ----------
    actions : bool
        True if events have actions, false if they are of a single line.
    hash, hash_seed : str, int
        The options of the workspace that will use the events.

    Examples
    --------
    >>> reader = MappingReader(actions=True)
    >>> event = {"context": {"user": "tom"}, "actions": [{"article": "politics"}, {"article": "sports"}]}
    >>> reader.read(event)
    InPlace(lines=3, spans=3, features=3, widest=1)
    >>> reader.make_block().namespaces.names
    [b'user', b'article']
    """

    def __init__(self, *, actions: bool, hash: str = "strings", hash_seed: int = 0) -> None:  # noqa: A002 - the option's name
        rules = Rules(hash_all=hash == "all", hash_seed=np.uint32(hash_seed))
        super().__init__(rules, np.empty(0, np.uint8))
        self._names = NameHashes(hash=hash, hash_seed=hash_seed)
        self.read_by = self._names.rules
        self._actions = actions
        self._sizes = np.zeros(SIZES, np.int64)
        self._bound: Bound | None = None
        self._enlarge(_FIRST_BYTES)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy: all but the addresses of arrays."""
        return vars(self) | {"_bound": None}

    def read(self, event: Mapping[str, Any]) -> InPlace | None:
        """Read an event of usual values into the records, and return its sizes; None if it is another."""
        if type(event) is not dict or not event.keys() <= _KEYS or ("actions" in event) != self._actions:
            return None
        get = event.get
        values = (
            get("context", _MISSING),
            get("actions", _MISSING),
            get("chosen", _MISSING),
            get("action", _MISSING),
            get("cost", _MISSING),
            get("probability", _MISSING),
            get("label", _MISSING),
            get("weight", _MISSING),
            get("initial", _MISSING),
        )
        try:
            data = dumps(values, _VERSION)
        except ValueError:  # a value is of no type of Python's own
            return None
        end = len(data)
        if end > self._most_bytes:
            self._enlarge(2 * end)
        self._buffer[:end] = np.frombuffer(data, np.uint8)
        if self._bound is None:
            self._bound = Bound(read_event, self._buffer, 0, self._reader, self._sizes, varying=1)
        self._bound(end)
        fine, names, *sizes = self._sizes.tolist()
        if names != len(self.namespaces):
            self._collect_names()
        if not fine:
            if 4 * names > len(self._reader.names):
                self._grow_names()
                self._bound = None
            return None
        return InPlace._make(sizes)

    def parse_one(self, event: Mapping[str, Any]) -> Block:
        """Return the block of an event, whatever its values are.

        Raises
        ------
        TypeError
            It is no mapping.
        InputError
            A key is unknown, a value is invalid, or it has actions or not where the other is asked for.
        """
        if not isinstance(event, Mapping):
            raise TypeError(f"an event is a text (str or bytes) or a mapping, not {type(event).__name__}")
        if ("actions" in event) != self._actions:
            has, wants = ("no actions", "actions") if self._actions else ("actions", "none")
            raise InputError(f"event: it has {has}, and events of this workspace have {wants}")
        if self.read(event) is not None:
            return self.make_block()
        return named_block([named_event(event)], self._names)

    def _enlarge(self, most_bytes: int) -> None:
        """Make room for events of so many bytes, and for the names that a kernel joins to their values."""
        self._most_bytes = most_bytes
        self._buffer = np.empty(2 * most_bytes + 8, np.uint8)
        features = most_bytes // _LEAST_FEATURE + 1
        self._make_records(
            events=1, lines=most_bytes // _LEAST_LINE + 1, spans=features, features=3 * features + 2, costs=1
        )
        self._bound = None
