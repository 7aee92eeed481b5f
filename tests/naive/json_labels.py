"""Labels of JSON, the slow and obvious way."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.records.problem_code_kernels import ProblemCode
from tests.naive.floats import parse_vw_float
from tests.naive.json_values import Scanner
from tests.naive.lines import NOTHING, FatalError, Line
from tests.naive.vw_text import read_vw_costs, read_vw_simple

if TYPE_CHECKING:
    from tests.naive.json_text import JsonSettings

__all__ = ["JsonLabels", "Labelled"]


@dataclass
class Labelled:
    """A line that is being read."""

    line: Line


class JsonLabels(Scanner):
    """The lines of an event, and the label that was found, of the action `index`."""

    depth: int
    place: int | None

    def __init__(self, text: bytes, settings: JsonSettings, number: int) -> None:
        super().__init__(text, exact=settings.exact)
        self.how = settings
        self.begin = 0
        self.problems: list[tuple[ProblemCode, int]] = []
        self.lines = [Labelled(Line(number=number))]
        self.line = 0
        self.index = -1
        self.label_at = self.index_at = self.cost_at = self.probability_at = 0
        self.unused = False
        self.clear()

    def clear(self) -> None:
        self.found = False
        self.action, self.cost = 0, NOTHING
        self.probability: float | None = None

    def label(self, name: bytes, at: int) -> None:
        """Read the value of a key that begins with ``_label``."""
        if name.startswith(b"_label_"):
            self.property(name[7:], at)
        elif name.lower() == b"_labelindex":
            if self.exact and self.place:
                self.bad(ProblemCode.JSON_KEY, at)
            self.read_index()
        elif name != b"_label":
            self.bad(ProblemCode.JSON_KEY, at)
        elif self.how.label == "ccb":
            self.bad(ProblemCode.JSON_LABEL)
        elif self.peek() == b'"':
            self.text_label()
        else:
            self.whole_label()

    def read_index(self) -> None:
        if self.null():
            return
        begin = self.at
        value, whole = self.number(ProblemCode.JSON_UNEXPECTED)
        if not whole:
            self.bad(ProblemCode.JSON_LABEL_INDEX, begin)
        if value < 2**31 or not self.exact:
            self.index = int(value)
        self.index_at = begin

    def text_label(self) -> None:
        begin = self.at
        text = self.string()[0]
        self.label_at = begin
        line = Line(number=0)
        target = self.lines[self.line].line
        words = [(match[0], match.start()) for match in re.finditer(rb"[^ ]+", text)]
        problems: list[tuple[ProblemCode, int]] = []
        try:
            if self.how.label == "simple":
                line.label, line.weight, line.initial = target.label, target.weight, target.initial
                read_vw_simple(text, words, line, problems)
                target.label, target.weight, target.initial = line.label, line.weight, line.initial
            else:
                read_vw_costs(text, words, line, problems)
        except FatalError:
            self.bad(ProblemCode.JSON_LABEL, begin)
        if not self.exact and (
            (problems and all(code == ProblemCode.VW_FLOAT and is_nan(text[at:]) for code, at in problems))
            or not (problems or abs(target.label) <= NOTHING)
        ):
            simple = self.how.label == "simple"
            self.problems.append(
                (ProblemCode.LABEL_NOT_FINITE if simple else ProblemCode.COST_NOT_FINITE, begin)
            )
            self.unused = True
            return
        good = abs(target.label) <= NOTHING and 0 <= target.weight < NOTHING and abs(target.initial) < NOTHING
        if problems or line.shared or not (self.exact or good):
            self.bad(ProblemCode.JSON_LABEL, begin)
        for cost in line.costs:
            if self.exact:
                target.costs.append(cost)
                continue
            if self.found:
                self.bad(ProblemCode.SECOND_COST, begin)
            self.found = True
            self.action, self.cost = cost[:2]
            self.probability = cost[2] or None
            self.cost_at = self.probability_at = begin
            if self.index < 0:
                self.index_at = begin
            self.claim()

    def whole_label(self) -> None:
        """Read an object that is a label, or a number that is one."""
        begin = self.at
        if self.peek() == b"{":
            line = self.lines[self.line].line
            line.label, line.costs = NOTHING, []
            line.shared &= not self.exact
            self.open()
            self.label_at = begin
            self.members(lambda name, _, at: self.property(name, at, nested=True))
            self.depth -= 1
            if self.exact:
                self.settle(indexed=False)
            return
        if self.null():
            return
        value = self.number(ProblemCode.JSON_UNEXPECTED)[0]
        if self.how.label != "simple":
            self.bad(ProblemCode.JSON_UNEXPECTED, begin)
        self.lines[self.line].line.label = value
        if not self.exact and not abs(value) < NOTHING:
            self.problems.append((ProblemCode.LABEL_NOT_FINITE, begin))
            self.unused = True

    def open(self) -> None:
        raise NotImplementedError

    def property(self, name: bytes, at: int, *, nested: bool = False) -> None:
        """Read the value of a label's property."""
        if self.null():
            return
        begin = self.at
        if self.peek() == b"{":
            if nested or self.how.label == "ccb":
                self.bad(ProblemCode.JSON_UNEXPECTED)
            self.whole_label()
            return
        if self.peek() == b'"':
            value = math.nan
            if self.string()[0].lower() != b"nan":
                self.bad(ProblemCode.JSON_UNEXPECTED, begin)
        else:
            value = self.number(ProblemCode.JSON_UNEXPECTED)[0]
        self.label_at = begin
        name = name.lower()
        if self.how.label == "simple":
            self.simple_property(name, value, at, begin)
        elif name == b"cost":
            self.cost, self.cost_at = value, begin
        elif name == b"probability":
            self.probability, self.probability_at = value, begin
        elif name == b"action" and (0 <= value < 2**32 or (math.isnan(value) and not self.exact)):
            self.action = 0 if math.isnan(value) else int(value)
            if self.index < 0:
                self.index_at = begin
        else:
            self.bad(ProblemCode.JSON_KEY, at)
        if self.how.label != "simple":
            self.found = True
            self.claim()

    def simple_property(self, name: bytes, value: float, at: int, begin: int) -> None:
        codes = {
            b"label": ProblemCode.LABEL_NOT_FINITE,
            b"weight": ProblemCode.WEIGHT_NOT_FINITE,
            b"initial": ProblemCode.INITIAL_NOT_FINITE,
        }
        if name not in codes:
            self.bad(ProblemCode.JSON_KEY, at)
        setattr(self.lines[self.line].line, name.decode(), value)
        if name == b"weight" and value < 0:
            if not self.exact:
                self.bad(ProblemCode.WEIGHT_NEGATIVE, begin)
            self.problems.append((ProblemCode.VW_WEIGHT, begin))
        elif not self.exact and not abs(value) < NOTHING:
            if name == b"initial":
                self.bad(codes[name], begin)
            self.problems.append((codes[name], begin))
            self.unused = True

    def claim(self) -> None:
        """Let a label within an action be that action's."""
        if self.exact or self.how.label == "ccb" or self.line == 0:
            return
        if self.index not in (-1, self.line - 1):
            self.bad(ProblemCode.SECOND_LABEL, self.label_at)
        self.index = self.line - 1

    def settle(self, *, indexed: bool) -> None:
        """Give the label to its line as VW does."""
        if indexed and self.index >= 0:
            if self.index + 1 >= len(self.lines):
                self.bad(ProblemCode.JSON_LABEL_INDEX, self.index_at)
            self.line, self.index = self.index + 1, -1
        if self.found:
            probability = 0.0 if self.probability is None else self.probability
            self.lines[self.line].line.costs.append((self.action, self.cost, probability))
        self.clear()

    def give(self) -> None:
        """Give the label to its line, wherever it stands: native mode."""
        if self.unused:
            self.lines[0].line.label, self.lines[0].line.weight = NOTHING, 1.0
            return
        if not self.found or self.cost == NOTHING:
            return
        if math.isfinite(self.cost) and self.probability is None:
            self.bad(ProblemCode.NO_PROBABILITY, self.cost_at)
        if not math.isfinite(self.cost):
            self.problems.append((ProblemCode.COST_NOT_FINITE, self.cost_at))
        elif not math.isfinite(self.probability or 0):
            self.problems.append((ProblemCode.PROBABILITY_NOT_FINITE, self.probability_at))
        if not math.isfinite(self.cost + (self.probability or 0)):
            if self.how.label == "ccb":
                self.single_slot(0, None)
            return
        assert self.probability is not None
        if not np.float32(1e-38) <= self.probability <= 1:
            codes = (
                ProblemCode.PROBABILITY_NEGATIVE,
                ProblemCode.PROBABILITY_ZERO,
                ProblemCode.PROBABILITY_ABOVE_ONE,
            )
            self.bad(codes[(self.probability >= 0) + (self.probability > 1)], self.probability_at)
        at = self.index + 1
        if not self.how.multiline:
            at = 0
            if self.action == 0:
                self.bad(ProblemCode.NO_ACTION_NAME, self.label_at)
        elif self.index < 0:
            at = self.action
            if at == 0:
                self.bad(ProblemCode.JSON_NO_LABEL_INDEX, self.label_at)
        if at >= len(self.lines):
            self.bad(ProblemCode.JSON_LABEL_INDEX, self.index_at)
        if self.how.label == "ccb":
            self.single_slot(at - 1, self.probability)
            return
        self.lines[at].line.costs.append((self.action, self.cost, self.probability))

    def single_slot(self, action: int, probability: float | None) -> None:
        raise NotImplementedError


def is_nan(text: bytes) -> bool:
    """Whether a text begins with NaN as VW reads it."""
    value, length = parse_vw_float(text)
    return bool(length and np.isnan(value))
