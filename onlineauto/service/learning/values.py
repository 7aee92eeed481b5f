"""``Values``: the values of policies, with intervals that hold at all times.

Every joined decision has the probability with which it was made. So it is evidence about other policies:
about the model before it learnt the decision, about the baseline, which is the first action, and about a
uniform choice. If the baseline decides, as in apprentice mode, other actions are never observed. Then only
the agreement of the model with the baseline is known, and the reward where they agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from onlineauto.estimators.evaluation_kernels import (
    EVENTS,
    REWARDS,
    SNIPS,
    SQUARES,
    WEIGHTS,
    Evidence,
    Logged,
    bounds_of,
    evaluate_events,
    make_evidence,
)
from onlineauto.state.stored import Stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes

POLICIES: Final = ("live", "model", "baseline", "uniform")
"""Policies: the logged decisions; the model before it learnt each one; the first action; a uniform choice."""

_ALPHA: Final = 0.05
_MOST_POINTS: Final = 256


class Value(msgspec.Struct, frozen=True):
    """The mean reward of a policy, and an interval; None where evidence is insufficient."""

    policy: str
    events: int
    reward: float | None
    low: float | None
    high: float | None
    effective_sample_size: float


class Agreement(msgspec.Struct):
    """Sums over the decisions of a baseline: the agreement of the model, and the rewards.

    Attributes
    ----------
    events : int
        Number of decisions of the baseline.
    agreed : float
        Sum of the model's probabilities of the baseline's actions.
    earned, earned_agreed : float
        Sum of the rewards; and the same sum weighted by the model's probability of the action.
    """

    events: int = 0
    agreed: float = 0.0
    earned: float = 0.0
    earned_agreed: float = 0.0


class Point(msgspec.Struct, frozen=True):
    """The values after a number of events, for a curve; `recent` is the mean reward since the last point."""

    events: int
    recent: float
    values: list[Value]


class _State(msgspec.Struct):
    evidence: dict[str, list[Any]]
    agreement: Agreement
    points: list[Point]
    stride: int
    recent: tuple[int, float]


class Values:
    """Evidence about each of `POLICIES`, and a curve of at most 256 points."""

    def __init__(self) -> None:
        self.agreement = Agreement()
        self.points: list[Point] = []
        self._evidence = {name: make_evidence(np.inf, -np.inf, floor=None) for name in POLICIES}
        self._stride, self._recent = 64, (0, 0.0)

    def take(self, outcomes: Outcomes, *, explored: bool, kept: float = 1.0) -> None:
        """Add the outcomes of learnt decisions; `explored` is False if the baseline decided.

        Of decisions without reward, the share `kept` was predicted (``--keep_unrewarded``). These count
        1/kept, and the others like decisions for an action that no other policy chooses.
        """
        known, start = outcomes.labelled, outcomes.action_start
        sizes = np.diff(start)[known]
        first = np.where(sizes > 0, start[:-1][known], len(outcomes.score))
        reward = -outcomes.known_cost[known].astype(float)
        pmf = np.append(_by_action(outcomes), 0.0)
        logged = first + np.where(sizes > 0, outcomes.known_action[known], 0)
        times = np.where((sizes > 0) & (reward == 0.0), 1.0 / kept, 1.0)
        if not explored:
            self._agree(times * pmf[logged], reward)
            return
        baseline = np.zeros(len(pmf))
        baseline[first] = 1.0
        baseline[-1] = 0.0
        uniform = np.append(np.repeat(1.0 / np.maximum(np.diff(start), 1), np.diff(start)), 0.0)
        probability = outcomes.known_probability[known].astype(float) / times
        events = Logged(
            weight=np.ones(len(logged)),
            reward=reward,
            probability=np.ones(len(logged)),  # of the live policy, whose weights are all 1
            action=logged.astype(np.int64),
            start=np.column_stack([first, first + sizes]).astype(np.int64),
            predicted=np.zeros(len(pmf)),
            pmf=np.zeros(0),
        )
        policies = dict(zip(POLICIES[1:], (pmf, baseline, uniform), strict=True))
        events_of = {
            name: events._replace(weight=pmf[logged] / probability, probability=probability, pmf=pmf)
            for name, pmf in policies.items()
        }
        done = 0
        while done < len(logged):  # points lie at the same events however the events are cut into blocks
            end = min(done + self._stride - self._recent[0], len(logged))
            for name, evidence in self._evidence.items():
                part = _part(events_of.get(name, events), done, end)
                evaluate_events(evidence, part, _ALPHA, np.empty((0, 3, 2)))
            self._count(reward[done:end])
            done = end

    def values(self) -> list[Value]:
        """Return the values of all policies over the events so far."""
        return [_value(name, evidence) for name, evidence in self._evidence.items()]

    def state(self) -> dict[str, Any]:
        """Return the evidence and the curve as values that a model file can store."""
        evidence = {name: list(estimators) for name, estimators in self._evidence.items()}
        state = _State(evidence, self.agreement, self.points, self._stride, self._recent)
        values: dict[str, Any] = msgspec.to_builtins(state, builtin_types=(np.ndarray,))
        return values

    @classmethod
    def of(cls, state: dict[str, Any]) -> Values:
        """Return the values of a `state`."""
        values, stored = cls(), msgspec.convert(state, _State)
        values.agreement, values.points = stored.agreement, stored.points
        values._stride, values._recent = stored.stride, stored.recent
        for name, fresh in values._evidence.items():
            estimators = Stored(stored.evidence[name], f"values.{name}").items()
            arrays = [
                estimator.array_like(array).copy() for estimator, array in zip(estimators, fresh, strict=True)
            ]
            values._evidence[name] = Evidence(*arrays)
        return values

    def _agree(self, probability: NDArray[np.float64], reward: NDArray[np.float64]) -> None:
        for chance, earned in zip(probability.tolist(), reward.tolist(), strict=True):
            self.agreement.events += 1
            self.agreement.agreed += chance
            self.agreement.earned += earned
            self.agreement.earned_agreed += chance * earned

    def _count(self, reward: NDArray[np.float64]) -> None:
        """Add a point to the curve after every `stride` events."""
        for each in reward.tolist():
            events, earned = self._recent
            self._recent = events + 1, earned + each
        if self._recent[0] >= self._stride:
            done = int(self._evidence["live"].totals[EVENTS])
            self.points.append(Point(done, self._recent[1] / self._recent[0], self.values()))
            self._recent = 0, 0.0
        if len(self.points) > _MOST_POINTS:
            del self.points[::2]
            self._stride *= 2


def _part(events: Logged, begin: int, end: int) -> Logged:
    """Return the events from `begin` to `end`."""
    part = slice(begin, end)
    return events._replace(
        weight=events.weight[part],
        reward=events.reward[part],
        probability=events.probability[part],
        action=events.action[part],
        start=events.start[part],
    )


def _value(name: str, evidence: Evidence) -> Value:
    totals = evidence.totals
    weights = float(totals[WEIGHTS])
    low, high = bounds_of(evidence, SNIPS, _ALPHA)
    is_bounded = bool(np.isfinite(low) and np.isfinite(high))
    return Value(
        policy=name,
        events=int(totals[EVENTS]),
        reward=float(min(max(totals[REWARDS] / weights, low), high)) if weights else None,
        low=float(low) if is_bounded else None,
        high=float(high) if is_bounded else None,
        effective_sample_size=float(weights * weights / totals[SQUARES]) if weights else 0.0,
    )


def _by_action(outcomes: Outcomes) -> NDArray[np.float64]:
    """Return the probability of every action, event by event, actions in ascending order."""
    start = outcomes.action_start
    pmf = np.empty(len(outcomes.score))
    pmf[np.repeat(start[:-1], np.diff(start)) + outcomes.action] = outcomes.score
    return pmf
