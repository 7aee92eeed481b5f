"""Contextual bandits with every explorer the slow and obvious way; in exact mode, defects included."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.naive import explorers
from tests.naive.bandit import ZERO, Bandit, Row, dr_target, ips_target, make_twin, rank
from tests.naive.learner import apply_link
from tests.naive.losses import power

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.naive.blocks import Event
    from tests.naive.features import Example

F = np.float32
Label = tuple[int, np.float32, np.float32]

_EXPF = ctypes.CDLL("libm.so.6").expf
_EXPF.restype, _EXPF.argtypes = ctypes.c_float, [ctypes.c_float]


def models_of(options: Mapping[str, Any]) -> int:
    """Models of the exact mode, those that estimate costs included."""
    own = 2 if options.get("cb_type") == "dr" else 1
    if "cover" in options:
        own = (1 if options.get("cb_type") == "ips" else 2) * (options["cover"] + 1)
    own *= options.get("bag", 1)
    own *= options.get("model_count", 3) if "epsilon_decay" in options else 1
    return int(own)


def lanes_of(options: Mapping[str, Any]) -> int:
    """Lanes of the exact mode's table."""
    return int(2 ** math.ceil(math.log2(models_of(options))))


def make_exploring(options: Mapping[str, Any], *, kind: type[Exploring] | None = None) -> Exploring:
    """The naive engine for options with an explorer, as a `Workspace` with ``vw_exact`` takes them."""
    plain, lanes = make_twin(options), lanes_of(options)
    assert isinstance(plain, Bandit)
    return (kind or Exploring)(
        featurizer=replace(plain.featurizer, cells=2 ** options.get("bit_precision", 18) // lanes),
        learner=replace(plain.learner, lanes=lanes),
        cb_type=plain.cb_type,
        n_actions=plain.n_actions,
        explore=True,
        first_only=plain.first_only,
        clip_p=plain.clip_p,
        link=plain.link,
        training=plain.training,
        options=options,
    )


def poisson(number: np.float32) -> int:
    """Count whose distribution function first reaches a number."""
    count, through = 0, math.exp(-1)
    while float(number) > through and count < 20:
        count += 1
        through += math.exp(-1) / math.factorial(count)
    return count


def tied_leaders(scores: Sequence[np.float32], *, first_only: bool) -> list[int]:
    """Actions that lead, in the order of their ranks."""
    order = rank(scores)
    best = scores[order[0]]
    tied = [order[0]]
    for action in order[1:]:
        if first_only or abs(scores[action] - best) > F(1e-4) * (abs(scores[action]) + abs(best)):
            break
        tied.append(action)
    return tied


@dataclass
class Exploring(Bandit):
    """Learns events of several actions and explores by the options."""

    options: Mapping[str, Any] = field(default_factory=dict)
    learnt: int = 0
    low: np.float32 = ZERO
    high: np.float32 = ZERO
    state: int = 0
    base: int = 0
    policy_sums: list[list[int]] = field(default_factory=list)
    again: list[Example] = field(default_factory=list)
    taken_off: bool = False

    def __post_init__(self) -> None:
        self.policies = self.options.get("bag") or self.options.get("cover") or 0
        self.policies += self.options.get("model_count", 3) if "epsilon_decay" in self.options else 0
        self.policy_sums = [[0, 0] for _ in range(max(self.policies, 1))]
        self.floor = F(self.options.get("epsilon", 0))
        self.state = self.options.get("random_seed", 0)

    @property
    def all_sums(self) -> list[int]:
        """Sums of all policies."""
        return [number for pair in self.policy_sums for number in pair]

    def event(self, event: Event, *, holdout: bool = False) -> Row:
        self.featurizer.see(event)
        examples, repeated, _ = self.examples(event)
        self.again = self.listed_again(event)
        self.taken_off = event[0].shared and bool(self.featurizer.groups(event[0]))
        n, label = len(examples), self.label(event)
        learns = label is not None and self.training and not (holdout and self.n_actions is not None)
        taught = label
        if label is not None and self.regresses() and label[0] < n - 1:
            taught = (label[0], label[1], F(1))
        if self.policies:
            order, score = self.vote(examples, taught if learns else None)
        else:
            order, score = self.choose(examples, taught if learns else None)
        known = label if label is not None and label[2] > 0 else None
        loss = self.loss(known, order, score, []) if order else F(0)
        self.learnt += learns
        self.learner.account(F(1), labelled=known is not None, holdout=holdout)
        shown = sum(example.n_own + example.n_crossed for example in examples) + n * repeated
        return Row(loss, known, shown, shown, order, score)

    def listed_again(self, event: Event) -> list[Example]:
        """The examples without products of wildcards."""
        plain, given = self.featurizer, ("quadratic", "cubic", "interactions")
        kept: dict[str, Any] = {
            name: [text for text in getattr(plain, name) if ":" not in text] for name in given
        }
        self.featurizer = replace(plain, **kept, seen=set(), products=[])
        self.featurizer.see(event)
        examples, _, _ = self.examples(event)
        self.featurizer = plain
        return examples

    def regresses(self) -> bool:
        return any(self.options.get(name) for name in ("squarecb", "regcb", "regcbopt"))

    def choose(self, examples: list[Example], label: Label | None) -> tuple[list[int], list[np.float32]]:
        """Score, explore, and learn if there is a label."""
        estimates = [F(0)] * len(examples)
        if label is not None and self.cb_type == "dr":
            estimates = self.estimates(examples, label)
        scores = [self.learner.raw(example.features) for example in examples]
        plausible = self.plausible(self.again, scores)
        if plausible and not self.taken_off:  # VW keeps what it has once asked for
            pairs = zip(examples, self.again, strict=True)
            examples = [replace(example, squares=again.squares) for example, again in pairs]
        if label is not None:
            self.learn(examples, label, estimates)
            self.policy_sums = [self.sums]
        order = rank(scores)
        found = self.probabilities(order, [scores[action] for action in order], plausible)
        if label is not None:
            self.low, self.high = min(self.low, label[1]), max(self.high, label[1])
        return found

    def plausible(
        self, examples: list[Example], scores: list[np.float32]
    ) -> list[tuple[np.float32, np.float32]]:
        """Plausible costs, by action."""
        if not (self.regresses() and (self.options.get("elim") or not self.options.get("squarecb"))):
            return []
        low, high = F(self.options.get("cb_min_cost", 0)), F(self.options.get("cb_max_cost", 1))
        usual = 0.001 if self.options.get("squarecb") else 0.1
        width = float(high - low)
        mellowness = F(self.options.get("mellowness", usual))
        times = F(len(examples) * self.learnt)
        allowed = mellowness * np.log(times) * F(width * width)
        found = []
        for example, score in zip(examples, scores, strict=True):
            moves = [self.moved(example, score, label) for label in (low - F(1), high + F(1))]
            found.append(explorers.cost_range(score, (moves[0], moves[1]), allowed, low, high))
        return found

    def moved(self, example: Example, score: np.float32, label: np.float32) -> np.float32:
        """How far a small weight of a label would move a score: a copy of the cells is updated."""
        learner = self.learner
        if not (learner.adaptive or learner.normalized):
            return self.rate() * example.squares
        slope_squared = learner.loss.slope_squared(score, label)
        reach = norm = F(0)
        for place, value in example.features:
            cell = learner.cell(place, 0)
            x = max(abs(value), F(1.084202e-19))
            square = max(value * value, x * x) if abs(value) < F(1.084202e-19) else value * value
            a = cell.a + slope_squared * square if learner.adaptive else cell.a
            size = max(cell.n, x) if learner.normalized else cell.n
            if learner.normalized:
                norm = norm + square / (size * size)
            reach = reach + square * learner.rate(type(cell)(cell.w, a, size))
        if learner.normalized:
            learner.factor = learner.average(F(learner.weight[0]) + F(1), F(learner.norm[0]) + norm)
            reach = reach * learner.factor
        return self.rate() * reach

    def rate(self) -> np.float32:
        """Learning rate of the next example."""
        learner = self.learner
        if learner.adaptive:
            return learner.learning_rate
        t = F(learner.t + 1.0 - learner.set_aside[0] - learner.set_aside[1])
        return learner.learning_rate * power(t, -learner.power_t)

    def probabilities(
        self,
        order: list[int],
        ranked: list[np.float32],
        plausible: list[tuple[np.float32, np.float32]],
    ) -> tuple[list[int], list[np.float32]]:
        options = self.options
        by_rank = [plausible[action] for action in order] if plausible else []
        if options.get("synthcover"):
            return self.poured(order, ranked)
        if options.get("regcb") or options.get("regcbopt"):
            if options.get("regcbopt"):
                only = options.get("first_only", False)
                return order, explorers.regcb_optimistic(by_rank, order, first_only=only, exact=True)
            return order, explorers.regcb(by_rank)
        if options.get("squarecb"):
            scale, exponent = F(options.get("gamma_scale", 10)), F(options.get("gamma_exponent", 0.5))
            gamma = explorers.gamma_of(scale, exponent, self.learnt)
            if options.get("elim"):
                return order, explorers.squarecb_elim(ranked, by_rank, gamma, exact=True)
            pmf = explorers.squarecb(ranked, gamma)
        elif options.get("softmax"):
            pmf = explorers.softmax(ranked, F(options.get("lambda_", 1)), lambda x: F(_EXPF(float(x))))
        else:
            pmf = explorers.first(ranked, tau=options["first"], learnt=self.learnt)
        return order, explorers.floored(pmf, self.floor)

    def poured(self, order: list[int], ranked: list[np.float32]) -> tuple[list[int], list[np.float32]]:
        if len(order) == 1:
            return order, [F(1)]
        costs = [ranked[order.index(action)] for action in range(len(order))]
        psi, size = F(self.options.get("synthcoverpsi", 0.1)), self.options.get("synthcoversize", 100)
        pmf = explorers.floored(
            explorers.synthcover(costs, self.low, self.high, psi=psi, size=size), self.floor
        )
        order = sorted(range(len(pmf)), key=lambda action: (-pmf[action], -action))
        return order, [pmf[action] for action in order]

    # -- several policies --------------------------------------------------------------------------

    def draw(self) -> np.float32:
        number, self.state = explorers.merand48(self.state)
        return number

    def vote(self, examples: list[Example], label: Label | None) -> tuple[list[int], list[np.float32]]:
        if "bag" in self.options:
            votes, sums = self.bag(examples, label)
            total = F(sum(float(vote) for vote in votes))
            pmf = explorers.floored([vote * (F(1) / total) for vote in votes], self.floor)
        else:
            pmf, sums = self.cover(examples, label)
        order = sorted(range(len(pmf)), key=lambda action: (-pmf[action], sums[action], action))
        return order, [pmf[action] for action in order]

    def scores(self, examples: list[Example], lane: int) -> list[np.float32]:
        return [self.learner.raw(example.features, lane=lane) for example in examples]

    def bag(self, examples: list[Example], label: Label | None) -> tuple[list[np.float32], list[np.float32]]:
        own = 2 if self.cb_type == "dr" else 1
        votes, sums = [F(0)] * len(examples), [F(0)] * len(examples)
        for policy in range(self.policies):
            scores = self.scores(examples, policy * own)
            tied = tied_leaders(scores, first_only=self.first_only)
            votes = [vote + F(1) / F(len(tied)) if a in tied else vote for a, vote in enumerate(votes)]
            sums = [total + score for total, score in zip(sums, scores, strict=True)]
        for policy in range(self.policies if label is not None else 0):
            assert label is not None
            once = self.options.get("greedify") and policy == 0
            for _ in range(1 if once else poisson(self.draw())):
                self.learn_policy(examples, label, policy=policy, lane=policy * own)
        return votes, sums

    def learn_policy(self, examples: list[Example], label: Label, *, policy: int, lane: int) -> None:
        """Let a policy learn as a bandit by itself does: its lanes take the places of the first ones."""
        self.base, self.sums = lane, self.policy_sums[policy]
        estimates = self.estimates(examples, label) if self.cb_type == "dr" else [F(0)] * len(examples)
        self.learn(examples, label, estimates)
        self.policy_sums[policy], self.base = self.sums, 0

    def costs(self, examples: list[Example], label: Label) -> list[np.float32]:
        """Costs that the policies of a cover learn, but for what they are paid for differing."""
        logged, cost, probability = label
        if self.cb_type == "ips":
            return [
                ips_target(cost, probability, F(0)) if a == logged else F(0) for a in range(len(examples))
            ]
        if self.cb_type == "mtr":
            costs = self.estimates(examples, label)
        else:
            raws = self.scores(examples, 1)
            costs = [apply_link(self.link, self.learner.clip(raw)) for raw in raws]
        if probability > 0:
            costs[logged] = dr_target(cost, probability, F(0), costs[logged])
        return costs

    def cover(
        self, examples: list[Example], label: Label | None
    ) -> tuple[list[np.float32], list[np.float32]]:
        n = len(examples)
        epsilon = F(self.options.get("epsilon", 1))
        least = epsilon / F(n)
        if "epsilon" not in self.options:
            least = min(least, epsilon / F(math.sqrt(self.learnt * n))) if self.learnt else least
        share = F(1) / F(self.policies)
        norm = least * F(n) + (share - least)
        costs = self.costs(examples, label) if label is not None else []
        votes, sums = [F(0)] * n, [F(0)] * n
        for policy in range(self.policies):
            scores = self.scores(examples, policy + 1 if policy else 0)
            tied = tied_leaders(scores, first_only=self.first_only)
            sums = [sums[i] + scores[action] for i, action in enumerate(rank(scores))]  # VW mixes them up
            psi = F(self.options.get("psi", 1))
            paid = [cost - psi * least / (max(votes[a], least) / norm) for a, cost in enumerate(costs)]
            part = share / F(len(tied))
            for action in tied:
                lifted = F(0) if policy == 0 else part
                if policy and votes[action] < least:
                    lifted = max(F(0), part - (least - votes[action]))
                norm = norm + lifted
                votes[action] = votes[action] + part
            if label is not None and policy == 0:
                self.learn_policy(examples, label, policy=0, lane=0)
            elif label is not None:
                for example, cost in zip(examples, paid, strict=True):
                    self.learner.learn(example.features, cost, F(1), lane=policy + 1, squares=example.squares)
        return self.covered(votes, least * F(n)), sums

    def covered(self, votes: list[np.float32], epsilon: np.float32) -> list[np.float32]:
        """Votes above the floor; with ``nounif`` only those that are chosen at all have one."""
        if epsilon > 1 or not self.options.get("nounif"):
            return explorers.floored(votes, epsilon) if epsilon <= 1 else votes
        held = iter(explorers.floored([vote for vote in votes if vote > 0], epsilon))
        return [next(held) if vote > 0 else vote for vote in votes]
