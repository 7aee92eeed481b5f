r"""Write blocks to a file, and read them from a file mapped into memory or from a stream of bytes.

::

    file   = MAGIC  FILE_HEAD  header  frame ...  last frame
    frame  = FRAME  events  lines  spans  features  costs  tag  names   each section padded to 64 bytes
    names  = (hash uint32, length uint32, bytes) ...    only names that no earlier frame has
    rules  = FRAME  JSON        by which the names of the frames after it were made, if a rule was used

The header is JSON, with blanks up to a multiple of 64 bytes: the rules by which the events were read, the
byte order, the layout of the records. A frame is one `Block`, and its sections are the block's arrays, so a
mapped frame becomes a block without copying. The last frame has no events. Each frame records the number of
events up to its end. The header, each frame's head and each frame's body have checksums (XXH3, 64 bits). They
detect damage, not forgery; `problem_of` finds forged blocks that could make kernels fail.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypedDict, cast

import msgspec
import numpy as np

from onlineauto.errors import InputError, install_hint
from onlineauto.features.block import NAMES, Block, Namespaces
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
from onlineauto.formats.blocks.block_kernels import (
    ACTIONS,
    EVENTS,
    NUMBERS,
    ONE_LINE,
    POINTERS,
    SLOTS,
    Sections,
    find_problem,
)
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.sources.replaced_file import replacing
from onlineauto.formats.sources.source import SingleCaller, as_byte_source

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Rules
    from onlineauto.features.records import Records
    from onlineauto.formats.sources.source import ByteSource, Source

MAGIC = b"\x89oab\r\n\x1a\n"
"""First bytes of the file. No text begins with them; as in PNG, a transfer as text changes them."""
VERSION = 1
"""Version of this layout, raised with every change."""
BLOCK, LAST, RULES = 0x4B434C42, 0x5453414C, 0x454C5552
"""Kinds of frames: ``BLCK``, ``LAST`` and ``RULE`` as bytes."""

FILE_HEAD = np.dtype([("version", "<u4"), ("header_bytes", "<u4"), ("checksum", "<u8")])
"""Record after the magic; its checksum is `header_checksum`."""
FRAME = np.dtype(
    [
        ("kind", "<u4"),
        ("number", "<u4"),  # index of the frame
        ("events", "<i8"),
        ("lines", "<i8"),
        ("spans", "<i8"),
        ("features", "<i8"),
        ("costs", "<i8"),
        ("tag_bytes", "<i8"),
        ("names_bytes", "<i8"),
        ("all_events", "<i8"),  # events up to and including this frame
        ("reserved", "<u8", (5,)),
        ("body_checksum", "<u8"),
        ("checksum", "<u8"),  # checksum of the head before this field
    ]
)
"""Head of a frame: 128 bytes."""

SECTIONS: tuple[tuple[str, np.dtype[Any], int], ...] = (
    ("events", np.dtype(np.int64), 1),
    ("lines", LINE, 1),
    ("spans", SPAN, 1),
    ("features", FEATURE, 0),
    ("costs", COST, 0),
    ("tag_bytes", np.dtype(np.uint8), 0),
    ("names_bytes", np.dtype(np.uint8), 0),
)
"""Sections of a frame: field of the head with the count, type of record, records in addition to the count."""

MOST = 1 << 48
"""Largest number of records of a kind in a frame."""

_PADDING = 64


def pad_size(size: int) -> int:
    """Return `size` rounded up to the beginning of the next section."""
    return -(-size // _PADDING) * _PADDING


def section_sizes(head: Records) -> list[int]:
    """Return the bytes of each section of a frame, without padding; [] if the head has impossible counts."""
    counts = [int(head[count]) for count, _, _ in SECTIONS]
    if min(counts) < 0 or max(counts) > MOST:
        return []
    return [(n + more) * kind.itemsize for n, (_, kind, more) in zip(counts, SECTIONS, strict=True)]


def checksum(data: NDArray[np.uint8] | bytes) -> int:
    """Return the 64-bit checksum of bytes."""
    try:
        from xxhash import xxh3_64_intdigest
    except ImportError:
        raise InputError(f"files of blocks need a package: {install_hint('blocks')}") from None
    return xxh3_64_intdigest(cast("Any", data))  # older stubs do not know that an array is a buffer


def header_checksum(version: int, header: bytes) -> int:
    """Return the checksum of the file's header, its length and the version."""
    return checksum(np.array([version, len(header)], "<u4").tobytes() + header)


def record_layout() -> Mapping[str, str]:
    """Return the memory layout of the records on this machine, by which other layouts are detected."""
    records = {"line": LINE, "span": SPAN, "feature": FEATURE, "cost": COST}
    return {name: _layout(kind) for name, kind in records.items()} | {"byte_order": sys.byteorder}


def _layout(kind: np.dtype[np.void]) -> str:
    """Return the layout of a record as text: each field's name, type and offset, and the record's size."""
    assert kind.names is not None
    assert kind.fields is not None
    fields = [f"{name} {kind.fields[name][0].str}@{kind.fields[name][1]}" for name in kind.names]
    return f"{', '.join(fields)}; {kind.itemsize}"


_FRAME_BYTES = 1 << 20
_POINTERS = {
    "events": {"": "lines"},
    "lines": {"start": "spans", "cost": "costs", "tag": "tag_bytes"},
    "spans": {"start": "features"},
}
"""Fields that are offsets into another section, by the section's name."""
_HEAD_BYTES = len(MAGIC) + FILE_HEAD.itemsize


def write_blocks(
    path: str | os.PathLike[str],
    blocks: Iterable[Block],
    *,
    rules: Mapping[str, object],
    frame_bytes: int = _FRAME_BYTES,
) -> int:
    """Write blocks to a file atomically; return the number of events."""
    with block_writer(path, rules=rules, frame_bytes=frame_bytes) as writer:
        for block in blocks:
            writer.write(block)
    return writer.n_events


@contextmanager
def block_writer(
    path: str | os.PathLike[str], *, rules: Mapping[str, object], frame_bytes: int = _FRAME_BYTES
) -> Iterator[BlockWriter]:
    """Yield a writer as for `write_blocks`; the file is created when the context ends without an error."""
    with replacing(path) as file:
        writer = BlockWriter(file, frame_bytes=frame_bytes)
        header = msgspec.json.encode({"rules": rules, "records": record_layout()})
        header = header.ljust(
            pad_size(_HEAD_BYTES + len(header)) - _HEAD_BYTES
        )  # JSON ignores trailing blanks
        head = np.array((VERSION, len(header), header_checksum(VERSION, header)), FILE_HEAD)
        file.write(MAGIC + head.tobytes() + header)
        yield writer
        writer.end()


class BlockWriter:
    """Writer of the frames of a file, created by `block_writer`."""

    def __init__(self, file: IO[bytes], *, frame_bytes: int) -> None:
        self._file = file
        self._frame_bytes = frame_bytes
        self._gathered: list[dict[str, Any]] = []
        self._size = 0
        self._n_frames = self.n_events = 0
        self._numbers: dict[bytes, int] = {}
        self._names: Namespaces | None = None
        self._renumbered = np.zeros(0, np.int32)
        self._rules: dict[str, Any] = {}

    def write(self, block: Block) -> None:
        """Write a block, if it has events; small consecutive blocks are joined."""
        if not len(block):
            return
        rules = {name: block.rules[name] for name in sorted(NAMES & block.rules.keys())}
        if rules != self._rules:
            self._flush()
            self._rules = rules
            self._write(RULES, names_bytes=np.frombuffer(json.dumps(rules).encode(), np.uint8))
        sections = self._sections(block)
        self._gathered.append(sections)
        self._size += sum(section.nbytes for section in sections.values())
        if self._size >= self._frame_bytes:
            self._flush()

    def end(self) -> None:
        """Write the last frame."""
        self._flush()
        self._write(LAST)

    def _flush(self) -> None:
        """Write the collected blocks as one frame, if there are any."""
        if self._gathered:
            gathered, self._gathered, self._size = self._gathered, [], 0
            self._write(BLOCK, **(gathered[0] if len(gathered) == 1 else _join(gathered)))

    def _sections(self, block: Block) -> dict[str, Any]:
        """Return copies of a block's sections, with the file's numbers of namespaces."""
        fresh = self._number_names(block.namespaces)
        n_lines = int(block.event_start[-1])
        last = block.lines[n_lines]
        n_spans, n_costs, n_tag = int(last["start"]), int(last["cost"]), int(last["tag"])
        spans = _without_padding(block.spans[: n_spans + 1], SPAN)
        spans["namespace"][:-1] = self._renumbered[spans["namespace"][:-1]]
        spans["namespace"][-1] = 0
        lines = _without_padding(block.lines[: n_lines + 1], LINE)
        for name in ("number", "label", "weight", "initial", "shared", "slot"):
            lines[name][-1] = 0  # the sentinel record only ends the last line
        return {
            "events": np.array(block.event_start, np.int64),
            "lines": lines,
            "spans": spans,
            "features": _without_padding(block.features[: int(spans["start"][-1])], FEATURE),
            "costs": _without_padding(block.costs[:n_costs], COST),
            "tag_bytes": np.ascontiguousarray(block.tag[:n_tag]),
            "names_bytes": np.frombuffer(fresh, np.uint8),
        }

    def _number_names(self, names: Namespaces) -> bytes:
        """Assign numbers to the namespaces of a block; return the section of the names new to the file."""
        if names is self._names and len(names) == len(self._renumbered):
            return b""
        fresh = b""
        # A thread that reads ahead may add names at the same time.
        known = list(zip(names.names, names.hashes, strict=False))
        for name, hash_ in known:
            if name not in self._numbers:
                self._numbers[name] = len(self._numbers)
                fresh += np.array([hash_, len(name)], "<u4").tobytes() + name
        self._names = names
        self._renumbered = np.array([self._numbers[name] for name, _ in known], np.int32)
        return fresh

    def _write(self, kind: int, **sections: Any) -> None:
        """Write a frame with its head, padding and checksums."""
        head = np.zeros(1, FRAME)[0]
        head["kind"], head["number"] = kind, self._n_frames
        parts = []
        for count, _, more in SECTIONS:
            if count not in sections:
                continue
            head[count] = len(sections[count]) - more
            data = sections[count].tobytes()
            parts.append(data.ljust(pad_size(len(data)), b"\0"))
        self.n_events += int(head["events"])
        head["all_events"] = self.n_events
        body = b"".join(parts)
        head["body_checksum"] = checksum(body)
        head["checksum"] = checksum(head.tobytes()[:-8])
        self._file.write(head.tobytes() + body)
        self._n_frames += 1


def _join(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sections of several blocks joined into one block; the arguments are modified."""
    begin = {
        name: np.cumsum([0, *(len(block[name]) - more for block in blocks)]) for name, _, more in SECTIONS
    }
    joined = {}
    for name, kind, more in SECTIONS:
        for i, block in enumerate(blocks):
            for field, into in _POINTERS.get(name, {}).items():
                (block[name][field] if field else block[name])[:] += begin[into][i]
        parts = [block[name][: len(block[name]) - more] for block in blocks[:-1]] + [blocks[-1][name]]
        joined[name] = np.concatenate([part.view(np.uint8) for part in parts]).view(kind)  # with the padding
    return joined


def _without_padding(records: Records, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return a copy of records made field by field, so that the padding between fields is zero."""
    clean = np.zeros(len(records), kind)
    for name in kind.names or ():
        clean[name] = records[name]
    return clean


BEGIN = MAGIC[:4]
"""First bytes of a file of blocks, including files damaged by a transfer as text."""
_WRONG = "does not have its checksum"
_NAME_HEAD = 8
"""Number of bytes before a name: its hash and its length."""
_PIECE = 1 << 20
"""Number of bytes read from a stream at a time: a damaged head may ask for more than fits into memory."""
SHAPES: Final = {"simple": ONE_LINE, "cb": ONE_LINE, "cb_adf": ACTIONS, "ccb_adf": SLOTS}
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
            self.rules = self._read_header()
            self._block_rules: Rules = self.rules
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

    def check_rules(self, rules: Rules) -> None:
        """Compare the options by which the events were read with those of this run."""
        for option in (name for name in {**rules, **self.rules} if name not in NAMES):
            of_workspace, of_file = rules.get(option), self.rules.get(option)
            if of_file != of_workspace:
                of_file = str(of_file).encode("unicode_escape").decode()  # keeps the message on one line
                raise InputError(
                    f"{self.name}: these blocks were converted with {option} = {of_file}, but this run has "
                    f"{option} = {of_workspace}: give the same options, or convert the text again"
                )

    def _read_header(self) -> dict[str, str | int | bool]:
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
        return fields.rules

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
        self._block_rules = {**self.rules, **names}

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
