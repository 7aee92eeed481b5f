"""``Evaluation``: the cost of several policies on another policy's log, estimated in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.stream.counters import total
from onlineauto.engine.stream.source import read_blocks, rules_of
from onlineauto.errors import InputError, OptionError, kind_of
from onlineauto.estimators.evaluation_kernels import (
    DR,
    ESTIMATES,
    EVENTS,
    IPS,
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
from onlineauto.estimators.scale_kernels import BELOW, OUTSIDE
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.options import InputOptions
from onlineauto.learners.options import CbOptions
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.stream.source import Sources
    from onlineauto.evaluation.frame_evaluation import FrameEvaluation
    from onlineauto.evaluation.frame_log import PolicyColumn
    from onlineauto.features.block import Block

LOGGED = "(as logged)"
"""Name of the policy that wrote the log."""

MISSING = (ProblemCode.NO_PROBABILITY, ProblemCode.PROBABILITY_ZERO)
"""Reader problems because of which a log is rejected."""

_LISTED = 10


@dataclass(frozen=True, slots=True)
class Bounded:
    """An estimate of a mean cost, and an interval that is valid after every event at once.

    Attributes
    ----------
    value, low, high : float
        Costs; the interval is (-inf, inf) while there is too little evidence. An estimate outside of its
        interval is replaced by the nearer bound.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValue:
    """The estimated value of one policy.

    Attributes
    ----------
    policy : str
        Name of the policy.
    events : int
        Number of labelled events.
    ips, snips, dr : Bounded
        Mean cost by inverse propensity scoring, by self-normalised scoring, and by the doubly robust
        estimate.
    effective_sample_size : float
        Number of events with the same precision if the policy itself had logged them: (Σ w)² / Σ w².
    average_loss : float
        VW's average loss: Σ loss / Σ weight of the events.
    """

    policy: str
    events: int
    ips: Bounded
    snips: Bounded
    dr: Bounded
    effective_sample_size: float
    average_loss: float


class Evaluation:
    r"""Evaluates several policies on one log.

    A policy is a `Workspace` of a bandit whose actions are lines. A policy that learns is evaluated in its
    state before each event, that is, by its cost while it learns. A policy with ``testonly`` does not change.
    All are copied first: the workspaces in `policies` do not change. The copies learn every number of the
    log, including outliers. The intervals are about the mean, over the contexts of the log, of the policy's
    expected cost. With probability 1 - `alpha`, an interval holds at all times at once.

    Parameters
    ----------
    policies : mapping of str to Workspace
        The policies, by name.
    alpha : float, default 0.05
        Probability that an interval is ever wrong, in (0, 1).
    cost_range : tuple of (float, float), optional
        Lowest and highest cost. By default it is learnt from the first hundred events, which no interval
        includes, and widened by later ones. A cost outside the current range is replaced by the nearest
        bound.
    min_prob : float, optional
        Smallest probability that the logging policy assigns to any action; by default it is learnt, too.
    estimates : Workspace, optional
        Predicts the cost of every action for doubly robust estimates: a ``cb_adf`` that learns from the log.
        By default ``--automl 4``, or ``-q ::`` with ``--vw_exact``.

    Attributes
    ----------
    diagnostics : Diagnostics
        Problems in the input.
    policies : dict of str to Workspace
        The copies, by name.

    Raises
    ------
    OptionError
        If a policy is not such a bandit, two policies read events in different ways, or a parameter is out of
        range.

    Examples
    --------
    >>> log = "shared |u a\n0:-1:0.5 |a x\n|a y\n\nshared |u a\n|a x\n1:0:0.5 |a y\n\n" * 200
    >>> always = Workspace(cb_explore_adf=True, epsilon=0.0)
    >>> (value,) = Evaluation({"greedy": always}, cost_range=(-1, 0)).run(log.encode())[1:]
    >>> value.events, round(value.ips.value, 2), value.ips.low <= -0.9 <= value.ips.high
    (400, -1.0, True)

    Source: Waudby-Smith, Wu, Ramdas, Karampatziakis, Mineiro, *Anytime-valid off-policy inference for
    contextual bandits*, 2022; `onlineauto.estimators.interval_kernels` for the intervals.
    """

    def __init__(
        self,
        policies: Mapping[str, Workspace],
        *,
        alpha: float = 0.05,
        cost_range: tuple[float, float] | None = None,
        min_prob: float | None = None,
        estimates: Workspace | None = None,
    ) -> None:
        _check(policies, alpha=alpha, cost_range=cost_range, min_prob=min_prob)
        self.diagnostics = Diagnostics()
        self.policies, self._alpha = {name: deepcopy(policy) for name, policy in policies.items()}, alpha
        first = next(iter(policies.values()))
        self._configuration = first.configuration
        options: dict[str, Any] = {
            "cb_adf": True,
            **first.semantics.flags,
            "missing_probability": self._configuration[InputOptions].missing_probability,
            **({"quadratic": ["::"]} if first.semantics.predicts_as_vw else {"automl": 4}),
        }
        self._estimates = Workspace(**options) if estimates is None else deepcopy(estimates)
        low, high = (np.inf, -np.inf) if cost_range is None else (-cost_range[1], -cost_range[0])
        for policy in (*self.policies.values(), self._estimates):
            policy.learner.accept_all()  # outliers are part of the log, so they count in its values
        self._evidence = {LOGGED: make_evidence(low, high, floor=1.0)}  # all of its weights are 1
        self._evidence |= {name: make_evidence(low, high, floor=min_prob) for name in policies}
        self._given_range, self._given_floor = cost_range is not None, min_prob is not None
        self._losses = dict.fromkeys((LOGGED, *policies), 0.0)
        self._weight = 0.0
        self._first_weight = np.zeros(0, np.float32)

    @staticmethod
    def from_frame(
        frame: Any,
        policies: Mapping[str, PolicyColumn],
        *,
        action: str,
        probability: str,
        reward: str | None = None,
        cost: str | None = None,
        time: str | None = None,
        choices: Sequence[Any] | None = None,
        alpha: float = 0.05,
        reward_range: tuple[float, float] | None = None,
        cost_range: tuple[float, float] | None = None,
        min_prob: float | None = None,
    ) -> FrameEvaluation:
        r"""Evaluate policies on decisions that any program has logged, one in each row of a frame.

        A policy is one of these, for all rows of the frame:

        * the name of a column, an array, or a function that takes the frame and returns an array: floats are
          the policy's probabilities of the logged action; rows of floats are those of all `choices`, in
          order; anything else is the action that the policy takes;
        * a mapping of each action to the column of its probabilities, or a frame with such columns.

        Floats that all equal actions are rejected, since they may be either.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, Table of pyarrow, or mapping of str to array
            The logged decisions. Rows without an action or a reward are left out and counted.
        policies : mapping of str to policy
            The policies, by name. They must not depend on rewards of the same or of later rows.
        action, probability : str
            Columns of the logged action and of its propensity, above 0 and at most 1.
        reward, cost : str
            Column of rewards, or of costs.
        time : str, optional
            Column by which rows are sorted; by default rows are in order of time.
        choices : sequence, optional
            All actions. By default those that were logged, sorted.
        alpha : float, default 0.05
            Probability that the set of best policies is ever wrong, in (0, 1); and for each policy, that the
            interval of its value is.
        reward_range, cost_range : tuple of (float, float), optional
            Lowest and highest reward or cost. By default it is learnt, as by `Evaluation`.
        min_prob : float, optional
            Smallest probability that the logging policy assigns to any action; by default it is learnt, too.

        Returns
        -------
        FrameEvaluation
            Values of all policies, the support of each, and the set of best ones.

        Raises
        ------
        PackageError
            If the frame is not a mapping, and pyarrow is not installed.
        InputError
            If a column is missing, or a row is invalid; the message has its number.
        OptionError
            If a parameter is out of range.

        Examples
        --------
        >>> import numpy as np
        >>> draw = np.random.default_rng(1)
        >>> shown = draw.integers(0, 2, 4000)
        >>> frame = {"shown": shown, "click": draw.random(4000) < 0.1 + 0.1 * shown, "p": np.full(4000, 0.5)}
        >>> policies = {"always 0": np.full(4000, 0), "always 1": np.full(4000, 1)}
        >>> found = Evaluation.from_frame(
        ...     frame, policies, action="shown", reward="click", probability="p", reward_range=(0, 1)
        ... )
        >>> [(value.policy, round(value.estimate.value, 2), value.worse_than) for value in found.values[1:]]
        [('always 0', 0.1, ('(as logged)', 'always 1')), ('always 1', 0.21, ())]
        >>> found.best
        ('always 1',)

        Source: `onlineauto.evaluation.frame_evaluation` for the set.
        """
        from onlineauto.evaluation.frame_evaluation import FrameEvaluation
        from onlineauto.evaluation.frame_log import FrameLog

        if (reward is None) == (cost is None):
            raise OptionError("name the column of rewards in reward, or that of costs in cost")
        if (cost_range if cost is None else reward_range) is not None:
            raise OptionError("rewards have a reward_range, and costs a cost_range")
        given = cost_range if reward is None else reward_range
        _check_limits(alpha=alpha, cost_range=given, min_prob=min_prob)
        _check_named(policies)
        if LOGGED in policies:
            raise OptionError(
                f"a policy cannot have the name {LOGGED}, which is that of the logged decisions"
            )
        sign = 1.0 if cost is None else -1.0
        log = FrameLog(
            frame,
            action=action,
            reward=str(reward if cost is None else cost),
            probability=probability,
            time=time,
            choices=choices,
            sign=sign,
        )
        if cost is not None and given is not None:
            given = -given[1], -given[0]
        targets = {name: log.target(name, policy) for name, policy in policies.items()}
        return FrameEvaluation(log, targets, alpha=alpha, reward_range=given, min_prob=min_prob, sign=sign)

    def run(self, source: Sources) -> list[PolicyValue]:
        """Evaluate the policies on a whole log and return their values; see `stream`."""
        for _ in self.stream(source, trace=False):
            pass
        return self.values()

    def stream(
        self, source: Sources, *, trace: bool = True
    ) -> Iterator[tuple[list[PolicyValue], dict[str, NDArray[np.float64]]]]:
        """Evaluate the policies on a log, block by block; yield the values after each block.

        Yields
        ------
        values : list of PolicyValue
            Of the logging policy, then of all others.
        intervals : dict of str to float64[n, 3, 2]
            By policy, the intervals of IPS, SNIPS and DR after every labelled event of the block; empty
            without `trace`.

        Raises
        ------
        InputError
            If the source cannot be read, or actions are logged without their propensities, or the weights of
            events differ.
        """
        for block in read_blocks(source, self._configuration, self.diagnostics):
            self._refuse_skipped()
            self._check(block)
            intervals = self._take(block, trace=trace)
            yield self.values(), intervals
        self._refuse_skipped()

    def values(self) -> list[PolicyValue]:
        """Return the values of all policies, over the events so far."""
        return [self._value(name, evidence) for name, evidence in self._evidence.items()]

    def warnings(self) -> Iterator[str]:
        """Yield a sentence for each reason to doubt the values so far."""
        scale = self._evidence[next(iter(self.policies))].floored
        beyond = int(scale[OUTSIDE] - scale[BELOW])
        if self._given_floor and scale[BELOW]:
            yield f"{int(scale[BELOW])} events were logged with less than the least probability given"
        if self._given_range and beyond:
            yield f"{beyond} costs were outside the given range; the intervals use its bounds instead"
        for value in self.values():
            for name, way in (("IPS", value.ips), ("SNIPS", value.snips), ("DR", value.dr)):
                if way.low > way.high:
                    yield (
                        f"{value.policy}: by {name} no cost is possible, so the logged probabilities "
                        "cannot be those by which the actions were chosen"
                    )

    def _refuse_missing(self, lines: Sequence[int], n: int) -> None:
        """Reject a log in which `n` lines lack a propensity; `lines` are the first of them."""
        if n:
            listed = ", ".join(map(str, lines[:_LISTED]))
            more = f" and {n - min(len(lines), _LISTED)} more" if n > _LISTED else ""
            raise InputError(
                f"{self.diagnostics.of_file}lines {listed}{more} log an action without its probability, "
                "so they cannot be used to estimate other policies; if actions were chosen uniformly: "
                "--missing_probability uniform"
            )

    def _refuse_skipped(self) -> None:
        """Reject a log if the reader has skipped events because a propensity was missing."""
        lines = [diagnostic.line for diagnostic in self.diagnostics.kept if diagnostic.code in MISSING]
        self._refuse_missing(lines, sum(self.diagnostics.counts[code] for code in MISSING))

    def _check(self, block: Block) -> None:
        """Reject a block that has events without a propensity, which the reader accepts in exact mode."""
        if self._configuration[InputOptions].missing_probability != "uniform":
            line = np.repeat(np.arange(block.n_lines), np.diff(block.cost_start))
            lines = block.line_number[line[(block.probability <= 0) & _is_known(block)]]
            self._refuse_missing(lines.tolist(), len(lines))

    def _refuse_weights(self, block: Block, predicted: Outcomes) -> None:
        """Reject a block whose events have different weights.

        If events were dropped at random with one probability, the rest is still a fair sample. Different
        weights indicate different probabilities, which no estimate here corrects.
        """
        known = np.flatnonzero(predicted.labelled)
        if len(self._first_weight) == 0:
            self._first_weight = predicted.weight[known[:1]]
        other = known[predicted.weight[known] != self._first_weight]
        if len(other):
            line = block.event_start[other[0]]
            raise InputError(
                f"{self.diagnostics.of_file}{block.place_of(line)}: the event has the weight "
                f"{block.weight[line]} (by pdrop), but earlier events have {self._first_weight[0]}: "
                "an evaluation needs the same weight for all events"
            )

    def _take(self, block: Block, *, trace: bool) -> dict[str, NDArray[np.float64]]:
        predicted = self._estimates.learn_block(block)
        self._refuse_weights(block, predicted)
        seen = {name: policy.learn_block(block) for name, policy in self.policies.items()}
        known = predicted.labelled
        paid = predicted.known_cost[known] * predicted.weight[known]
        self._losses[LOGGED] = total(self._losses[LOGGED], paid)
        self._weight = total(self._weight, predicted.weight[known])
        intervals = {}
        for name, evidence in self._evidence.items():
            pmf = None
            if name != LOGGED:
                self._losses[name] = total(self._losses[name], seen[name].loss)
                pmf = _pmf(seen[name], explores=self.policies[name].kind == "cb_explore_adf")
            events = _events(predicted, pmf)
            bounds = np.empty((len(events.weight) if trace else 0, 3, 2))
            evaluate_events(evidence, events, self._alpha, bounds)
            intervals[name] = -bounds[..., ::-1]
        return intervals

    def _value(self, name: str, evidence: Evidence) -> PolicyValue:
        totals = evidence.totals
        n, weights = max(totals[EVENTS], 1.0), totals[WEIGHTS]

        def bound(total: float, way: int) -> Bounded:
            low, high = bounds_of(evidence, way, self._alpha)
            return Bounded(0.0 - float(min(max(total, low), high)), -high, -low)

        return PolicyValue(
            policy=name,
            events=int(totals[EVENTS]),
            ips=bound(totals[REWARDS] / n, IPS),
            snips=bound(totals[REWARDS] / weights if weights else 0.0, SNIPS),
            dr=bound(totals[ESTIMATES] / n, DR),
            effective_sample_size=float(weights * weights / totals[SQUARES]) if weights else 0.0,
            average_loss=self._losses[name] / self._weight if self._weight else 0.0,
        )


def _check(
    policies: Mapping[str, Workspace],
    *,
    alpha: float,
    cost_range: tuple[float, float] | None,
    min_prob: float | None,
) -> None:
    _check_named(policies)
    if not policies:
        raise OptionError("there is no policy to evaluate: name one or more with --policy")
    rules: Sequence[Mapping[str, str | int | bool]] = []
    for name, policy in policies.items():
        if not isinstance(policy, Workspace):
            raise InputError(f"{name}: a policy is a Workspace, not {kind_of(policy)}")
        if policy.kind not in ("cb_adf", "cb_explore_adf"):
            raise OptionError(f"{name}: a policy to evaluate is one of --cb_explore_adf or --cb_adf")
        if policy.learner.task.exploration.samples:
            raise OptionError(
                f"{name}: --cb_sample draws an action, but an evaluation needs the probability of each action"
            )
        rules = [*rules, rules_of(policy.configuration)]
        if rules[-1] != rules[0]:
            first = next(iter(policies))
            differing = [option for option in rules[0] if rules[-1].get(option) != rules[0][option]]
            raise OptionError(
                f"{name!r} reads events {_reading(rules[-1], differing)}, "
                f"{first!r} {_reading(rules[0], differing)}: evaluate them in two runs"
            )
        if policy.configuration[CbOptions].keep_unrewarded != 1.0:
            raise OptionError(
                f"{name}: a policy with --keep_unrewarded does not predict all events; leave it out"
            )
    _check_limits(alpha=alpha, cost_range=cost_range, min_prob=min_prob)


def _check_named(policies: object) -> None:
    """Raise an error if policies have no names."""
    if not isinstance(policies, Mapping):
        raise InputError(f"policies are a mapping of name to policy, not {kind_of(policies)}")


def _reading(rules: Mapping[str, str | int | bool], options: Sequence[str]) -> str:
    """Return the values of some options for reading events, such as ``without --vw_exact``."""
    values = ((option, rules[option]) for option in options)
    return " and ".join(
        f"{'with' if value else 'without'} --{option}"
        if isinstance(value, bool)
        else f"with --{option} {value}"
        for option, value in values
    )


def _check_limits(*, alpha: float, cost_range: tuple[float, float] | None, min_prob: float | None) -> None:
    if not 0.0 < alpha < 1.0:
        raise OptionError(f"alpha cannot be {alpha}; it is a probability between 0 and 1")
    if cost_range is not None and not cost_range[0] < cost_range[1]:
        raise OptionError(
            f"the lowest cost or reward has to be below the highest: {cost_range[0]}, {cost_range[1]}"
        )
    if min_prob is not None and not 0.0 < min_prob <= 1.0:
        raise OptionError(f"min_prob cannot be {min_prob}; it is a probability above 0")


def _is_known(block: Block) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = np.isfinite(block.cost) & (block.cost < np.finfo(np.float32).max)
    return known


def _action_positions(outcomes: Outcomes) -> NDArray[np.int64]:
    """Return the index of each entry of `action` if every event's actions are sorted in ascending order."""
    start = outcomes.action_start
    places: NDArray[np.int64] = np.repeat(start[:-1], np.diff(start)) + outcomes.action
    return places


def _by_action(outcomes: Outcomes) -> NDArray[np.float64]:
    scores = np.empty(len(outcomes.score))
    scores[_action_positions(outcomes)] = outcomes.score
    return scores


def _pmf(outcomes: Outcomes, *, explores: bool) -> NDArray[np.float64]:
    """Return the probability of every action, event by event, actions in ascending order."""
    if explores:
        return _by_action(outcomes)
    pmf, start = np.zeros(len(outcomes.action)), outcomes.action_start
    pmf[_action_positions(outcomes)[start[:-1][np.diff(start) > 0]]] = 1.0  # the best action is listed first
    return pmf


def _events(predicted: Outcomes, pmf: NDArray[np.float64] | None) -> Logged:
    """Return the labelled events with the probabilities `pmf` of a policy; None means the logging policy.

    `predicted` has the predicted cost of every action.
    """
    known, start = predicted.labelled, predicted.action_start
    logged = start[:-1][known] + predicted.known_action[known]
    probability = predicted.known_probability[known].astype(float)
    return Logged(
        weight=pmf[logged] / probability if pmf is not None else np.ones(len(logged)),
        reward=-predicted.known_cost[known].astype(float),
        probability=probability if pmf is not None else np.ones(len(logged)),
        action=logged,
        start=np.column_stack([start[:-1], start[1:]])[known],
        predicted=-np.nan_to_num(_by_action(predicted)),
        pmf=np.zeros(0) if pmf is None else pmf,
    )
