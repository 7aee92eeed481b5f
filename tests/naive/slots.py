"""Events that have slots the slow and obvious way: each slot written out as an event of its own.

And the labels of slots in text, by splits and regular expressions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from onlineauto.formats.code_kernels import Code
from tests.naive.lines import NOTHING, Line, Settings

__all__ = ["CONFINED", "Slot", "SlotEvent", "event_problem", "read_slot_label", "written_out"]

CONFINED = float("-inf")

Cost = tuple[int, float, float]


@dataclass(frozen=True)
class Slot:
    """Features as text; the outcome; what the slot is confined to, if it is."""

    features: str
    outcome: tuple[int, float, float] | None
    confined: tuple[int, ...] = ()


@dataclass(frozen=True)
class SlotEvent:
    """Features of the shared line and of the actions as text, and slots, all of which have an outcome."""

    shared: str
    actions: tuple[str, ...]
    slots: tuple[Slot, ...]

    def text(self) -> str:
        """The event as ``--ccb_explore_adf`` reads it."""
        lines = [f"ccb shared {self.shared}", *(f"ccb action {action}" for action in self.actions)]
        for slot in self.slots:
            words = [":".join(map(str, slot.outcome))] if slot.outcome else []
            words += [",".join(map(str, slot.confined))] if slot.confined else []
            lines.append(" ".join(["ccb slot", *words, slot.features]))
        return "\n".join(lines) + "\n\n"


def written_out(event: SlotEvent) -> list[tuple[str, list[int]]]:
    """Every slot as an event of ``--cb_explore_adf``, and the numbers of its actions.

    What tells slots is a feature of the namespace ``_id``. All slots have an outcome, which is the choice.
    """
    texts = []
    left = list(range(len(event.actions)))
    for number, slot in enumerate(event.slots):
        assert slot.outcome is not None
        chosen, cost, probability = slot.outcome
        free = [action for action in left if not slot.confined or action in slot.confined]
        lines = [f"shared {event.shared} {slot.features} |_id index{number}"]
        for action in free:
            label = f"0:{cost}:{probability} " if action == chosen else ""
            lines.append(label + event.actions[action])
        texts.append(("\n".join(lines) + "\n\n", free))
        left.remove(chosen)
    return texts


def _number(word: str) -> float | None:
    """A short decimal number."""
    return float(word) if re.fullmatch(r"-?\d+(\.\d+)?", word) else None


def _action(word: str) -> int | None:
    return int(word) if re.fullmatch(r"\d{1,9}", word) else None


def _read_outcome(word: str) -> list[Cost] | Code:
    first, *others = word.split(",")
    parts = first.split(":")
    if len(parts) > 3 or len(parts) < 2:
        return Code.SLOT_OUTCOME
    if (action := _action(parts[0])) is None:
        return Code.ACTION_NOT_A_NUMBER
    if (cost := _number(parts[1])) is None:
        return Code.COST_NOT_A_NUMBER
    if len(parts) == 2:
        return Code.NO_PROBABILITY
    if (probability := _number(parts[2])) is None:
        return Code.PROBABILITY_NOT_A_NUMBER
    if not 0 < probability <= 1:
        negative, zero = Code.PROBABILITY_NEGATIVE, Code.PROBABILITY_ZERO
        return negative if probability < 0 else zero if probability == 0 else Code.PROBABILITY_ABOVE_ONE
    total = probability
    if others[-1:] == [""]:
        others.pop()  # nothing after the last comma
    for other in others:
        name, colon, value = other.partition(":")
        if not colon:
            return Code.SLOT_OUTCOME
        if _action(name) is None:
            return Code.ACTION_NOT_A_NUMBER
        if (more := _number(value)) is None:
            return Code.PROBABILITY_NOT_A_NUMBER
        if more < 0:
            return Code.PROBABILITY_NEGATIVE
        total += more
    if "," in word and abs(total - 1) >= 1e-4:
        return Code.SLOT_SUM
    return [(action, cost, probability)]


def read_slot_label(label: str) -> tuple[bool, bool, list[Cost]] | Code:
    """Whether a label is that of a shared line or of a slot, and its costs; or what is wrong with it."""
    words = label.split()
    if words[:1] != ["ccb"] or words[1:2] not in (["shared"], ["slot"], ["action"]):
        return Code.SLOT_LABEL
    kind, rest = words[1], words[2:]
    costs: list[Cost] = []
    if kind == "slot" and rest and ":" in rest[0]:
        outcome = _read_outcome(rest.pop(0))
        if isinstance(outcome, Code):
            return outcome
        costs += outcome
    if kind == "slot" and rest:
        names = rest.pop(0).split(",")
        for name in names[:-1] if names[-1] == "" else names:
            if (action := _action(name)) is None:
                return Code.ACTION_NOT_A_NUMBER
            costs.append((action, NOTHING, CONFINED))
    return Code.SLOT_LABEL if rest else (kind == "shared", kind == "slot", costs)


def event_problem(lines: list[Line], settings: Settings) -> tuple[Code, Line] | None:
    """What is wrong with the lines of an event, and with which of them."""
    slots: list[Line] = []
    for line in lines:
        if line.shared != (line is lines[0]) or (slots and not line.slot):
            return Code.SLOT_ORDER, line
        slots += [line] if line.slot else []
    n_actions = len(lines) - len(slots) - 1
    if len(slots) > n_actions:
        return Code.TOO_MANY_SLOTS, slots[0]
    if settings.exact:
        return None
    taken: set[int] = set()
    for slot in slots:
        logged = [action for action, _, probability in slot.costs if probability != CONFINED]
        confined = [action for action, _, probability in slot.costs if probability == CONFINED]
        if any(action >= n_actions for action in (*logged, *confined)):
            return Code.SLOT_ACTION, slot
        if any(action in taken or (confined and action not in confined) for action in logged):
            return Code.SLOT_ACTION, slot
        taken.update(logged)
    return None
