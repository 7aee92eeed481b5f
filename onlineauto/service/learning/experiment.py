"""``Experiment``: the worth of the model beside the baseline, from a control arm that is chosen by chance.

A hash of its unit, such as a user, puts each decision into one of 2,048 buckets. The first buckets are the
control arm: the baseline decides there, and nothing is learnt. The last buckets may be a canary, where
another model decides. All others are the treatment.

Decisions of one unit are alike, so they are no independent evidence, but all of them are in one bucket, and
buckets are independent. So the variance of an arm's mean is estimated from the sums of its B buckets: with
n_b decisions and the sum s_b in bucket b, it is B / (B - 1) · Σ (s_b - mean · n_b)² / n². It is at least the
variance for independent decisions, which matters while rewards are rare.

A decision counts once it is learnt, with its reward and its metrics, and in its own epoch: the number of
changes of the model, the mode, the arms or the guardrails before it, which is in its record. After such a
change, decisions of earlier epochs count in the whole of the experiment only.

An interval holds at all times at once, so it may be looked at whenever one likes. With the standard error e
of a difference and a typical effect t, a tenth of a reward's standard deviation, the interval is the
difference ± e · sqrt((1 + k) / k · (ln(1 + k) + 2 ln(1/α))) with k = t²/e². This is the mixture sequential
probability ratio test for means that are nearly normal. There is no interval before 30 buckets of each arm
have decisions.

Source: Robbins, *Statistical methods related to the law of the iterated logarithm*, 1970; Waudby-Smith,
Arbour, Sinha, Kennedy, Ramdas, *Time-uniform central limit theory and asymptotic confidence sequences*, 2024.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from onlineauto.service.join.join import RewardScale
from onlineauto.service.join.settings import ROLLBACK, JoinSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

BUCKETS: Final = 2048
CONTROL, TREATMENT, CANARY = ARMS = ("control", "treatment", "canary")
REWARD: Final = "reward"
ALPHA: Final = 0.05
"""The probability that an interval ever misses, and that any guardrail ever raises a false alarm."""
_RATIO_ALPHA: Final = 0.01
_TYPICAL: Final = 0.1
_TYPICAL_RATIO: Final = 0.05
_LEAST_BUCKETS: Final = 30
LEAST_SHARE: Final = _LEAST_BUCKETS / BUCKETS
_EVERY: Final = 64
"""Guardrails are tested after this number of decisions."""
_MOST_ALARMS: Final = 20
_SPARE: Final = 1024


def bucket_of(app: str, unit: str) -> int:
    """Return the bucket of a unit, which is independent of the draw of its actions.

    >>> bucket_of("default", "u1") == bucket_of("default", "u1"), 0 <= bucket_of("other", "u1") < BUCKETS
    (True, True)
    """
    key = blake2b(app.encode(), digest_size=32).digest()
    return int.from_bytes(blake2b(unit.encode(), digest_size=4, key=key, person=b"arm").digest()) % BUCKETS


def arm_of(bucket: int, settings: JoinSettings) -> str:
    """Return the arm of a bucket."""
    if bucket < buckets_in(settings.control):
        return CONTROL
    if bucket >= BUCKETS - buckets_in(settings.canary_share):
        return CANARY
    return TREATMENT


def can_compare(*shares: float) -> bool:
    """Return whether an arm with one of these shares of the units is ever large enough for an interval."""
    return max(map(buckets_in, shares)) >= _LEAST_BUCKETS


def buckets_in(share: float) -> int:
    """Return the number of buckets of a share of all units; at least one, unless the share is 0."""
    return max(round(share * BUCKETS), 1) if share else 0


class LabelledDecision(NamedTuple):
    """A decision that has ended: its position, its line with its label, and whether the model decided.

    In an experiment, `arm` and `bucket` have its arm and the bucket of its unit, and `epoch` its epoch.
    """

    position: int
    line: bytes
    explored: bool
    arm: str = ""
    bucket: int = 0
    epoch: int = 0


class Comparison(msgspec.Struct, frozen=True):
    """The mean of a quantity in two arms, and their difference with an interval that holds at all times.

    Attributes
    ----------
    quantity : str
        ``reward``, or the name of a metric; its mean is that of a decision.
    arm, against : str
        The two arms.
    mean, mean_against, difference : float, optional
        The two means, and the first less the second; None without a decision in each arm.
    low, high : float, optional
        Bounds on the difference; None where evidence is insufficient.
    relative : float, optional
        The difference as a part of the second mean; None unless that is above 0.
    """

    quantity: str
    arm: str
    against: str
    mean: float | None = None
    mean_against: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    relative: float | None = None


class ArmSummary(msgspec.Struct, frozen=True):
    """An arm: its share of all units, and its decisions of this epoch that have ended."""

    name: str
    share: float
    decisions: int


class SampleRatio(msgspec.Struct, frozen=True):
    """The share of the decisions that the control arm has; a mismatch makes all comparisons doubtful.

    Attributes
    ----------
    expected, observed : float
        The share of control and treatment that control should have, and has.
    low, high : float, optional
        Bounds on what a bucket of control has more than one of treatment, as a part of the latter.
    matches : bool
        0 is within the bounds, which hold at all times with probability 0.99.
    """

    expected: float
    observed: float
    low: float | None
    high: float | None
    matches: bool


class Alarm(msgspec.Struct, frozen=True):
    """A guardrail that was broken: the time, the epoch, and its number of decisions until then."""

    time: float
    decisions: int
    quantity: str
    arm: str
    against: str
    high: float
    rolls_back: bool
    epoch: int = 0


class ExperimentReport(msgspec.Struct, frozen=True):
    """The state of an experiment.

    Attributes
    ----------
    control : float
        The share of units in the control arm.
    began, changed : float
        The time at which the control arm began, and of the latest change of the model or of the settings.
    lift, lift_since_change : Comparison
        The reward of the treatment beside that of control, since each of these times.
    arms, sample_ratio, guardrails
        Since the latest change.
    unmatched : int
        The number of values of metrics whose decision was not known.
    alarms : list of Alarm
        The latest alarms of all times.
    epoch : int
        The number of changes so far.
    """

    control: float
    began: float
    changed: float
    lift: Comparison
    lift_since_change: Comparison
    arms: list[ArmSummary]
    sample_ratio: SampleRatio
    guardrails: list[Comparison]
    unmatched: int
    alarms: list[Alarm]
    epoch: int


class _Held(msgspec.Struct, array_like=True):
    """The values of metrics of a decision that waits until `until`."""

    until: float
    values: dict[str, float] = {}


class BucketSums:
    """Decisions and sums of quantities by bucket, and the sum of squares of each quantity."""

    def __init__(self, quantities: Sequence[str]) -> None:
        self.counts = np.zeros(BUCKETS)
        self.sums = {name: np.zeros(BUCKETS) for name in quantities}
        self.squares = dict.fromkeys(quantities, 0.0)

    def add(self, quantity: str, bucket: int, value: float) -> None:
        """Add a value of a quantity."""
        self.sums[quantity][bucket] += value
        self.squares[quantity] += value * value

    def compare(
        self, quantity: str, arms: dict[str, slice], pair: tuple[str, str], alpha: float
    ) -> Comparison:
        """Return the difference between two arms, each a range of buckets."""
        first, second = (arms[name] for name in pair)
        total = float(self.counts.sum())
        if not (self.counts[first].sum() and self.counts[second].sum()):
            return Comparison(quantity, *pair)
        variance = max(self.squares[quantity] / total - (self.sums[quantity].sum() / total) ** 2, 0.0)
        mean, square = self._mean(quantity, first, variance)
        against, square_against = self._mean(quantity, second, variance)
        difference, error = mean - against, math.sqrt(square + square_against)
        enough = min(np.count_nonzero(self.counts[arm]) for arm in (first, second)) >= _LEAST_BUCKETS
        half = _half_width(error, _TYPICAL * math.sqrt(variance), alpha) if enough else math.inf
        is_bounded = math.isfinite(half)
        return Comparison(
            quantity,
            *pair,
            mean,
            against,
            difference,
            difference - half if is_bounded else None,
            difference + half if is_bounded else None,
            difference / against if against > 0.0 else None,
        )

    def ratio(self, control: slice, treatment: slice) -> SampleRatio:
        """Return whether buckets of both arms have equally many decisions."""
        counts = [self.counts[control], self.counts[treatment]]
        means = [float(count.mean()) if len(count) else 0.0 for count in counts]
        total = sum(float(count.sum()) for count in counts)
        expected = len(counts[0]) / max(len(counts[0]) + len(counts[1]), 1)
        observed = float(counts[0].sum()) / total if total else 0.0
        if min(means) * min(map(len, counts)) < 5 * _LEAST_BUCKETS:  # the normal law needs some decisions
            return SampleRatio(expected, observed, None, None, matches=True)
        variances = [
            max(float(count.var()), mean) / len(count) for count, mean in zip(counts, means, strict=True)
        ]
        half = _half_width(math.sqrt(sum(variances)) / means[1], _TYPICAL_RATIO, _RATIO_ALPHA)
        more = means[0] / means[1] - 1.0
        return SampleRatio(expected, observed, more - half, more + half, matches=abs(more) <= half)

    def state(self) -> list[Any]:
        """Return the sums as values that a model file can store."""
        return [self.counts, {name: [each, self.squares[name]] for name, each in self.sums.items()}]

    @classmethod
    def of(cls, state: Sequence[Any], quantities: Sequence[str]) -> BucketSums:
        """Return the sums of a `state`."""
        restored = cls(quantities)
        restored.counts[:] = state[0]
        for name, (sums, squares) in state[1].items():
            restored.sums[name], restored.squares[name] = np.array(sums, float), float(squares)
        return restored

    def _mean(self, quantity: str, arm: slice, variance: float) -> tuple[float, float]:
        """Return the mean of an arm, and the square of its standard error."""
        counts, sums = self.counts[arm], self.sums[quantity][arm]
        total = float(counts.sum())
        mean = float(sums.sum()) / total
        rest: NDArray[np.float64] = sums - mean * counts
        by_bucket = float(rest @ rest) / (total * total) * len(rest) / max(len(rest) - 1, 1)
        return mean, max(by_bucket, variance / total)


class Experiment:
    """Counts decisions by arm, and tests guardrails; all of it is a function of the log."""

    def __init__(self, settings: JoinSettings) -> None:
        self.changes = self.unmatched = 0  # decisions and values so far; those without a known decision
        self.alarms: list[Alarm] = []
        self.epoch = settings.epoch
        self._parts, self._scales = 1, dict[str, RewardScale]()
        self._settings = settings
        self._begin(0.0)

    def _begin(self, now: float) -> None:
        """Begin a new experiment."""
        self._began, self._began_epoch = now, self.epoch
        self._whole = BucketSums(self._quantities())
        self._held, self._most_held = dict[int, _Held](), _SPARE
        self._change(now)

    def _change(self, now: float) -> None:
        """Begin a new part of the experiment: what is tested from here on is another model."""
        self._changed, self._part = now, BucketSums(self._quantities())
        self._broken: set[tuple[str, str]] = set()

    def _quantities(self) -> list[str]:
        return list(dict.fromkeys((REWARD, *(name_of(guardrail) for guardrail in self._settings.guardrails))))

    def follow(self, settings: JoinSettings, replaced: int, now: float) -> None:
        """Take settings and the number of replacements of the model from the log.

        Each epoch is a part of the experiment; all parts, also those with other arms, share the level of the
        guardrails. Other arms or guardrails begin another whole.
        """
        before, self._settings = self._settings, settings
        begins = (settings.control, settings.guardrails) != (before.control, before.guardrails)
        if begins or settings.epoch + replaced != self.epoch:
            self.epoch = settings.epoch + replaced
            self._parts += bool(self._part.counts.any())
            (self._begin if begins else self._change)(now)

    def take(self, decision: LabelledDecision, reward: float, now: float) -> None:
        """Count a decision that has ended with a reward, and test the guardrails now and then."""
        self.changes += 1
        held = self._held.pop(decision.position, None)
        for sums in self._sums_of(decision):
            sums.counts[decision.bucket] += 1.0
            sums.add(REWARD, decision.bucket, reward)
            for name, value in () if held is None else held.values.items():
                sums.add(name, decision.bucket, value)
            if sums is self._part and int(sums.counts.sum()) % _EVERY == 0:
                self._test(now)

    def take_metric(
        self, name: str, value: float, decision: LabelledDecision | None, now: float, *, until: float = 0.0
    ) -> None:
        """Add a value of a metric to its decision, which waits up to a time; count a value without one."""
        self.changes += 1
        if decision is None:
            self.unmatched += 1
        elif decision.arm and name in self._part.sums and (all_sums := self._sums_of(decision)):
            value = self._scales.setdefault(name, RewardScale()).bound_reward(value)
            if until > now:
                held = self._held.setdefault(decision.position, _Held(until))
                held.values[name] = held.values.get(name, 0.0) + value
                self._forget(now)
                return
            for sums in all_sums:
                sums.add(name, decision.bucket, value)

    def _sums_of(self, decision: LabelledDecision) -> list[BucketSums]:
        """Return the sums in which a decision counts, by its epoch and its arm."""
        bucket, arm, epoch = decision.bucket, decision.arm, decision.epoch
        if not 0 <= bucket < BUCKETS:
            return []
        in_control = bucket < buckets_in(self._settings.control)
        in_part = epoch == self.epoch and arm == arm_of(bucket, self._settings)
        in_whole = epoch >= self._began_epoch and arm != CANARY and (arm == CONTROL) == in_control
        return [self._part] * in_part + [self._whole] * in_whole

    def _forget(self, now: float) -> None:
        """Forget metrics of decisions that were never learnt, now and then."""
        if len(self._held) > self._most_held:
            self._held = {position: held for position, held in self._held.items() if held.until > now}
            self._most_held = 2 * len(self._held) + _SPARE

    def failed_arm(self) -> str:
        """Return the arm that a broken guardrail rolls back, or ""."""
        guards = self._settings.guardrails
        broken = {arm for quantity, arm in self._broken if f"{quantity}:{ROLLBACK}" in guards}
        return CANARY if CANARY in broken else TREATMENT if broken else ""

    def report(self) -> ExperimentReport:
        """Return the state of the experiment."""
        arms = self._arms()
        pair = TREATMENT, CONTROL
        without_canary = arms | {TREATMENT: slice(arms[CONTROL].stop, BUCKETS)}
        names = [name for name, at in arms.items() if at.stop > at.start]
        return ExperimentReport(
            control=self._settings.control,
            began=self._began,
            changed=self._changed,
            lift=self._whole.compare(REWARD, without_canary, pair, ALPHA),
            lift_since_change=self._part.compare(REWARD, arms, pair, ALPHA),
            arms=[
                ArmSummary(
                    name,
                    (arms[name].stop - arms[name].start) / BUCKETS,
                    int(self._part.counts[arms[name]].sum()),
                )
                for name in names
            ],
            sample_ratio=self._part.ratio(arms[CONTROL], arms[TREATMENT]),
            guardrails=[self._guarded(quantity, guard) for quantity, guard in self._guards()],
            unmatched=self.unmatched,
            alarms=list(self.alarms),
            epoch=self.epoch,
        )

    def state(self) -> dict[str, Any]:
        """Return the experiment as values that a model file can store."""
        return {
            "settings": msgspec.to_builtins(self._settings),
            "times": [self._began, self._changed],
            "numbers": [self.changes, self.unmatched, self._parts, self.epoch, self._began_epoch],
            "held": [[position, msgspec.to_builtins(rewards)] for position, rewards in self._held.items()],
            "alarms": msgspec.to_builtins(self.alarms),
            "broken": [list(each) for each in sorted(self._broken)],
            "scales": {
                name: [list(scale.counts.items()), scale.limit] for name, scale in self._scales.items()
            },
            "whole": self._whole.state(),
            "part": self._part.state(),
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> Experiment:
        """Return the experiment of a `state`."""
        restored = cls(msgspec.convert(state["settings"], JoinSettings))
        restored._began, restored._changed = map(float, state["times"])
        restored.changes, restored.unmatched, restored._parts, restored.epoch, restored._began_epoch = map(
            int, state["numbers"]
        )
        restored._held = msgspec.convert(dict(state["held"]), dict[int, _Held])
        restored.alarms = msgspec.convert(state["alarms"], list[Alarm])
        restored._broken = {(quantity, arm) for quantity, arm in state["broken"]}
        for name, (counts, limit) in state["scales"].items():
            of_power = {int(power): int(count) for power, count in counts}
            restored._scales[name] = RewardScale(of_power, float(limit))
        restored._whole = BucketSums.of(state["whole"], restored._quantities())
        restored._part = BucketSums.of(state["part"], restored._quantities())
        return restored

    def _arms(self) -> dict[str, slice]:
        control, canary = buckets_in(self._settings.control), buckets_in(self._settings.canary_share)
        edges = 0, control, BUCKETS - canary, BUCKETS
        return {name: slice(*edges[at : at + 2]) for at, name in enumerate(ARMS)}

    def _guards(self) -> list[tuple[str, tuple[str, str]]]:
        """Return each guarded quantity with each pair of arms, the second of which is the standard."""
        arms = self._arms()
        pairs = [
            pair
            for pair in ((TREATMENT, CONTROL), (CANARY, TREATMENT))
            if all(arms[name].stop > arms[name].start for name in pair)
        ]
        return [(quantity, pair) for quantity in self._quantities() for pair in pairs]

    def _guarded(self, quantity: str, pair: tuple[str, str]) -> Comparison:
        """Compare arms at the level of a guardrail: all of them over all parts have `ALPHA` together."""
        share = len(self._guards()) * self._parts * (self._parts + 1)
        return self._part.compare(quantity, self._arms(), pair, ALPHA / share)

    def _test(self, now: float) -> None:
        for quantity, pair in self._guards():
            if (quantity, pair[0]) in self._broken:
                continue
            comparison = self._guarded(quantity, pair)
            if comparison.high is not None and comparison.high < 0.0:
                self._broken.add((quantity, pair[0]))
                rolls_back = f"{quantity}:{ROLLBACK}" in self._settings.guardrails
                decisions = int(self._part.counts.sum())
                alarm = Alarm(now, decisions, quantity, *pair, comparison.high, rolls_back, self.epoch)
                self.alarms = [*self.alarms, alarm][-_MOST_ALARMS:]


def name_of(guardrail: str) -> str:
    """Return the quantity of a guardrail such as ``revenue:rollback``."""
    return guardrail.partition(":")[0]


def _half_width(error: float, typical: float, alpha: float) -> float:
    """Return half the width of an interval; infinite without an error or a typical effect."""
    if not (error > 0.0 and typical > 0.0):
        return math.inf
    ratio = (typical / error) ** 2
    return error * math.sqrt((1.0 + ratio) / ratio * (math.log1p(ratio) - 2.0 * math.log(alpha)))
