"""Messages between a coordinator and its workers: a header of MessagePack, then arrays; no pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from onlineauto.cluster.partitions.state import State, Table
from onlineauto.cluster.partitions.text_file import TextPart, UnreadBlock
from onlineauto.cluster.partitions.worker import Base, End
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.records.loop import ROW
from onlineauto.engine.search.deferred import Control, Found
from onlineauto.features.block import Block, Namespaces
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
from onlineauto.formats.lines.diagnostics import Diagnostic, Diagnostics, ProblemCode
from onlineauto.learners.gradient_kernels import SETTINGS
from onlineauto.state.codec import describe, restore_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.options import Configuration

_RECORDS = {"ROW": ROW, "COST": COST, "FEATURE": FEATURE, "LINE": LINE, "SPAN": SPAN, "SETTINGS": SETTINGS}
_OUTCOMES = ("rows", "line", "weight", "holdout", "label", "action", "score")
_HEAD = 8
_UNREAD = 4
"""Number of parts of the message of an unread chunk."""


class Chunk(NamedTuple):
    """Events to learn, and their number among the chunks of the round."""

    block: Block
    seed: int


def pack(tree: Any) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a tree of plain values and arrays, in parts; arrays are not copied."""
    described = describe(tree, owner="a message", record_types=_RECORDS)
    yield from described.parts(len(described.description).to_bytes(_HEAD, "little"))


def unpack(data: Any) -> Any:
    """Return the tree of a packed message; its arrays are views of `data`, a buffer."""
    memory = memoryview(data).cast("B")
    end = _HEAD + int.from_bytes(memory[:_HEAD], "little")
    return restore_tree(memory, _HEAD, end, limit=len(memory), record_types=_RECORDS)


def base_to_tree(base: Base) -> Any:
    """Return a base as a tree for `pack`."""
    return [base.version, base.since, msgspec.msgpack.encode(base.control), base.gains, base.state]


def base_of_tree(tree: Any) -> Base:
    """Return the base of a tree."""
    version, since, control, gains, state = tree
    return Base(version, since, msgspec.msgpack.decode(control, type=Control), gains, _state_of(state))


def _state_of(tree: Any) -> State:
    dense, tables = tree
    return State(dense, {name: Table(rows, tuple(values)) for name, (rows, values) in tables.items()})


def end_to_tree(end: End) -> Any:
    """Return an end as a tree for `pack`."""
    problems = end.problems
    counts = [(code.name, n) for code, n in problems.counts.items()]
    kept = [
        (each.file, each.line, each.column, each.code.name, each.message, each.done) for each in problems.kept
    ]
    outcomes = [getattr(end.outcomes, name) for name in _OUTCOMES]
    return [end.state, end.found, outcomes, (counts, kept)]


def end_of_tree(tree: Any) -> End:
    """Return the end of a tree."""
    state, found, outcomes, (counts, kept) = tree
    problems = Diagnostics()
    for code, n in counts:
        problems.count(ProblemCode[code], n)
    for file, line, column, code, message, done in kept:
        problems.kept.append(
            Diagnostic(
                file=file, line=line, column=column, code=ProblemCode[code], message=message, done=done
            )
        )
    named = dict(zip(_OUTCOMES, outcomes, strict=True))
    return End(_state_of(state), Found(*found), Outcomes(**named), problems)


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
    known = len(namespaces)
    if names[:known] != namespaces.names or hashes[:known] != namespaces.hashes:
        namespaces, known = Namespaces(), 0
    for name, hash_ in zip(names[known:], hashes[known:], strict=True):
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
