"""Events of well-formed lines of JSON in native mode, from the values that the standard library reads.

The result has the events and the rejected lines, without columns and codes of problems.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tests.naive.floats import parse_vw_float
from tests.naive.hashing import hash_name
from tests.naive.lines import NOTHING, Line, Settings
from tests.naive.slots import CONFINED, event_problem

DEPTH = 256


@dataclass(frozen=True, kw_only=True)
class JsonSettings(Settings):
    log: bool = False
    chain_hash: bool = False


class MalformedError(Exception):
    """A line that is not JSON."""


class RejectedError(Exception):
    """A line that is JSON but not an event."""


class Object(list[tuple[str, Any]]):
    """The members of an object, in order."""


class Number(str):
    """A number as it was written."""

    __slots__ = ()


@dataclass(eq=False)
class Namespace:
    name: bytes
    hash: int


def read_number(text: str) -> tuple[float, bool]:
    """Return a number of JSON as a float32, and whether it is a whole one of 32 bits."""
    match = re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", text)
    if match is None:
        raise RejectedError
    whole, decimals, exponent = match.groups()
    largest = 308 + len((decimals or ".")[1:])
    if not math.isfinite(float(text)) or (exponent and int(exponent[1:]) > largest):
        raise RejectedError
    if decimals is None and exponent is None and int(whole) < 2**64:
        size = float(np.float32(np.uint64(int(whole))))
        negative = text.startswith("-")
        return (-size if negative else size), not negative and int(whole) < 2**32
    with np.errstate(over="ignore"):
        return float(np.float32(float(text))), False


class Event:
    """The event of one line."""

    def __init__(self, text: bytes, settings: JsonSettings, number: int) -> None:
        self.how = settings
        # Bytes that are not UTF-8 are features, too. An escape of a code point is always UTF-8.
        self.codec = "utf-8" if b"\\u" in text else "latin-1"
        self.lines = [Line(number=number)]
        self.line = self.depth = self.array_hash = 0
        self.index, self.unused, self.drop = -1, False, 0.0
        self.closed = self.skipped = self.seen = False
        self.slots: list[int] = []
        self.place: int | None = None  # depth of the object of a slot or of an outcome
        self.early: list[Any] | None = None  # outcomes that come before the context
        self.forget()
        try:
            self.document = json.loads(
                text.decode(self.codec),
                object_pairs_hook=Object,
                parse_float=Number,
                parse_int=Number,
                parse_constant=self.no_constant,
            )
        except (ValueError, RecursionError) as error:
            raise MalformedError from error

    def no_constant(self, name: str) -> NoReturn:
        raise ValueError(name)

    def forget(self) -> None:
        self.listed: list[float] = []
        self.pmf: list[float] = []
        self.included: list[float] = []
        self.found, self.action, self.cost = False, 0, NOTHING
        self.probability: float | None = None

    # -- values ----------------------------------------------------------------------------------------

    def require(self, condition: object) -> None:
        if not condition:
            raise RejectedError

    def bytes_of(self, text: str) -> bytes:
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError as error:  # half of a pair of surrogates
            raise RejectedError from error

    def string(self, value: Any) -> bytes:
        self.require(isinstance(value, str) and not isinstance(value, Number))
        return self.bytes_of(value)

    def number(self, value: Any) -> float:
        self.require(isinstance(value, Number))
        return read_number(value)[0]

    def number_or_nan(self, value: Any) -> float:
        if isinstance(value, Number):
            return self.number(value)
        self.require(self.string(value).lower() == b"nan")
        return math.nan

    def numbers(self, value: Any, good: Callable[[float], bool] | None = None) -> list[float]:
        """Return a list of numbers, or a single one as a list."""
        self.require(not isinstance(value, Object))
        entries = value if isinstance(value, list) else [value]
        found = [self.number_or_nan(entry) for entry in entries if entry is not None]
        self.require(good is None or all(map(good, found)))
        return found

    def array(self, value: Any) -> list[Any]:
        self.require(isinstance(value, list) and not isinstance(value, Object))
        entries: list[Any] = value
        return entries

    def members(self, value: Any, read: Callable[[bytes, Any], object]) -> None:
        self.require(isinstance(value, Object))
        for name, member in value:
            read(self.bytes_of(name), member)

    # -- features --------------------------------------------------------------------------------------

    def open(self) -> None:
        self.require(self.depth < DEPTH)
        self.depth += 1

    def namespace(self, name: bytes) -> Namespace:
        if name in (b" ", b""):
            return Namespace(b" ", self.how.hash(b" ", self.how.hash_seed))
        return Namespace(name, self.how.hash(name, self.how.hash_seed))

    def add(self, namespace: Namespace, hash_: int, value: float) -> None:
        if value == 0:
            return
        spans = self.lines[self.line].spans
        if namespace.name not in (name for name, _ in spans):
            spans.append((namespace.name, []))
        next(features for name, features in spans if name == namespace.name).append((hash_ % 2**32, value))

    def object(self, value: Any, namespace: Namespace) -> None:
        self.open()
        self.members(value, lambda name, member: self.member(namespace, name, member))
        self.depth -= 1

    def scalar(self, value: Any) -> float:
        if value is None or isinstance(value, bool):
            return float(bool(value))
        found = self.number(value)
        self.require(math.isfinite(found))
        return found

    def member(self, namespace: Namespace, name: bytes, value: Any) -> None:
        if name.startswith(b"_"):
            self.special(namespace, name, value)
        elif isinstance(value, Object):
            self.object(value, self.namespace(name))
        elif isinstance(value, list):
            inner = self.namespace(name)
            self.open()
            self.array_hash = inner.hash
            for entry in value:
                self.element(inner, entry)
            self.depth -= 1
        elif isinstance(value, str) and not isinstance(value, Number):
            text = replaced(self.bytes_of(value))
            seed = namespace.hash
            chained = self.how.hash(text, self.how.hash(name, seed)) if self.how.chain_hash else None
            self.add(namespace, self.how.hash(name + text, seed) if chained is None else chained, 1.0)
        else:
            self.add(namespace, self.how.hash(name, namespace.hash), self.scalar(value))

    def element(self, namespace: Namespace, value: Any) -> None:
        if isinstance(value, Object):
            self.object(value, Namespace(namespace.name, namespace.hash))
            return
        self.require(not isinstance(value, list))
        if isinstance(value, str) and not isinstance(value, Number):
            self.add(namespace, self.how.hash(replaced(self.bytes_of(value)), namespace.hash), 1.0)
        else:
            self.add(namespace, self.array_hash, self.scalar(value))
        self.array_hash += 1

    def special(self, namespace: Namespace, name: bytes, value: Any) -> None:
        ccb = self.how.label == "ccb"
        if name.startswith(b"_label"):
            self.label(name, value)
        elif name == b"_text" or name.lower() == b"_tag":
            if value is None:
                return
            text = self.string(value)
            if name != b"_text":
                self.lines[self.line].tag = text
                return
            for word in filter(None, re.split(rb"[ \t]", text)):
                self.add(namespace, self.how.hash(replaced(word), namespace.hash), 1.0)
        elif name == b"_multi":
            self.actions(value)
        elif name == b"_original_label_cost" and self.how.log:
            self.original_cost(value)
        elif ccb and name == b"_slots":
            self.read_slots(value)
        elif ccb and name == b"_outcomes" and not self.how.log and self.line == 0:
            self.read_outcomes(value)
        elif ccb and is_list(name) and (name != b"_p" or not self.how.log or self.place):
            self.slot_list(name, value)
        else:
            self.require(name not in (b"_slots", b"_slot_id", b"_original_label_cost"))
            self.require(name.lower() != b"__aid")

    def actions(self, value: Any) -> None:
        if value is None:
            return
        self.require(self.line == 0 and self.how.multiline)
        self.lines[0].shared = True
        self.open()
        for action in self.array(value):
            if action is not None:
                self.require(isinstance(action, Object))
                self.line = len(self.lines)
                self.lines.append(Line(number=self.lines[0].number))
                self.object(action, self.namespace(b" "))
                self.line = 0
        self.depth -= 1

    # -- labels ----------------------------------------------------------------------------------------

    def label(self, name: bytes, value: Any) -> None:
        if name.startswith(b"_label_"):
            self.label_property(name[7:], value)
        elif name.lower() == b"_labelindex":
            if value is not None:
                self.require(isinstance(value, Number) and read_number(value)[1])
                self.index = int(self.number(value))
        else:
            self.require(name == b"_label" and self.how.label != "ccb")
            if isinstance(value, str) and not isinstance(value, Number):
                self.text_label(self.bytes_of(value))
            else:
                self.whole_label(value)

    def text_label(self, text: bytes) -> None:
        """Read a label in the syntax of VW's text; a label with NaN is not used."""
        target, words = self.lines[self.line], [word for word in text.split(b" ") if word]
        if self.how.label == "simple":
            self.require(len(words) <= 3)
            numbers = [vw_number(word) for word in words]
            for name, number in zip(("label", "weight", "initial"), numbers, strict=False):
                setattr(target, name, 0.0 if math.isnan(number) else number)
            if any(map(math.isnan, numbers)) or not abs(target.label) <= NOTHING:
                self.unused = True
                return
            self.require(0 <= target.weight < NOTHING and abs(target.initial) < NOTHING)
            return
        costs = [self.text_cost(word) for word in words]
        if any(math.isnan(number) for _, *numbers in costs for number in numbers):
            self.unused = True
            return
        for action, cost, probability in costs:
            self.require(not self.found and probability >= 0)
            self.found, self.action, self.cost = True, action, cost
            self.probability = probability or None
            self.claim()

    def text_cost(self, word: bytes) -> tuple[int, float, float]:
        """Return action, cost and probability of a word; the probability of ``shared`` is -1."""
        parts = [part for part in word.split(b":") if part]
        self.require(1 <= len(parts) <= 3 and parts[0] != b"graph")
        shared = parts[0] == b"shared"
        self.require(len(parts) == 1 or not shared)
        cost = vw_number(parts[1]) if len(parts) > 1 else NOTHING
        probability = vw_number(parts[2]) if len(parts) > 2 else 0.0
        self.require(not (probability < 0 or probability > 1))
        return hash_name(parts[0], 0), cost, -1.0 if shared else probability

    def whole_label(self, value: Any) -> None:
        line = self.lines[self.line]
        if isinstance(value, Object):
            line.label, line.costs = NOTHING, []
            self.open()
            self.members(value, lambda name, member: self.label_property(name, member, nested=True))
            self.depth -= 1
        elif value is not None:
            line.label = self.number(value)
            self.require(self.how.label == "simple")
            self.unused |= not abs(line.label) < NOTHING

    def label_property(self, name: bytes, value: Any, *, nested: bool = False) -> None:
        if value is None:
            return
        if isinstance(value, Object):
            self.require(not nested and self.how.label != "ccb")
            self.whole_label(value)
            return
        number, name = self.number_or_nan(value), name.lower()
        if self.how.label == "simple":
            self.require(name in (b"label", b"weight", b"initial"))
            setattr(self.lines[self.line], name.decode(), number)
            self.require(not (name == b"weight" and number < 0))
            if not abs(number) < NOTHING:
                self.require(name != b"initial")
                self.unused = True
            return
        if name == b"cost":
            self.cost = number
        elif name == b"probability":
            self.probability = number
        else:
            self.require(name == b"action" and (0 <= number < 2**32 or math.isnan(number)))
            self.action = 0 if math.isnan(number) else int(number)
        self.found = True
        self.claim()

    def claim(self) -> None:
        """Assign a label inside an action to that action."""
        if self.how.label != "ccb" and self.line > 0:
            self.require(self.index in (-1, self.line - 1))
            self.index = self.line - 1

    def give(self) -> None:
        """Assign the label to its line."""
        if self.unused:
            self.lines[0].label, self.lines[0].weight = NOTHING, 1.0
            return
        if not self.found or self.cost == NOTHING:
            return
        self.require(self.probability is not None or not math.isfinite(self.cost))
        if not math.isfinite(self.cost + (self.probability or 0)):
            self.unused = True
            if self.how.label == "ccb":
                self.single_slot(0, None)
            return
        assert self.probability is not None
        self.require(np.float32(1e-38) <= self.probability <= 1)
        if not self.how.multiline:
            self.require(self.action != 0)
            line = 0
        else:
            line = self.index + 1 if self.index >= 0 else self.action
            self.require(0 < line < len(self.lines))
        if self.how.label == "ccb":
            self.single_slot(line - 1, self.probability)
        else:
            self.lines[line].costs.append((self.action, self.cost, self.probability))

    # -- slots -----------------------------------------------------------------------------------------

    def read_slots(self, value: Any) -> None:
        if value is None:
            return
        self.require(not self.slots and self.line == 0)
        self.open()
        for entry in self.array(value):
            self.read_slot(entry, self.new_slot)
        self.depth -= 1

    def read_outcomes(self, value: Any) -> None:
        if value is None:
            return
        entries = self.array(value)
        self.require(not self.seen)
        self.seen = True
        if self.closed:
            self.log_outcomes(entries)
        else:
            self.early = entries

    def log_outcomes(self, entries: list[Any]) -> None:
        self.open()
        left = list(self.slots)

        def next_slot() -> int:
            self.require(left)
            return left.pop(0)

        for entry in entries:
            self.read_slot(entry, next_slot)
        self.depth -= 1

    def read_slot(self, value: Any, line_of_slot: Callable[[], int]) -> None:
        if value is None:
            return
        self.require(isinstance(value, Object))
        self.line, self.index = line_of_slot(), -1
        self.forget()
        self.place = self.depth + 1
        self.object(value, self.namespace(b" "))
        self.place = None
        slot, self.line = self.lines[self.line], 0
        self.log_slot(slot)

    def new_slot(self) -> int:
        self.lines.append(Line(number=self.lines[0].number, slot=True))
        self.slots.append(len(self.lines) - 1)
        return self.slots[-1]

    def slot_list(self, name: bytes, value: Any) -> None:
        self.require(self.depth == self.place)
        if name.lower() == b"_inc":
            self.included += self.numbers(value, lambda number: 0 <= number < 2**32 and number % 1 == 0)
        elif name == b"_a":
            self.listed += self.numbers(value)
        else:
            self.pmf += self.numbers(value)

    def log_slot(self, line: Line) -> None:
        """Restrict a slot to its allowed actions, and assign the logged outcome."""
        line.costs += [(int(action), NOTHING, CONFINED) for action in self.included]
        self.included = []
        if not self.listed and not self.pmf and self.cost == NOTHING:
            return
        self.require(len(self.listed) == len(self.pmf) > 0 and self.cost != NOTHING)
        probability = self.pmf[0]
        if math.isfinite(self.cost) and math.isfinite(probability):
            confined = [cost for cost in line.costs if cost[2] == CONFINED]
            self.require(len(confined) == len(line.costs) and np.float32(1e-38) <= probability <= 1)
            first = self.listed[0]
            action = 0 if math.isnan(first) else int(first) if 0 <= first < 2**32 else 2**32 - 1
            line.costs = [(action, self.cost, probability), *confined]
        else:
            self.unused = True
        self.forget()

    def single_slot(self, action: int, probability: float | None) -> None:
        slot = self.lines[self.new_slot()]
        if probability is not None:
            slot.costs.append((action % 2**32, self.cost, probability))

    # -- the whole -------------------------------------------------------------------------------------

    def context(self, value: Any) -> None:
        self.object(value, self.namespace(b" "))
        self.closed = True

    def original_cost(self, value: Any) -> None:
        if value is not None:
            self.number(value)

    def envelope(self, name: bytes, value: Any) -> None:
        if name in (b"a", b"_ba"):
            self.numbers(value)
        elif name == b"c":
            if value is not None:
                self.require(isinstance(value, Object) and not self.closed)
                self.context(value)
        elif name == b"pdrop":
            self.drop = 0.0 if value is None else self.number(value)
        elif name == b"_skipLearn":
            self.require(value is None or isinstance(value, bool))
            self.skipped = self.skipped if value is None else value
        elif name in (b"EventId", b"Timestamp"):
            self.require(value is None or self.string(value) is not None)
        elif name == b"_original_label_cost":
            self.original_cost(value)
        elif name.startswith(b"_label_") or (name.startswith(b"_label") and name.lower() == b"_labelindex"):
            self.label(name, value)
        elif name == b"_outcomes":
            self.require(self.how.label == "ccb")
            self.read_outcomes(value)

    def read(self) -> list[Line]:
        """Return the lines of the event, none if there is nothing to learn."""
        if self.how.log:
            self.depth += 1
            self.members(self.document, self.envelope)
            self.depth -= 1
        else:
            self.context(self.document)
        if self.early is not None and self.closed:
            self.log_outcomes(self.early)
        self.require(0 <= self.drop < 1)
        if self.how.log and (self.skipped or not self.closed):
            return []
        self.require(not self.how.multiline or len(self.lines) > 1)
        if not self.slots:
            self.give()
        if self.drop and self.how.label != "simple":
            for line in self.lines:
                line.weight = float(np.float32(1) / (np.float32(1) - np.float32(self.drop)))
        others = [line for line in self.lines if not line.slot]
        lines = [*others, *(self.lines[slot] for slot in self.slots)]
        self.require(self.how.label != "ccb" or event_problem(lines) is None)
        return lines


def is_list(name: bytes) -> bool:
    return name in (b"_a", b"_p") or name.lower() == b"_inc"


def vw_number(word: bytes) -> float:
    """Return a number of a label in VW's syntax, NaN included."""
    value, length = parse_vw_float(word)
    if not length:
        raise RejectedError
    return float(value)


def replaced(text: bytes) -> bytes:
    return re.sub(rb"[ \t|:]", b"_", text)


def event_of(line: bytes, settings: JsonSettings, number: int) -> tuple[list[Line], bool]:
    """Return the lines of the event of a line, and whether its label is not finite and so not used.

    Raises
    ------
    MalformedError
        The line is not JSON.
    RejectedError
        The line is JSON but not an event.
    """
    event = Event(line, settings, number)
    return event.read(), event.unused
