"""The join of decisions and rewards by its documentation, with plain lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from onlineauto.formats.decisions.dsjson import LogRecord
    from onlineauto.service.join.settings import JoinSettings

COMBINE: Final = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "sum": sum,
    "mean": fmean,
    "min": min,
    "max": max,
}


@dataclass
class NaiveDecision:
    """A decision, or what waits for one: `settings` are those of its time."""

    event_id: str
    position: int | None
    begun: float
    settings: JoinSettings
    active: bool
    has_ended: bool = False
    rewards: list[tuple[str, float]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    @property
    def until(self) -> float:
        return self.begun + self.settings.reward_wait

    def reward(self) -> float:
        """Return the reward that the decision is learnt with; each and their sum are within the range."""
        low, high = self.settings.reward_range or (-1e300, 1e300)
        values = [min(max(value, low), high) for _, value in self.rewards]
        if not values:
            return self.settings.default_reward
        return float(min(max(COMBINE[self.settings.aggregation](values), low), high))  # type: ignore[operator]


class NaiveJoin:
    """Takes records; `ended` has the position and the reward of each decision that is learnt, in no order."""

    def __init__(self, settings: JoinSettings) -> None:
        self.settings, self.now = settings, 0.0
        self.known: list[NaiveDecision] = []
        self.ended: dict[int, float] = {}
        self.sources: dict[str, int] = {}
        self.counts = dict.fromkeys(("late", "duplicate", "dangling", "repeated", "inactive"), 0)

    def take(self, record: LogRecord, position: int) -> None:
        self.now = max(self.now, (record.taken or record.time).timestamp())
        for each in [each for each in self.known if each.until <= self.now]:
            self.known.remove(each)
            if each.position is None:
                self.counts["dangling"] += len(each.rewards)
            elif not each.has_ended:
                self.end(each)
        if record.source:
            if record.behind <= self.sources.get(record.source, 0):
                self.counts["repeated"] += 1
                return
            self.sources[record.source] = record.behind
        if record.kind == "settings":
            from onlineauto.service.join.settings import read_settings

            self.settings = read_settings(record.settings)
        elif record.kind == "rank":
            self.rank(record, position)
        elif record.kind == "reward" and record.no_room:
            self.counts["dangling"] += 1
        elif record.kind == "reward":
            self.add(self.of(record.event_id), record.key, record.reward)
        elif record.kind == "activate" and not record.no_room:
            self.activate(self.of(record.event_id))

    def of(self, event_id: str) -> NaiveDecision:
        """Return the decision of an id, or what waits for it from now on."""
        for each in self.known:
            if each.event_id == event_id:
                return each
        made = NaiveDecision(event_id, None, self.now, self.settings, active=False)
        self.known.append(made)
        return made

    def rank(self, record: LogRecord, position: int) -> None:
        before = [each for each in self.known if each.event_id == record.event_id]
        if any(each.position is not None for each in before):
            self.counts["repeated"] += 1
            return
        made = NaiveDecision(record.event_id, position, self.now, self.settings, active=not record.deferred)
        self.known = [each for each in self.known if each not in before] + [made]
        for early in before:
            if early.active:
                self.activate(made)
            for key, value in early.rewards:
                self.add(made, key, value)

    def add(self, to: NaiveDecision, key: str, value: float) -> None:
        if key and key in to.keys:
            self.counts["duplicate"] += 1
            return
        if key:
            to.keys.add(key)
        first = to.settings.aggregation == "first" and to.position is not None
        if to.has_ended or (first and to.rewards):
            self.counts["late"] += 1
            return
        to.rewards.append((key, value))
        if first and to.active and to.settings.learn_at == "reward":
            self.end(to)

    def activate(self, one: NaiveDecision) -> None:
        one.active = True
        at_once = (one.settings.aggregation, one.settings.learn_at) == ("first", "reward")
        if one.position is not None and one.rewards and at_once:
            self.end(one)

    def end(self, one: NaiveDecision) -> None:
        if one.has_ended:
            return
        one.has_ended = True
        if not one.active:
            self.counts["inactive"] += 1
            return
        assert one.position is not None
        assert one.position not in self.ended
        self.ended[one.position] = one.reward()
