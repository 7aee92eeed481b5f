"""Read VW text, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from onlineauto.features.hash_kernels import murmur3
from onlineauto.formats.lines.line_reader import LineReader
from onlineauto.formats.lines.mark_kernels import find_marks
from onlineauto.formats.lines.reader_state_kernels import Rules
from onlineauto.formats.quirks import NO_QUIRKS
from onlineauto.formats.text.line_kernels import read_lines

if TYPE_CHECKING:
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.sources.source import ByteSource, Source

__all__ = ["TextReader"]


class TextReader(LineReader):
    r"""Iterator over the events of a VW text, in Blocks; can be iterated once.

    Memory does not grow with the text, except for the names of namespaces and an event larger than
    `block_bytes`. Events from a pipe are yielded as soon as they are complete.

    Parameters
    ----------
    source : path, bytes, binary file, None or ByteSource
        ``"-"`` and None are standard input; gzip and zstd are detected.
    label : {"simple", "cb", "ccb"}
        ``label [weight [initial]]``; ``action:cost:probability`` and ``shared``; or ``ccb`` and ``shared``,
        ``action`` or ``slot [action:cost:probability[,action:probability...]] [action,action...]``.
    multiline : bool
        Whether empty lines separate events; else every line is an event.
    hash_all : bool
        ``--hash all``: names of digits only are hashed like any other.
    hash_seed : int
        ``--hash_seed``, a uint32.
    strict : bool
        ``--strict_parse``: the first bad line is an error.
    uniform : bool
        ``--missing_probability uniform``: a label without a probability is read as one with probability 0.
    block_bytes : int
        Bytes to read at once.
    diagnostics : Diagnostics, optional
        Counts the problems; a new one by default.
    name : str, optional
        Name of the source in messages.

    Attributes
    ----------
    namespaces : Namespaces
        Names seen so far, shared by all blocks.
    diagnostics : Diagnostics
        Problems found so far.
    name : str
        Name of the source in messages.

    Raises
    ------
    InputError
        The source cannot be opened, or cannot be read further. The latter is raised by the iteration, after
        all earlier events were yielded.
    ParseError
        A line is bad and `strict` is set. Raised by the iteration, after all earlier events were yielded.
        Without `strict`, bad lines are reported and skipped, in multi-line input with their whole event.

    Source
    ------
    VW's input format.

    Examples
    --------
    >>> text = b"shared |user tom\n0:-1:0.5 |item politics:2\n|item sports\n\n"
    >>> for block in TextReader(text, label="cb", multiline=True):
    ...     print(len(block), block.n_lines, block.namespaces.names, block.value, block.cost)
    1 3 [b'user', b'item'] [1. 2. 1.] [-1.]
    """

    quirks = NO_QUIRKS

    def __init__(
        self,
        source: Source | ByteSource,
        *,
        label: Literal["simple", "cb", "ccb"] = "simple",
        multiline: bool,
        hash_all: bool = False,
        hash_seed: int = 0,
        strict: bool = False,
        uniform: bool = False,
        block_bytes: int = 1 << 18,
        diagnostics: Diagnostics | None = None,
        name: str | None = None,
    ) -> None:
        rules = Rules(
            simple=label == "simple",
            slots=label == "ccb",
            multiline=multiline,
            quirks=self.quirks,
            hash_all=hash_all,
            strict=strict,
            uniform=uniform,
            hash_seed=np.uint32(hash_seed),
            default_hash=_default_hash(hash_seed),
        )
        super().__init__(
            source,
            rules=rules,
            unit="event" if multiline else "line",
            block_bytes=block_bytes,
            diagnostics=diagnostics,
            name=name,
        )
        self._text_rules = rules

    def _size_for(self, text_bytes: int) -> int:
        return text_bytes

    def _make_room(self, end: int) -> None:
        self._make_bitmaps(end)
        blanks, bars, newlines = find_marks(self._buffer, end, self._reader.marks, self._reader.breaks)
        lines = newlines + 1
        lists = end // 2 if self._text_rules.slots else 0  # actions in comma-separated lists
        self._make_records(
            events=lines, lines=lines, spans=bars, features=blanks, costs=blanks + lines + lists, tag=end
        )

    def _read(self, p: int, end: int) -> tuple[int, int]:
        return read_lines(self._buffer, p, end, self._text_rules, self._reader)


def _default_hash(hash_seed: int) -> np.uint32:
    """Return the hash of the namespace without a name."""
    if hash_seed == 0:
        return np.uint32(0)
    return np.uint32(murmur3(np.empty(0, np.uint8), 0, 0, np.uint32(hash_seed)))
