"""``Segments``: what the model prefers for whom: its actions and their rewards by values of the context.

A segment is a categorical feature of the context: a string, or a name with the value 1 or true. At most 256
are counted; of more, the rarer half is forgotten. A segment with fewer than 50 decisions is neither reported
nor stored, so that a person's own features do not appear. After the first 4,000 decisions of a process, one
in eight is counted, for all eight, since counting costs as much as writing the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.formats.decisions.dsjson import LogRecord

LEAST: Final = 50
"""The number of decisions of a segment that is reported."""
_MOST: Final = 256
_MOST_ACTIONS: Final = 32
_MOST_NAMES: Final = 32
_MOST_REPORTED: Final = 12
_SAMPLE: Final = 8
_MEMORY: Final = 4000
"""The number of decisions after which the sums of a segment are halved, so that they follow the model."""


class SegmentSummary(msgspec.Struct, frozen=True):
    """The preference of the model for a segment, over its latest thousands of decisions.

    Attributes
    ----------
    name : str
        The namespace and the feature.
    decisions : int
        Number of decisions of the segment.
    action : str
        The action that most often had the highest probability.
    preferred : float
        The share of the decisions in which it had.
    reward, reward_of_others : float, optional
        The mean reward of the decisions that chose this action, and of those that chose another one.
    """

    name: str
    decisions: int
    action: str
    preferred: float
    reward: float | None
    reward_of_others: float | None


class _Sums(msgspec.Struct):
    decisions: int = 0
    weight: float = 0.0
    earned: float = 0.0
    preferred: dict[str, float] = {}
    chosen: dict[str, tuple[float, float]] = {}  # by action: the number of decisions, and their reward

    def halve(self) -> None:
        self.weight, self.earned = self.weight / 2.0, self.earned / 2.0
        self.preferred = {name: weight / 2.0 for name, weight in self.preferred.items()}
        self.chosen = {name: (count / 2.0, sum_ / 2.0) for name, (count, sum_) in self.chosen.items()}


_CONTEXT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Segments:
    """Counts decisions of the model.

    Examples
    --------
    >>> from datetime import datetime
    >>> from msgspec import Raw
    >>> from onlineauto.formats.decisions.dsjson import LogRecord
    >>> segments = Segments()
    >>> context = b'{"user":{"tom":1,"age":3,"plan":"free"},"_multi":[{"_tag":"art"},{"_tag":"news"}]}'
    >>> decision = LogRecord("rank", datetime(2026, 1, 1), "e", [2, 1], [0.75, 0.25], Raw(context))
    >>> for _ in range(50):
    ...     segments.take(decision, 1.0)
    >>> [(each.name, each.decisions, each.action, each.reward) for each in segments.summaries()]
    [('user: tom', 50, 'news', 1.0), ('user: plan = free', 50, 'news', 1.0)]
    """

    def __init__(self) -> None:
        self._sums: dict[str, _Sums] = {}
        self._seen = 0

    def take(self, decision: LogRecord, reward: float) -> None:
        """Count a decision that has ended with a reward."""
        self._seen += 1
        each_counts = 1 if self._seen <= _MEMORY else _SAMPLE
        if self._seen % each_counts:
            return
        try:
            tags = decision.tags
            names = list(_names_in(decision.context))[:_MOST_NAMES]
            best = decision.ranked[decision.probabilities.index(max(decision.probabilities))] - 1
            first = decision.ranked[0] - 1
            chosen = tags[first] or str(first)
            preferred = chosen if best == first else tags[best] or str(best)
        except (msgspec.MsgspecError, LookupError, ValueError):  # the learner reports what it cannot read
            return
        for name in names:
            sums = self._sums.get(name)
            if sums is None:
                sums = self._sums[name] = _Sums(preferred={}, chosen={})
            sums.decisions += each_counts
            sums.weight += 1.0
            sums.earned += reward
            if preferred in sums.preferred or len(sums.preferred) < _MOST_ACTIONS:
                sums.preferred[preferred] = sums.preferred.get(preferred, 0.0) + 1.0
            if chosen in sums.chosen or len(sums.chosen) < _MOST_ACTIONS:
                count, earned = sums.chosen.get(chosen, (0.0, 0.0))
                sums.chosen[chosen] = count + 1.0, earned + reward
            if sums.weight >= _MEMORY:
                sums.halve()
        if len(self._sums) > _MOST:
            self._sums = dict(self._frequent()[: _MOST // 2])

    def summaries(self) -> list[SegmentSummary]:
        """Return the most frequent segments, the most frequent first."""
        return [
            _summary(name, sums)
            for name, sums in self._frequent()[:_MOST_REPORTED]
            if sums.decisions >= LEAST
        ]

    def state(self) -> dict[str, Any]:
        """Return the frequent segments as values that a model file can store."""
        kept = {name: sums for name, sums in self._sums.items() if sums.decisions >= LEAST}
        state: dict[str, Any] = msgspec.to_builtins(kept)
        return state

    @classmethod
    def of(cls, state: dict[str, Any]) -> Segments:
        """Return the segments of a `state`."""
        segments = cls()
        segments._sums = msgspec.convert(state, dict[str, _Sums])
        return segments

    def _frequent(self) -> list[tuple[str, _Sums]]:
        return sorted(self._sums.items(), key=lambda item: -item[1].decisions)


def _summary(name: str, sums: _Sums) -> SegmentSummary:
    action = max(sums.preferred, key=lambda action_name: sums.preferred[action_name])
    count, earned = sums.chosen.get(action, (0.0, 0.0))
    others = sums.weight - count
    return SegmentSummary(
        name,
        sums.decisions,
        action,
        sums.preferred[action] / sums.weight,
        earned / count if count else None,
        (sums.earned - earned) / others if others > 0.5 else None,
    )


def _names_in(context: bytes) -> Iterator[str]:
    """Yield the names of the categorical features of a context."""
    for namespace, raw in _CONTEXT.decode(context).items():
        value = msgspec.json.decode(raw) if namespace != "_multi" else None
        for item in value if isinstance(value, list) else (value,):
            if not isinstance(item, dict):
                if name := _name_of(namespace, item):
                    yield name[:80]
                continue
            for feature, inner in item.items():
                if name := _name_of(f"{namespace}: {feature}", inner):
                    yield name[:80]


def _name_of(name: str, value: object) -> str:
    """Return the name of a categorical feature, or "" for one that is a number, absent, or not a feature."""
    if isinstance(value, str):
        return f"{name} = {value}"
    return name if value is True or value == 1 else ""
