"""``TickFeed``: divide a stream of bytes into the parts of ticks without parsing the events."""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING

from onlineauto.formats.sources.source import ByteSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.formats.sources.source import Source

_CHUNK = 1 << 18
_BLANK = re.compile(rb"\n(?:[ \t\r]*\n)+")
_LINE = re.compile(rb"\n")


class TickFeed:
    r"""The bytes of a stream, in ticks of `parts` parts of `part_events` events each.

    An event is a line or, if events are `multiline`, all lines up to a blank line. `drop_before` drops ticks
    that no worker needs any more. The object is thread-safe.

    Parameters
    ----------
    source : path, bytes or binary file
        Text or JSON, compressed or not.
    parts, part_events : int
        Number of parts of a tick, and number of events of a part.
    warm_up : int
        Number of events at the start whose ticks have one part each.
    multiline : bool
        Whether a blank line ends an event.
    tick : int
        The first tick that is needed; earlier ticks are skipped.

    Examples
    --------
    >>> feed = TickFeed(b"1 |a x\n0 |a y\n1 |a z\n", parts=2, part_events=1, multiline=False)
    >>> feed.parts_of(0, 0, 1), feed.parts_of(1, 0, 1), feed.parts_of(2, 0, 1), feed.end
    ([b'1 |a x\n', b'0 |a y\n'], [b'1 |a z\n'], None, 2)
    """

    def __init__(
        self,
        source: Source,
        *,
        parts: int,
        part_events: int,
        multiline: bool,
        warm_up: int = 0,
        tick: int = 0,
    ) -> None:
        self._source = ByteSource(source)
        self._n, self._events, self._separator = parts, part_events, _BLANK if multiline else _LINE
        self._ticks: dict[int, list[bytes]] = {}
        self._first, self._next = tick, 0
        self._single = -(-warm_up // part_events)
        self._cut = self._make_parts()
        self._lock = Lock()
        self.end: int | None = None
        self._count = 0

    def parts_of(self, tick: int, rank: int, n: int) -> list[bytes] | None:
        """Return the parts of a tick for a rank among `n`, in order; None after the end of the stream."""
        with self._lock:
            while tick >= self._next and self.end is None:
                self._read_tick()
            if self.end is not None and tick >= self.end:
                return None
            parts = self._ticks[tick]
        return parts[rank * len(parts) // n : (rank + 1) * len(parts) // n]

    def drop_before(self, tick: int) -> None:
        """Drop the ticks before this one."""
        with self._lock:
            for old in [each for each in self._ticks if each < tick]:
                del self._ticks[old]

    def close(self) -> None:
        """Close the stream if this object has opened it."""
        with self._lock:
            self._source.close()

    def count(self) -> int:
        """Read to the end; return the number of events."""
        with self._lock:
            while self.end is None:
                self._read_tick()
        return self._count

    def _read_tick(self) -> None:
        n = 1 if self._next < self._single else self._n
        parts = [part for _, part in zip(range(n), self._cut, strict=False)]
        if not parts:
            self.end = self._next
            self._source.close()
            return
        if self._next >= self._first:
            self._ticks[self._next] = parts
        self._next += 1

    def _make_parts(self) -> Iterator[bytes]:
        """Yield parts of equal numbers of events; the last part has the remaining ones."""
        left, searched, start, n = b"", 0, 0, 0
        while chunk := self._source.read(_CHUNK):
            left += chunk
            for match in self._separator.finditer(left, searched):
                if match.end() == len(left) and self._separator is _BLANK:
                    break  # more blank lines may follow
                searched, n = match.end(), n + 1
                if n == self._events:
                    self._count += n
                    yield left[start:searched]
                    start, n = searched, 0
            left, searched, start = left[start:], searched - start, 0
        if rest := left.rstrip():
            self._count += len(self._separator.findall(rest)) + 1
            yield left
