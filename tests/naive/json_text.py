"""Reading JSON the slow and obvious way: one line at a time, by methods that call one another."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.records.problem_code_kernels import ProblemCode
from tests.naive.json_labels import Labelled
from tests.naive.json_slots import LISTS, JsonSlots
from tests.naive.lines import BadLineError, Feature, Line, Reading, Settings
from tests.naive.slots import event_problem

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JsonSettings", "read"]

DEPTH = 256
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, kw_only=True)
class JsonSettings(Settings):
    log: bool = False
    chain_hash: bool = False

    @property
    def default_hash(self) -> int:
        return self.hash(b" ", self.hash_seed)


@dataclass(kw_only=True)
class Group:
    """Features of namespaces that begin with the same byte, in runs of one namespace."""

    byte: int
    runs: list[tuple[bytes, list[Feature]]] = field(default_factory=list)


@dataclass(kw_only=True)
class Namespace:
    name: bytes
    hash: int
    lost: bool = False
    group: Group | None = None


class Event(JsonSlots):
    """One line of the text, and the event in it."""

    def __init__(self, text: bytes, settings: JsonSettings, number: int) -> None:
        super().__init__(text, settings, number)
        self.how = settings
        self.depth = 0
        self.closed = self.skipped = False
        self.drop, self.drop_at = 0.0, 0
        self.array_hash = 0
        self.last: tuple[Namespace, int] | None = None
        self.groups: dict[int, list[Group]] = {}
        self.made: dict[tuple[int, int], Group] = {}

    # -- namespaces ------------------------------------------------------------------------------------

    def open(self, code: ProblemCode = ProblemCode.JSON_TOO_DEEP) -> None:
        if self.depth == DEPTH:
            self.bad(code)
        self.depth += 1

    def namespace(self, name: bytes) -> Namespace:
        if name == b" " or (name == b"" and not self.how.exact):
            return Namespace(name=b" ", hash=self.how.default_hash)
        if name == b"":
            return Namespace(name=b"\0", hash=self.how.hash(b"", self.how.hash_seed))
        lost = self.how.exact and name[0] >= 128
        return Namespace(name=name, hash=self.how.hash(name, self.how.hash_seed), lost=lost)

    def add(self, namespace: Namespace, hash_: int, value: float) -> None:
        if value == 0 or namespace.lost:
            return
        if namespace.group is None:
            key = self.line, namespace.name[0]
            namespace.group = self.made.setdefault(key, Group(byte=namespace.name[0]))
        runs = namespace.group.runs
        if self.last is None or self.last[0] is not namespace:
            runs.append((namespace.name, []))
        self.last = namespace, 0
        runs[-1][1].append((hash_ % 2**32, float(value)))

    def close(self, namespace: Namespace) -> None:
        self.depth -= 1
        self.put_on_list(namespace)

    def put_on_list(self, namespace: Namespace) -> None:
        groups = self.groups.setdefault(self.line, [])
        if namespace.group is not None and namespace.group not in groups:
            groups.append(namespace.group)

    def object(self, namespace: Namespace) -> None:
        self.open()
        self.members(lambda name, plain, at: self.member(namespace, name, plain, at))
        self.close(namespace)

    def unnamed(self) -> None:
        self.object(self.namespace(b" "))

    # -- members ---------------------------------------------------------------------------------------

    def finite(self, code: ProblemCode = ProblemCode.JSON_VALUE) -> float:
        begin = self.at
        value = self.number(code)[0]
        if not self.how.exact and not math.isfinite(value):
            self.bad(ProblemCode.VALUE_NOT_FINITE, begin)
        return value

    def member(self, namespace: Namespace, name: bytes, plain: bool, at: int) -> None:
        if name.startswith(b"_"):
            self.special(namespace, name, plain, at)
            return
        kind = self.peek()
        if kind == b'"':
            text = replaced(self.string()[0])
            seed = namespace.hash
            if self.how.chain_hash:
                self.add(namespace, self.how.hash(text, self.how.hash(name, seed)), 1)
            else:
                self.add(namespace, self.how.hash(name + text, seed), 1)
        elif kind == b"{":
            self.object(self.namespace(name))
        elif kind == b"[":
            inner = self.namespace(name)
            self.open()
            self.array_hash = inner.hash
            self.elements(lambda: self.element(inner))
            self.close(inner)
        else:
            value = float(bool(self.word())) if kind and kind in b"tfn" else self.finite()
            self.add(namespace, self.how.hash(name, namespace.hash), value)

    def element(self, namespace: Namespace) -> None:
        kind, value, hash_ = self.peek(), 0.0, self.array_hash
        if kind == b"n":
            self.word()
            self.array_hash += not self.how.exact
            return
        if kind == b"{":
            again = Namespace(name=namespace.name, hash=namespace.hash, lost=namespace.lost)
            self.object(again)
            return
        if kind == b"[" or (self.how.exact and kind and kind in b'tf"'):
            self.bad(ProblemCode.JSON_UNEXPECTED)
        if kind == b'"':
            hash_, value = self.how.hash(replaced(self.string()[0]), namespace.hash), 1.0
        elif kind and kind in b"tf":
            value = float(bool(self.word()))
        else:
            value = self.finite()
        self.add(namespace, hash_, value)
        self.array_hash += 1

    def special(self, namespace: Namespace, name: bytes, plain: bool, at: int) -> None:
        if name.startswith(b"_label"):
            self.label(name, at)
        elif name == b"_text" or name.lower() == b"_tag":
            if self.null():
                return
            if self.peek() != b'"':
                self.bad(ProblemCode.JSON_UNEXPECTED)
            text = self.string()[0]
            if name != b"_text":
                self.lines[self.line].line.tag = text
                return
            for word in re.split(rb"[ \t]", text):
                if word:
                    self.add(namespace, self.how.hash(replaced(word), namespace.hash), 1)
        elif name == b"_multi":
            self.actions()
        elif name == b"_original_label_cost" and self.how.log:
            self.original_cost()
        elif self.how.label == "ccb" and name == b"_slots":
            self.slots_in(namespace)
        elif (
            self.how.label == "ccb"
            and name == b"_outcomes"
            and not self.how.log
            and not self.how.exact
            and self.line == 0
        ):
            self.read_outcomes()
        elif self.how.label == "ccb" and is_list(name) and (name != b"_p" or not self.how.log or self.place):
            self.slot_list(name, at)
        elif name in (b"_slots", b"_slot_id", b"_original_label_cost") or name.lower() == b"__aid":
            self.bad(ProblemCode.JSON_KEY, at)
        else:
            self.unread(plain, at)

    def slots_in(self, namespace: Namespace) -> None:
        """Read the slots, which end the namespace that they stand in; VW goes on without one."""
        if self.read_slots(within_context=namespace is self.root):
            self.put_on_list(namespace)

    def unread(self, plain: bool, at: int) -> None:
        if self.how.exact and not plain:
            self.bad(ProblemCode.JSON_COLON, at)
        self.skip()

    def actions(self) -> None:
        if self.null():
            return
        if self.peek() != b"[" or self.line > 0 or (self.how.exact and len(self.lines) > 1):
            self.bad(ProblemCode.JSON_UNEXPECTED)
        if not self.how.multiline:
            self.bad(ProblemCode.JSON_SINGLE_LINE)
        self.lines[0].line.shared = True
        self.open()
        self.elements(self.one_action)
        self.depth -= 1
        self.line = 0

    def one_action(self) -> None:
        if self.peek() == b"n" and not self.how.exact:
            self.word()
            return
        if self.peek() != b"{":
            self.bad(ProblemCode.JSON_UNEXPECTED)
        self.line = len(self.lines)
        self.lines.append(Labelled(Line(number=self.lines[0].line.number)))
        self.object(self.namespace(b" "))
        self.line = 0

    # -- the whole -------------------------------------------------------------------------------------

    def context(self) -> None:
        self.root = self.namespace(b" ")
        self.object(self.root)
        if self.how.exact and self.how.label == "ccb":
            self.end_context()
        elif self.how.exact:
            self.settle(indexed=True)
        self.closed = True

    def original_cost(self) -> None:
        if not self.null():
            self.number(ProblemCode.JSON_UNEXPECTED)

    def envelope(self, name: bytes, plain: bool, at: int) -> None:
        readers: dict[bytes, Callable[[], object]] = {
            b"a": lambda: self.ranking.extend(self.list()),
            b"_ba": self.list,
            b"c": self.outer_context,
            b"pdrop": self.read_drop,
            b"_skipLearn": self.read_skip,
            b"EventId": self.note,
            b"Timestamp": self.note,
            b"_original_label_cost": self.original_cost,
        }
        if name in readers:
            readers[name]()
        elif name.startswith(b"_label_") or is_index(name):
            self.label(name, at)
        elif name == b"_outcomes" and self.how.label == "ccb":
            self.read_outcomes()
        elif name == b"_outcomes":
            self.bad(ProblemCode.JSON_KEY, at)
        else:
            self.unread(plain, at)

    def outer_context(self) -> None:
        if self.null():
            return
        if self.peek() != b"{":
            self.bad(ProblemCode.JSON_UNEXPECTED)
        if self.closed:
            self.bad(ProblemCode.JSON_TWO_CONTEXTS)
        self.context()

    def read_drop(self) -> None:
        self.drop, self.drop_at = 0.0, (0 if self.peek() == b"n" else self.at)
        if not self.null():
            self.drop = self.number(ProblemCode.JSON_UNEXPECTED)[0]

    def read_skip(self) -> None:
        word = self.word()
        if word is not None:
            self.skipped = word

    def note(self) -> None:
        if self.null():
            return
        if self.peek() != b'"':
            self.bad(ProblemCode.JSON_UNEXPECTED)
        self.string()

    def read(self) -> list[Line]:
        """The lines of the event, none if there is nothing to learn."""
        self.blanks()
        if self.how.log:
            self.depth += 1
            self.members(self.envelope)
            self.depth -= 1
        else:
            self.context()
        if self.early is not None and self.closed:
            end, self.at = self.at, self.early
            self.put_off_outcomes()
            self.at = end
        self.blanks()
        if self.peek():
            self.bad(ProblemCode.JSON_END)
        if not 0 <= self.drop < 1:
            self.bad(ProblemCode.JSON_DROP_ONE, self.drop_at)
        if self.how.log:
            empty = not self.ranking and self.how.multiline if self.how.exact else not self.closed
            if self.skipped or empty:
                return []
        if self.how.multiline and len(self.lines) < 2:
            self.bad(ProblemCode.JSON_NO_MULTI, -self.begin)
        if not self.how.exact and not self.slots:
            self.give()
        if self.drop and self.how.label != "simple":
            for each in self.lines:
                each.line.weight = float(np.float32(1) / (np.float32(1) - np.float32(self.drop)))
        others = [i for i in range(len(self.lines)) if i not in self.slots]
        return [self.finished(i) for i in (*others, *self.slots)]

    def finished(self, i: int) -> Line:
        line = self.lines[i].line
        line.spans = [run for group in self.groups.get(i, []) for run in group.runs]
        if line.shared and line.costs:
            line.shared = False
            line.costs.insert(0, (0, LARGEST, -1.0))
        return line


def is_list(name: bytes) -> bool:
    return name in LISTS or name.lower() == b"_inc"


def is_index(name: bytes) -> bool:
    return name.startswith(b"_label") and name.lower() == b"_labelindex"


def replaced(text: bytes) -> bytes:
    return re.sub(rb"[ \t|:]", b"_", text)


def read(text: bytes, settings: JsonSettings) -> Reading:
    """Read a whole text."""
    reading = Reading()
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, raw in enumerate(lines, start=1):
        begin = 3 if raw.startswith(b"\xef\xbb\xbf") else 0
        content = raw[begin:].removesuffix(b"\r")
        start = content.lstrip(b" \t\r")
        if not start:
            continue
        if settings.exact and settings.log:
            start = content
        event = Event(content, settings, number)
        event.begin = begin
        try:
            if not start.startswith(b"{"):
                event.bad(ProblemCode.JSON_NO_OBJECT)
            found = event.read()
            if found and settings.label == "ccb" and (problem := event_problem(found, settings)):
                event.bad(problem[0], -begin)
            if found:
                reading.events.append(found)
        except BadLineError as bad:
            event.problems.append((bad.code, bad.column))
        reading.problems += [(number, begin + column + 1, code) for code, column in event.problems]
    return reading
