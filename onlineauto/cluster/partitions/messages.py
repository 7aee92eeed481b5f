"""Messages between a coordinator and its workers: a header of MessagePack, then arrays; no pickle."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from onlineauto.cluster.partitions.server import Moved
from onlineauto.cluster.partitions.state import SentState
from onlineauto.cluster.partitions.text_file import TextPart, UnreadBlock
from onlineauto.cluster.partitions.worker import Base, ChunkEnd
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.records.loop import ROW
from onlineauto.engine.search.deferred import Findings
from onlineauto.features.block import Block, Namespaces
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
from onlineauto.formats.lines.diagnostics import Diagnostic, Diagnostics, ProblemCode
from onlineauto.learners.gradient_kernels import SETTINGS
from onlineauto.state.codec import describe, restore_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.options import Configuration

_RECORDS = {"ROW": ROW, "COST": COST, "FEATURE": FEATURE, "LINE": LINE, "SPAN": SPAN, "SETTINGS": SETTINGS}
_HEAD = 8
_UNREAD = 4
"""Number of parts of the message of an unread chunk."""


class Chunk(NamedTuple):
    """Events to learn, and their number among the chunks of the round."""

    block: Block
    seed: int


def pack(message: Any) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a base, an end or a tree, in parts; arrays are not copied."""
    described = describe(message, owner="a message", record_types=_RECORDS)
    yield from described.parts(len(described.description).to_bytes(_HEAD, "little"))


def unpack(data: Any) -> Any:
    """Return the tree of a packed message; its arrays are views of `data`, a buffer."""
    memory = memoryview(data).cast("B")
    end = _HEAD + int.from_bytes(memory[:_HEAD], "little")
    return restore_tree(memory, _HEAD, end, limit=len(memory), record_types=_RECORDS)


def base_of_tree(tree: Any) -> Base:
    """Return the base of a message."""
    return msgspec.convert(tree, Base, dec_hook=_array)


def end_of_tree(tree: Any) -> ChunkEnd:
    """Return the end of a message."""
    state, findings, outcomes, problems = tree
    return ChunkEnd(
        msgspec.convert(state, SentState, dec_hook=_array),
        msgspec.convert(findings, Findings, dec_hook=_array),
        Outcomes(**outcomes),
        Diagnostics(
            counts=Counter(msgspec.convert(problems["counts"], dict[ProblemCode, int])),
            kept=msgspec.convert(problems["kept"], list[Diagnostic]),
        ),
    )


def state_of_tree(tree: Any) -> SentState:
    """Return the state of a message: the part of a server, or what it has merged."""
    return msgspec.convert(tree, SentState, dec_hook=_array)


def moved_of_tree(tree: Any) -> Moved:
    """Return the blocks of a message that migrate."""
    return msgspec.convert(tree, Moved, dec_hook=_array)


def _array(_: type, value: Any) -> Any:
    """Return an array of a tree, which needs no conversion."""
    return value


def chunk_to_tree(chunk: Chunk) -> Any:
    """Return a chunk as a tree for `pack`."""
    block = chunk.block
    if isinstance(block, UnreadBlock):
        return [block.part, _names_to_tree(block.namespaces), block.seen, chunk.seed]
    arrays = (block.event_start, block.lines, block.costs, block.spans, block.features, block.tag)
    names = _names_to_tree(block.namespaces)
    return [arrays, names, list(block.rules.items()), block.objects, chunk.seed]


def _names_to_tree(namespaces: Namespaces) -> Any:
    hashes = namespaces.hashes[:]  # copied first: a reading thread may add names, then their hashes
    return namespaces.names[: len(hashes)], hashes


def _names_of(tree: Any, namespaces: Namespaces) -> Namespaces:
    """Return `namespaces`, those of the last chunk, with the further names of a tree, if they still hold.

    They hold if the names of the tree begin with them. Otherwise the names have other numbers, as in another
    file, and the namespaces are new ones.
    """
    names, hashes = tree
    n_known = len(namespaces)
    if names[:n_known] != namespaces.names or hashes[:n_known] != namespaces.hashes:
        namespaces, n_known = Namespaces(), 0
    for name, hash_ in zip(names[n_known:], hashes[n_known:], strict=True):
        namespaces.add(name, hash_)
    return namespaces


def chunk_of_tree(tree: Any, namespaces: Namespaces, configuration: Configuration) -> Chunk:
    """Return the chunk of a tree; its block has `namespaces`, those of the last chunk, if they still hold."""
    if len(tree) == _UNREAD:
        part, names, seen, seed = tree
        return Chunk(UnreadBlock(TextPart(*part), configuration, _names_of(names, namespaces), seen), seed)
    (event_start, lines, costs, spans, features, tag), names, rules, objects, seed = tree
    block = Block(
        event_start=event_start,
        lines=lines,
        costs=costs,
        spans=spans,
        features=features,
        tag=tag,
        namespaces=_names_of(names, namespaces),
        rules=dict(rules),
        objects=objects,
    )
    return Chunk(block, seed)
