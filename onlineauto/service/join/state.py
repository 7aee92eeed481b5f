"""``JoinState``: a join as plain values, for a snapshot, and the checks of values that are read back."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.errors import InputError, OptionError
from onlineauto.service.join.counts import Counts
from onlineauto.service.join.decision import DecisionTable, JoinDecision, entries_of, is_decision, upgrade
from onlineauto.service.join.rules import JoinRules, RuleBook
from onlineauto.service.join.settings import MOST_WAIT, JoinSettings, check_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

_END: Final = 1e12
"""Upper bound of all times of a table, in seconds since 1970."""


class Early(msgspec.Struct, array_like=True):
    """Rewards and an activation of a decision that has not arrived yet."""

    deadline: float
    active: bool
    rewards: list[tuple[str, float]]
    wait: float = 0.0


class JoinState(msgspec.Struct):
    """The state of a join in a snapshot; the states of all earlier versions can be read."""

    settings: JoinSettings
    now: float
    early: list[tuple[str, Early]]
    counts: Counts
    sources: dict[str, int]
    waiting: DecisionTable | None = None
    finished: list[DecisionTable] = []
    clock: float | None = None
    set_back: tuple[float, float] | None = None
    scale: tuple[dict[int, int], float] | None = None
    rules: tuple[int, list[tuple[int, float, JoinRules]]] | None = None  # absent in the second version
    heard: dict[str, float] = {}
    retired: float = 0.0
    decisions: list[tuple[str, list[Any]]] = []  # the decisions of a state of the first version


def checked_wait(decision: JoinDecision, book: RuleBook) -> float:
    """Return the seconds for which a decision of a state waits."""
    if not 0 < decision.wait <= MOST_WAIT or not abs(decision.made) < _END or decision.rules not in book:
        raise InputError(f"the decision at {decision.position} has a time that is out of range, or no rules")
    return decision.wait


def decisions_of(table: DecisionTable, kept: JoinState) -> Iterator[tuple[str, bytes]]:
    """Yield the entries of a table of a state; entries of version 2 get the rules of the settings."""
    for event_id, packed in entries_of(table):
        entry = packed if kept.rules is not None else upgrade(packed)
        if not is_decision(entry):
            raise InputError(f"{event_id!r} has {len(packed)} bytes, as no decision has")
        yield event_id, entry


def check_state(kept: JoinState) -> None:
    """Check that the settings, times and bounds of a state are within their ranges."""
    try:
        check_settings(kept.settings)
        for _, _, rules in () if kept.rules is None else kept.rules[1]:
            check_settings(msgspec.structs.replace(kept.settings, **msgspec.structs.asdict(rules)))
    except OptionError as error:
        raise InputError(f"the settings are out of range: {error}") from None
    times = [kept.now, kept.clock or 0.0, kept.retired, *(kept.set_back or ()), *kept.heard.values()]
    times += [each for _, early in kept.early for each in (early.deadline, early.wait)]
    if not all(abs(each) < _END for each in times):
        raise InputError("a time is out of range")
    if kept.scale is not None and not 0 < kept.scale[1] < inf:
        raise InputError(f"the bound of rewards is {kept.scale[1]}")
