"""Events with slots: each slot as a separate event, and the problems of the lines of an event."""

from __future__ import annotations

from dataclasses import dataclass

from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from tests.naive.lines import Line

CONFINED = float("-inf")


@dataclass(frozen=True)
class Slot:
    """Features as text, the outcome, and the allowed actions if they are listed."""

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
        """Return the event as text for ``--ccb_explore_adf``."""
        lines = [f"ccb shared {self.shared}", *(f"ccb action {action}" for action in self.actions)]
        for slot in self.slots:
            words = [":".join(map(str, slot.outcome))] if slot.outcome else []
            words += [",".join(map(str, slot.confined))] if slot.confined else []
            lines.append(" ".join(["ccb slot", *words, slot.features]))
        return "\n".join(lines) + "\n\n"


def written_out(event: SlotEvent) -> list[tuple[str, list[int]]]:
    """Return every slot as an event of ``--cb_explore_adf``, and the numbers of its actions.

    A feature of the namespace ``_id`` identifies the slot. All slots have an outcome, which is the choice.
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


def event_problem(lines: list[Line]) -> tuple[ProblemCode, Line] | None:
    """Return the problem of the lines of an event, and the line that has it."""
    slots: list[Line] = []
    for line in lines:
        if line.shared != (line is lines[0]) or (slots and not line.slot):
            return ProblemCode.SLOT_ORDER, line
        slots += [line] if line.slot else []
    n_actions = len(lines) - len(slots) - 1
    if len(slots) > max(n_actions, 0):
        return ProblemCode.TOO_MANY_SLOTS, slots[0]
    taken: set[int] = set()
    for slot in slots:
        logged = [action for action, _, probability in slot.costs if probability != CONFINED]
        confined = [action for action, _, probability in slot.costs if probability == CONFINED]
        if any(action >= n_actions for action in (*logged, *confined)):
            return ProblemCode.SLOT_ACTION, slot
        if any(action in taken or (confined and action not in confined) for action in logged):
            return ProblemCode.SLOT_ACTION, slot
        taken.update(logged)
    return None
