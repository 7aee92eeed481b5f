"""Lines as lists: the result of reference readers, and of unpacking a block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onlineauto.features.block import UNLABELLED
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from tests.naive.hashing import hash_name, murmur3

if TYPE_CHECKING:
    from onlineauto.features.block import Block

Feature = tuple[int, float]
Problem = tuple[int, int, ProblemCode]
NOTHING = float(UNLABELLED)


@dataclass(frozen=True, kw_only=True)
class Settings:
    label: str = "simple"
    multiline: bool = False
    exact: bool = False
    hash_all: bool = False
    hash_seed: int = 0

    def hash(self, name: bytes, seed: int) -> int:
        return hash_name(name, seed, self.hash_all)

    @property
    def default_hash(self) -> int:
        return murmur3(b"", self.hash_seed) if self.hash_seed else 0


@dataclass(kw_only=True)
class Line:
    number: int
    shared: bool = False
    slot: bool = False
    label: float = NOTHING
    weight: float = 1.0
    initial: float = 0.0
    costs: list[tuple[int, float, float]] = field(default_factory=list)
    tag: bytes = b""
    spans: list[tuple[bytes, list[Feature]]] = field(default_factory=list)
    unused: bool = field(default=False, repr=False, compare=False)
    """Whether the label of the line is not finite and so not used."""


@dataclass(kw_only=True)
class Reading:
    """Events, and problems (line, column, code) in order."""

    events: list[list[Line]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class BadLineError(Exception):
    """A line that native mode skips."""

    def __init__(self, code: ProblemCode, column: int) -> None:
        super().__init__(code, column)
        self.code, self.column = code, column


def unpack(blocks: Iterable[Block]) -> list[list[Line]]:
    """Return the events of blocks as lists."""
    events = []
    for block in blocks:
        for first, last in zip(block.event_start[:-1], block.event_start[1:], strict=True):
            events.append([_unpack_line(block, i) for i in range(first, last)])
    return events


def _unpack_line(block: Block, i: int) -> Line:
    spans = []
    for span in range(block.line_start[i], block.line_start[i + 1]):
        where = slice(block.span_start[span], block.span_start[span + 1])
        features = list(zip(block.hash[where].tolist(), block.value[where].tolist(), strict=True))
        spans.append((block.namespaces.names[block.span_namespace[span]], features))
    costs = slice(block.cost_start[i], block.cost_start[i + 1])
    columns = (block.cost_action[costs], block.cost[costs], block.probability[costs])
    return Line(
        number=int(block.line_number[i]),
        shared=bool(block.shared[i]),
        slot=bool(block.slot[i]),
        label=float(block.label[i]),
        weight=float(block.weight[i]),
        initial=float(block.initial[i]),
        costs=list(zip(*(column.tolist() for column in columns), strict=True)),
        tag=block.tag[block.tag_start[i] : block.tag_start[i + 1]].tobytes(),
        spans=spans,
    )
