"""``TrafficWatch``: how the latest decisions differ from those before: choices, names of features, rewards.

All decisions that have ended count for the share of rewards. For choices and names, decisions count that were
made 50 ms after the last one that counted, and of the others one in 64, since reading a context costs as
much as writing the log. Counts of choices are halved after 500, so that they follow the traffic. Their
entropy is that of the preferred actions, those with the highest probability, since exploration would hide
that the model prefers one action for all.

A name is steady if a tenth of the decisions or more had it in each of 24 hours in a row. A steady name has
vanished if neither the latest 200 counted decisions nor those of the last 10 minutes had it. What vanishes
and comes back twice, like a feature of weekends, is not reported again for four weeks.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.formats.decisions.dsjson import stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.formats.decisions.dsjson import LogRecord

_APART: Final = 0.05
_SAMPLE: Final = 64
_HALVED: Final = 500.0
_FEWEST: Final = 100
"""Number of counted decisions from which there is a number, or an hour is complete."""
_HOUR: Final = 3600.0
_STEADY: Final = 24
_SHARE: Final = 0.1
_ABSENT: Final = 200
_GONE_SECONDS: Final = 600.0
_FORGOTTEN: Final = 28 * 86400.0
_RETURNS: Final = 2
_MOST_NAMES: Final = 1024
_MOST_REPORTED: Final = 20
_STORED: Final = 50
"""The number of decisions from which a name is stored, so that a person's own features are not."""
_RECENT: Final = 500
_REWARDS: Final = 25.0
"""The latest decisions are the latest 500, or as many as have 25 rewards in the long run."""
_RARE: Final = 0.0005
_LONG_RUN: Final = 50_000

LOW_ENTROPY: Final = 0.05
HIGH_FLOOR: Final = 0.5
LOST_REWARDS: Final = 0.2
"""The thresholds of the warnings, which are those of the alerts in ``alerts.yaml``."""


class VanishedFeature(msgspec.Struct, frozen=True):
    """A namespace or a feature of the context that vanished, and the time of the last decision with it."""

    name: str
    since: float


class Traffic(msgspec.Struct, frozen=True):
    """What the latest decisions are like; `warnings` names what is unusual, with a likely cause."""

    choice_entropy: float = 1.0
    floor_share: float = 0.0
    reward_share: float = 0.0
    reward_share_long_run: float = 0.0
    vanished: list[VanishedFeature] = []
    warnings: list[str] = []

    @property
    def n_vanished(self) -> int:
        """The number of reported names that have vanished."""
        return len(self.vanished)


class _Choices(msgspec.Struct):
    weight: float = 0.0
    at_floor: float = 0.0
    certainty: float = 0.0  # the sum of the highest probabilities
    preferred: dict[str, float] = {}
    offered: dict[str, float] = {}

    def halve(self) -> None:
        self.weight, self.at_floor, self.certainty = self.weight / 2, self.at_floor / 2, self.certainty / 2
        self.preferred = {name: count / 2 for name, count in self.preferred.items() if count > 0.5}
        self.offered = {name: count / 2 for name, count in self.offered.items() if count > 0.5}


class _Name(msgspec.Struct):
    last: float  # the time of the last decision with it
    number: int  # the number of that decision
    count: int = 0  # in this hour
    hours: int = 0  # hours in a row in which it was frequent; below 0 while it is not to be reported
    returns: int = 0


class _Rewards(msgspec.Struct):
    decisions: int = 0
    recent: float = 0.0
    long_run: float = 0.0


class _State(msgspec.Struct):
    seen: int = 0
    counted: int = 0
    last: float = 0.0
    hour_begin: float = 0.0
    in_hour: int = 0
    choices: _Choices = msgspec.field(default_factory=_Choices)
    names: dict[str, _Name] = {}
    rewards: _Rewards = msgspec.field(default_factory=_Rewards)


_CONTEXT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ACTIONS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


class TrafficWatch:
    """Watches the decisions that end, in the order of the log.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from msgspec import Raw
    >>> from onlineauto.formats.decisions.dsjson import LogRecord
    >>> watch = TrafficWatch()
    >>> context = Raw(b'{"user":{"age":3},"_multi":[{"_tag":"art"},{"_tag":"news"}]}')
    >>> for second in range(200):
    ...     made = datetime.fromtimestamp(1e9 + second, UTC)
    ...     watch.take(LogRecord("rank", made, "e", [1, 2], [0.9, 0.1], context), explored=True)
    ...     watch.take_reward(rewarded=second % 2 == 0)
    >>> watch.summary().choice_entropy, round(watch.summary().reward_share, 2)
    (0.0, 0.5)
    >>> watch.summary().warnings[0][:50]
    "the model prefers 'art' in 100 % of the decisions:"
    """

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        self._state = _State() if not state else msgspec.convert(state, _State)

    @property
    def seen(self) -> int:
        """The number of decisions that have ended."""
        return self._state.rewards.decisions

    def take_reward(self, *, rewarded: bool) -> None:
        """Count whether a decision that has ended got a reward."""
        rewards = self._state.rewards
        rewards.decisions += 1
        window = min(max(_RECENT, _REWARDS / max(rewards.long_run, _RARE)), rewards.decisions)
        rewards.recent += (rewarded - rewards.recent) / window
        rewards.long_run += (rewarded - rewards.long_run) / min(rewards.decisions, _LONG_RUN)

    def take(self, decision: LogRecord, *, explored: bool) -> None:
        """Count the choice and the names of a decision that has ended; `explored` if the model chose."""
        state, time = self._state, decision.time.timestamp()
        state.seen += 1
        if state.seen % _SAMPLE and abs(time - state.last) < _APART:  # decisions end in another order
            return
        state.last = time
        try:
            context = _CONTEXT.decode(decision.context)
            actions = _ACTIONS.decode(context.pop("_multi", b"[]"))
            if explored and len(decision.probabilities) > 1:
                tags = [msgspec.json.decode(each["_tag"], type=str) for each in actions]
                self._take_choice(decision, tags)
            names = set(_names_in(context))
        except (msgspec.MsgspecError, LookupError, ValueError):  # the learner reports what it cannot read
            return
        names.update(f"actions.{name}"[:80] for each in actions for name in each if name != "_tag")
        self._take_names(names, time)

    def summary(self) -> Traffic:
        """Return what the latest decisions are like."""
        choices, rewards = self._state.choices, self._state.rewards
        entropy, floor = 1.0, 0.0
        if choices.weight >= _FEWEST and len(choices.offered) > 1:
            total = sum(choices.preferred.values())
            shares = [count / total for count in choices.preferred.values()]
            entropy = max(0.0, -sum(share * log(share) for share in shares) / log(len(choices.offered)))
            floor = choices.at_floor / choices.weight
        traffic = Traffic(entropy, floor, rewards.recent, rewards.long_run, self._vanished())
        return msgspec.structs.replace(traffic, warnings=list(self._warnings(traffic)))

    def state(self) -> dict[str, Any]:
        """Return the state as values that a model file can store."""
        names = {
            name: each for name, each in self._state.names.items() if each.hours or each.count >= _STORED
        }
        stored: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(self._state, names=names))
        return stored

    def _take_choice(self, decision: LogRecord, tags: list[str]) -> None:
        choices, chances = self._state.choices, decision.probabilities
        low, high = min(chance for chance in chances if chance > 0.0), max(chances)
        choices.weight += 1.0
        choices.at_floor += chances[0] <= 1.001 * low < high
        choices.certainty += high
        for name in tags:
            if name in choices.offered or len(choices.offered) < _MOST_NAMES:
                choices.offered[name] = choices.offered.get(name, 0.0) + 1.0
        preferred = tags[decision.ranked[chances.index(high)] - 1]
        choices.preferred[preferred] = choices.preferred.get(preferred, 0.0) + 1.0
        if choices.weight >= _HALVED:
            choices.halve()

    def _take_names(self, names: set[str], time: float) -> None:
        state = self._state
        known = state.names
        state.counted += 1
        for name in names:
            found = known.get(name)
            if found is None:
                if len(known) >= _MOST_NAMES:
                    continue
                found = known[name] = _Name(time, state.counted)
            elif self._is_gone(found):
                found.returns += 1
                found.hours = -_STEADY * 28 if found.returns >= _RETURNS else 0
            found.last, found.number = time, state.counted
            found.count += 1
        state.in_hour += 1
        state.hour_begin = state.hour_begin or time
        if state.in_hour >= _FEWEST and not 0.0 <= time - state.hour_begin < _HOUR:
            self._end_hour(time)

    def _end_hour(self, time: float) -> None:
        """Count the hour for each name that was frequent in it, and forget names that are neither."""
        state, kept = self._state, {}
        for name, found in state.names.items():
            if found.count >= _SHARE * state.in_hour:
                found.hours += 1
            elif found.hours > 0 and (found.count or found.hours < _STEADY):
                found.hours = 0
            if found.hours and time - found.last < _FORGOTTEN:
                kept[name] = found
            found.count = 0
        state.names, state.in_hour, state.hour_begin = kept, 0, time

    def _is_gone(self, found: _Name) -> bool:
        state = self._state
        is_absent = state.counted - found.number >= _ABSENT and state.last - found.last >= _GONE_SECONDS
        return is_absent and found.hours >= _STEADY

    def _vanished(self) -> list[VanishedFeature]:
        gone = [(found.last, name) for name, found in self._state.names.items() if self._is_gone(found)]
        return [VanishedFeature(name, last) for last, name in sorted(gone)[:_MOST_REPORTED]]

    def _warnings(self, traffic: Traffic) -> Iterator[str]:
        choices = self._state.choices
        if traffic.choice_entropy < LOW_ENTROPY:
            name, count = max(choices.preferred.items(), key=lambda item: item[1])
            chance = choices.certainty / choices.weight
            share = 100 * count / sum(choices.preferred.values())
            yield f"the model prefers {name!r} in {share:.0f} % of the decisions: " + (
                "nothing is explored (--epsilon)."
                if chance > 0.999
                else "it is the best for nearly all, or features that tell users apart are missing."
            )
        if traffic.floor_share > HIGH_FLOOR:
            yield (
                f"{100 * traffic.floor_share:.0f} % of the choices have the lowest probability: more is "
                "explored than used (--epsilon, or a model that has learnt little)."
            )
        for each in traffic.vanished:
            yield (
                f"{each.name} was in the decisions of each hour, and is missing since "
                f"{stamp(each.since)[:19]}: a client no longer sends it, or has renamed it."
            )
        if traffic.reward_share < LOST_REWARDS * traffic.reward_share_long_run and self.seen > _RECENT:
            yield (
                f"{100 * traffic.reward_share:.1f} % of the latest decisions got a reward, "
                f"{100 * traffic.reward_share_long_run:.1f} % in the long run: rewards are not sent, or "
                "arrive after --reward_wait."
            )


def _names_in(context: dict[str, msgspec.Raw]) -> Iterator[str]:
    """Yield the namespaces of a context, and the names of the features in them."""
    for namespace, raw in context.items():
        yield namespace[:80]
        value = msgspec.json.decode(raw)
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, dict):
                for name in item:
                    yield f"{namespace}.{name}"[:80]
