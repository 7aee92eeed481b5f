"""Slots of JSON, the slow and obvious way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.records.problem_code_kernels import ProblemCode
from tests.naive.json_labels import JsonLabels, Labelled
from tests.naive.lines import NOTHING, Line
from tests.naive.slots import CONFINED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.naive.json_text import JsonSettings

__all__ = ["JsonSlots"]

LISTS = (b"_a", b"_p", b"_inc")


class JsonSlots(JsonLabels):
    """The slots of an event, and what was read of a label that is not given to one yet."""

    closed: bool
    depth: int

    def __init__(self, text: bytes, settings: JsonSettings, number: int) -> None:
        super().__init__(text, settings, number)
        self.slots: list[int] = []
        self.place: int | None = None  # how deep the object of a slot or of an outcome is, if one is open
        self.early: int | None = None
        self.seen = False
        self.ranking: list[float] = []
        self.forget()

    def forget(self) -> None:
        self.listed: list[float] = []
        self.pmf: list[float] = []
        self.included: list[float] = []
        self.clear()

    # -- arrays ----------------------------------------------------------------------------------------

    def read_slots(self, *, within_context: bool) -> bool:
        """Read the array of slots; False if it is null."""
        if self.null():
            return False
        misplaced = self.exact and not (within_context and len(self.lines) > 1)
        if self.peek() != b"[" or self.slots or self.line > 0 or misplaced:
            self.bad(ProblemCode.JSON_UNEXPECTED)
        self.open()
        self.elements(lambda: self.read_one(self.new_slot))
        self.depth -= 1
        return True

    def read_outcomes(self) -> None:
        """Read what was logged of the slots, or put it off."""
        if self.null():
            return
        if self.peek() != b"[":
            self.bad(ProblemCode.JSON_UNEXPECTED)
        if self.seen:
            self.bad(ProblemCode.JSON_OUTCOMES)
        self.seen = True
        if self.closed or self.exact:
            self.put_off_outcomes()
        else:
            self.early = self.at
            self.skip()

    def put_off_outcomes(self) -> None:
        self.open()
        left = list(self.slots)

        def next_outcome() -> int:
            if not left:
                self.bad(ProblemCode.JSON_OUTCOMES)
            return left.pop(0)

        self.elements(lambda: self.read_one(next_outcome))
        self.depth -= 1
        outcomes = [self.outcome(self.lines[slot].line) for slot in self.slots]
        self.ranking += [float(found[0]) for found in outcomes if found]

    def read_one(self, line: Callable[[], int]) -> None:
        """Read the object of a slot or of an outcome, which is the line's that `line` tells."""
        if self.peek() == b"n" and not self.exact:
            self.word()
            return
        if self.peek() != b"{":
            self.bad(ProblemCode.JSON_UNEXPECTED)
        self.line, self.index = line(), -1
        if not self.exact:
            self.forget()
        self.place = self.depth + 1
        self.unnamed()
        self.place = None
        slot, self.line = self.line, 0
        self.give_slot(slot)

    def new_slot(self) -> int:
        self.lines.append(Labelled(Line(number=self.lines[0].line.number, slot=True)))
        self.slots.append(len(self.lines) - 1)
        return self.slots[-1]

    def unnamed(self) -> None:
        """Read an object whose features have no namespace."""
        raise NotImplementedError

    # -- lists -----------------------------------------------------------------------------------------

    def slot_list(self, name: bytes, at: int) -> None:
        """Read ``_a``, ``_p`` or ``_inc``."""
        if self.depth != self.place:
            self.bad(ProblemCode.JSON_KEY, at)
        if name.lower() == b"_inc":
            self.included += self.list(check_action)
            return
        begin = self.at
        found = self.list()
        if name == b"_a":
            self.label_at = begin
            self.listed += found
        else:
            self.pmf += found

    # -- labels ----------------------------------------------------------------------------------------

    def outcome(self, line: Line) -> tuple[int, float, float] | None:
        """What was logged of a slot."""
        return line.costs[0] if line.costs and line.costs[0][2] != CONFINED else None

    def confine(self, line: Line) -> None:
        """Give a slot the actions that it is confined to."""
        if line.slot:
            line.costs += [(action_of(value), NOTHING, CONFINED) for value in self.included]
        self.included = []

    def log(self, line: Line) -> None:
        """Give a slot what was logged of it."""
        if line.slot:
            confined = [cost for cost in line.costs if cost[2] == CONFINED]
            line.costs = [(action_of(self.listed[0]), self.cost, self.pmf[0]), *confined]

    def give_slot(self, slot: int) -> None:
        line = self.lines[slot].line
        self.confine(line)
        if not self.listed and not self.pmf and (self.exact or self.cost == NOTHING):
            return
        if len(self.listed) != len(self.pmf) or not self.pmf:
            self.bad(ProblemCode.SLOT_LISTS, self.label_at)
        if self.exact or self.is_used(line):
            self.log(line)
        self.forget()

    def is_used(self, line: Line) -> bool:
        """Refuse what native mode does not want to be logged; False if it is not finite."""
        if self.cost == NOTHING:
            self.bad(ProblemCode.NO_COST, self.label_at)
        probability = self.pmf[0]
        if not math.isfinite(self.cost) or not math.isfinite(probability):
            finite = math.isfinite(self.cost)
            code = ProblemCode.PROBABILITY_NOT_FINITE if finite else ProblemCode.COST_NOT_FINITE
            self.problems.append((code, self.label_at))
            return False
        if self.outcome(line):
            self.bad(ProblemCode.SLOT_LABELLED, self.label_at)
        if not np.float32(1e-38) <= probability <= 1:
            codes = (
                ProblemCode.PROBABILITY_NEGATIVE,
                ProblemCode.PROBABILITY_ZERO,
                ProblemCode.PROBABILITY_ABOVE_ONE,
            )
            self.bad(codes[(probability >= 0) + (probability > 1)], self.label_at)
        return True

    def end_context(self) -> None:
        """What VW does where the context ends."""
        if self.index + 1 >= len(self.lines):
            self.bad(ProblemCode.JSON_LABEL_INDEX, self.index_at)
        if not self.slots and self.found:
            self.single_slot(self.action - 1, -1.0 if self.probability is None else self.probability)

    def single_slot(self, action: int, probability: float | None) -> None:
        """Make a slot of the label of an event without any; None for one without a label."""
        slot = self.lines[self.new_slot()].line
        if probability is not None:
            slot.costs.append((action % 2**32, self.cost, probability))


def check_action(value: float) -> bool:
    return 0 <= value < 2**32 and value == math.floor(value)


def action_of(value: float) -> int:
    if math.isnan(value):
        return 0
    return int(value) if 0 <= value < 2**32 else 2**32 - 1
