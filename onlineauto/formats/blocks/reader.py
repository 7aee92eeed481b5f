"""BlockReader: reads blocks from a file mapped into memory, or from a stream of bytes."""

from __future__ import annotations

import json
import mmap
import os
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

import msgspec
import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.block import NAMES, Block, Namespaces
from onlineauto.formats.blocks.block_kernels import (
    EVENTS,
    LINE,
    LINES,
    NUMBERS,
    POINTERS,
    SLOTS,
    Sections,
    find_problem,
)
from onlineauto.formats.blocks.file import (
    BLOCK,
    FILE_HEAD,
    FRAME,
    LAST,
    MAGIC,
    RULES,
    SECTIONS,
    VERSION,
    checksum,
    header_checksum,
    pad_size,
    record_layout,
    section_sizes,
)
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.sources.source import SingleCaller, as_byte_source

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.sources.source import ByteSource, Source

BEGIN = MAGIC[:4]
"""First bytes of a file of blocks, including files damaged by a transfer as text."""

_WRONG = "does not have its checksum"

_NAME_HEAD = 8
"""Number of bytes before a name: its hash and its length."""

_PIECE = 1 << 20
"""Number of bytes read from a stream at a time: a damaged head may ask for more than fits into memory."""

Rules = dict[str, str | int | bool | tuple[str, ...]]
"""The options by which events were read, by name."""

SHAPES: Final = {"simple": LINE, "cb": LINE, "cb_adf": LINES, "ccb_adf": SLOTS}
"""Shapes of events, by the kind of events in a file's header."""
_TEXTS: Final = {
    POINTERS: "has an offset out of range",
    EVENTS: "has lines that do not form an event",
    NUMBERS: "has an invalid number",
}


def problem_of(block: Block, *, shape: int, as_vw: bool) -> str:
    """Return the problem of a block of events of one of the `SHAPES`; empty if there is none.

    In native mode all numbers must be finite, and weights and probabilities must be in range.
    """
    sections = Sections(
        events=block.event_start,
        lines=block.lines,
        line_bytes=block.lines.view(np.uint8).reshape(-1, block.lines.itemsize),
        spans=block.spans,
        costs=block.costs,
        features=block.features.view(np.uint64),
    )
    problem = find_problem(sections, len(block.tag), len(block.namespaces), shape, as_vw)
    return _TEXTS.get(problem, "")


class _Header(msgspec.Struct):
    """The header of a file."""

    rules: dict[str, str | int | bool]
    records: dict[str, str]


class _Names(TypedDict, total=False):
    """The rules by which names were made."""

    names: Literal["vw", "columns"]
    name_columns: tuple[str, ...]
    number_columns: tuple[str, ...]


class BlockReader:
    """Iterator over the blocks of a file; can be iterated once."""

    def __init__(
        self,
        source: Source | ByteSource,
        *,
        diagnostics: Diagnostics | None = None,
        name: str | None = None,
    ) -> None:
        self.namespaces = Namespaces()
        self._names: set[bytes] = set()
        self.diagnostics = Diagnostics() if diagnostics is None else diagnostics
        self._source = as_byte_source(source, name=name)
        self.name = self._source.name
        self._turn = SingleCaller(self.name)
        descriptor = self._source.plain_file()
        self._bytes: _Mapped | _Streamed
        self._bytes = _Streamed(self._source) if descriptor is None else _Mapped(descriptor)
        self._at, self._is_done = 0, False
        self._n_frames = self._n_events = 0
        try:
            self.rules: Rules = self._read_header()
            self._block_rules = self.rules
        except InputError:
            self._source.close()
            raise

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks."""
        return self.blocks()

    def blocks(self) -> Generator[Block]:
        """Yield the blocks, from a generator that must be closed if it is not exhausted."""
        with self._turn:
            try:
                while not self._is_done and (block := self._read_frame()) is not None:
                    yield block
            finally:
                self._is_done = True
                self._source.close()

    def check_rules(self, rules: Mapping[str, str | int | bool | tuple[str, ...]]) -> None:
        """Compare the options by which the events were read with those of this run."""
        for option in (name for name in {**rules, **self.rules} if name not in NAMES):
            of_workspace, of_file = rules.get(option), self.rules.get(option)
            if of_file != of_workspace:
                of_file = str(of_file).encode("unicode_escape").decode()  # keeps the message on one line
                raise InputError(
                    f"{self.name}: these blocks were converted with {option} = {of_file}, but this run has "
                    f"{option} = {of_workspace}: give the same options, or convert the text again"
                )

    def _read_header(self) -> Rules:
        """Read and check the beginning of the file; return the options by which its events were read."""
        if self._take(len(MAGIC), "its magic").tobytes() != MAGIC:
            raise self._damage("its first bytes were changed, for example by a transfer as text")
        head = self._take(FILE_HEAD.itemsize, "its head").view(FILE_HEAD)[0]
        version, size = int(head["version"]), int(head["header_bytes"])
        if version > VERSION:
            raise self._error(
                f"these blocks have format {version} of a newer onlineauto, but this one reads format "
                f"{VERSION}: upgrade onlineauto, or convert the text again"
            )
        header = self._take(size, "its header").tobytes()
        if header_checksum(version, header) != head["checksum"]:
            raise self._damage(f"its header {_WRONG}")
        try:
            fields = msgspec.json.decode(header, type=_Header)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._damage(f"its header cannot be understood: {error}") from None
        if fields.records != record_layout():
            raise self._error(
                "these blocks are for another kind of machine, or of another version: convert the text again"
            )
        events = fields.rules.get("events", "cb_adf")
        if events not in SHAPES:
            raise self._damage(f"its header has an unknown kind of events, {events!r}")
        self._shape = SHAPES[str(events)]
        self._as_vw = fields.rules.get("vw_exact") is not False
        return {**fields.rules}

    def _read_frame(self, kinds: tuple[int, ...] = (BLOCK, LAST, RULES)) -> Block | None:
        """Return the next block; None after the last."""
        which = f"block {self._n_frames + 1}, at byte {self._at},"
        raw = self._take(FRAME.itemsize, which)
        head = raw.view(FRAME)[0]
        if checksum(raw[:-8]) != head["checksum"]:
            raise self._damage(f"the head of {which} {_WRONG}")
        n_events = self._n_events + int(head["events"])
        if head["number"] != self._n_frames or head["all_events"] != n_events:
            raise self._damage(f"{which} is out of order")
        sizes = section_sizes(head)
        has_events = head["kind"] == BLOCK
        if head["kind"] not in kinds or not sizes or has_events != (head["events"] != 0):
            raise self._damage(f"the head of {which} has an invalid kind or invalid counts")
        if head["kind"] == LAST:
            if len(self._bytes.take(self._at, 1)):
                raise self._damage(f"there are bytes after its end, at byte {self._at}")
            return None
        body = self._take(sum(map(pad_size, sizes if has_events else sizes[-1:])), which)
        if checksum(body) != head["body_checksum"]:
            raise self._damage(f"{which} {_WRONG}")
        if not has_events:
            self._read_names(body[: sizes[-1]].tobytes(), which)
            self._n_frames += 1
            return self._read_frame((BLOCK,))
        block = self._make_block(body, sizes, which)
        if problem := problem_of(block, shape=self._shape, as_vw=self._as_vw):
            raise self._damage(f"{which} {problem}")
        self._n_frames, self._n_events = self._n_frames + 1, n_events
        return block

    def _read_names(self, rules: bytes, which: str) -> None:
        """Read the rules by which the names of the next blocks were made."""
        try:
            names: Any = msgspec.convert(json.loads(rules), _Names)
        except (ValueError, RecursionError) as error:
            raise self._damage(f"{which} cannot be understood: {error}") from None
        self._block_rules = self.rules | names

    def _make_block(self, body: NDArray[np.uint8], sizes: list[int], which: str) -> Block:
        """Return the sections of a frame as a Block, without copying."""
        parts: dict[str, Records] = {}
        start = 0
        for (name, kind, _), size in zip(SECTIONS, sizes, strict=True):
            parts[name] = body[start : start + size].view(kind)
            start += pad_size(size)
        if not self._add_names(parts["names_bytes"].tobytes()):
            raise self._damage(f"{which} has truncated, empty or duplicate names")
        return Block(
            event_start=parts["events"],
            lines=parts["lines"],
            costs=parts["costs"],
            spans=parts["spans"],
            features=parts["features"],
            tag=parts["tag_bytes"],
            namespaces=self.namespaces,
            rules=self._block_rules,
        )

    def _add_names(self, names: bytes) -> bool:
        """Add the namespaces that are new in a frame; return False if their names are malformed."""
        start = 0
        while start < len(names):
            if len(names) - start < _NAME_HEAD:
                return False
            hash_, length = np.frombuffer(names, "<u4", 2, start).tolist()
            start += _NAME_HEAD + length
            name = names[start - length : start]
            if not name or start > len(names) or name in self._names:
                return False
            self._names.add(name)
            self.namespaces.add(name, hash_)
        return True

    def _take(self, size: int, noun: str) -> NDArray[np.uint8]:
        """Return the next `size` bytes of the file or raise an error; `noun` names the bytes in messages."""
        try:
            data = self._bytes.take(self._at, size)
        except InputError as error:  # the source could not be unpacked
            raise self._error(str(error)) from error
        if len(data) < size:
            raise self._damage(f"it ends within {noun} at byte {self._at + len(data)}: it is truncated")
        self._at += size
        return data

    def _damage(self, message: str) -> InputError:
        return self._error(f"this file of blocks is damaged: {message}")

    def _error(self, message: str) -> InputError:
        """Return an error with the name of the file and the number of events read before."""
        used = f"; the {self._n_events} events before that were used" if self._n_frames else ""
        return InputError(f"{self.name}: {message}{used}")


class _Mapped:
    """A file that is mapped into memory part by part; a part is unmapped with the last block that uses it.

    Mappings are private (copy-on-write): kernels need writeable arrays, and changes must not reach the file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size

    def take(self, start: int, size: int) -> NDArray[np.uint8]:
        """Return `size` bytes from `start` on, or fewer at the end."""
        size = min(size, self._size - start)
        if size <= 0:
            return np.zeros(0, np.uint8)
        aligned = start - start % mmap.ALLOCATIONGRANULARITY
        part = mmap.mmap(self._descriptor, start - aligned + size, access=mmap.ACCESS_COPY, offset=aligned)
        return np.frombuffer(part, np.uint8)[start - aligned :]


class _Streamed:
    """A source that is read sequentially."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source

    def take(self, start: int, size: int) -> NDArray[np.uint8]:  # noqa: ARG002 - always the current position
        """Return the next `size` bytes, or fewer at the end."""
        data = bytearray()
        while len(data) < size and (more := self._source.read(min(size - len(data), _PIECE))):
            data += more
        return np.frombuffer(data, np.uint8)
