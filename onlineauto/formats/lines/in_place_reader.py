"""``InPlaceReader``: reads single events into records at fixed addresses."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.formats.lines.line_kernels import DONE
from onlineauto.formats.lines.line_reader import LineReader, join_lines
from onlineauto.formats.records.reader_state_kernels import FINE, NAMES, measure
from onlineauto.jit import Bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.formats.records.reader_state_kernels import Reader

_MOST = 1 << 16
"""Maximum size of a text for which records are allocated in advance for any content."""


class _Kernels(NamedTuple):
    """The kernels that read single events, bound to the records of a reader."""

    buffer: NDArray[np.uint8]
    reader: Reader
    most_bytes: int
    view: memoryview[int]
    sizes: memoryview[int]
    line_number: NDArray[Any]
    fatal: NDArray[Any]
    mark: Bound
    read: Bound
    measure: Bound


class InPlaceReader(LineReader):
    """A reader of lines whose kernels are bound to its records, so that calling them is fast.

    A format implements `_bind` in addition to the methods of `LineReader`.
    """

    _kernels: _Kernels | None = None

    @abstractmethod
    def _bind(self, most_bytes: int) -> tuple[Bound, Bound]:
        """Allocate records for any text of `most_bytes` bytes; return kernels that mark and read a text."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy: all except the addresses of arrays."""
        return vars(self) | {"_kernels": None}

    def read(self, text: str | bytes | Sequence[str | bytes]) -> bool:
        """Read a text of one ordinary event into the records and measure it; return False for other texts."""
        if isinstance(text, list | tuple):
            text = join_lines(text)
        data: Any = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        end = len(data)
        kernels = self._kernels
        if end > min(_MOST, self._text_bytes):
            return False
        fits = kernels is not None and kernels.buffer is self._buffer and kernels.reader is self.records
        if kernels is None or not fits or end > kernels.most_bytes:
            self._kernels = kernels = self._bind_kernels(min(2 * end, _MOST))
        kernels.view[:end] = data
        kernels.line_number[0], kernels.fatal[0] = 0, False
        kernels.mark(end)
        reason, _ = kernels.read(end)
        kernels.measure()
        if kernels.sizes[NAMES] != len(self.namespaces):
            self._collect_names()
        if reason == DONE and kernels.sizes[FINE]:
            return True
        state = self.records.state[0]
        state["problem_count"], state["problems"] = 0, 0  # `parse_one` reads the text again and reports them
        return False

    def _bind_kernels(self, most_bytes: int) -> _Kernels:
        """Return the kernels, bound to records that are large enough for any text of `most_bytes` bytes."""
        mark, read = self._bind(most_bytes)
        reader, buffer, sizes = self.records, self._buffer, self.sizes
        return _Kernels(
            buffer,
            reader,
            most_bytes,
            memoryview(buffer),  # type: ignore[arg-type]
            memoryview(sizes),  # type: ignore[arg-type]
            reader.state["line_number"],
            reader.state["fatal"],
            mark,
            read,
            measure=Bound(measure, reader, sizes, brief=True),
        )
