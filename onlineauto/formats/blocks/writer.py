"""Write blocks to a file atomically."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np

from onlineauto.features.block import NAMES
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
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
)
from onlineauto.formats.sources.replaced_file import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Block, Namespaces
    from onlineauto.features.records import Records

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
    begin = {name: np.cumsum([0, *(len(each[name]) - more for each in blocks)]) for name, _, more in SECTIONS}
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
