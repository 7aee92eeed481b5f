"""Contextual bandits: targets, ranks and probabilities, one event after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlineauto.features.options import unescape
from tests.naive.blocks import Event
from tests.naive.features import Example, Featurizer
from tests.naive.learner import Learner, Regressor, apply_link
from tests.naive.losses import make_loss

F = np.float32
EPSILON, ZERO = F(0.05), F(0)


def mtr_weight(probability: np.float32, clip_p: np.float32, events: int, actions: int) -> np.float32:
    """Return the inverse propensity, divided by the mean number of actions so far."""
    return F(1) / max(probability, clip_p) * (F(events) / F(actions))


def ips_target(cost: np.float32, probability: np.float32, clip_p: np.float32) -> np.float32:
    propensity = max(probability, clip_p)
    return cost / (propensity if propensity > 0 else F(1e-3))


def dr_target(
    cost: np.float32, probability: np.float32, clip_p: np.float32, estimate: np.float32
) -> np.float32:
    return estimate + (cost - estimate) / max(probability, clip_p)


def rank(scores: Sequence[np.float32]) -> list[int]:
    """Return the actions by cost, then by number."""
    return sorted(range(len(scores)), key=lambda action: (scores[action], action))


def greedy(ranked: Sequence[np.float32], epsilon: np.float32, *, first_only: bool) -> list[np.float32]:
    """Return probabilities of ranked scores: ε for all, the rest for those equal to the first."""
    tied = 1
    for score in ranked[1:]:
        if first_only or abs(score - ranked[0]) > F(1e-4) * (abs(score) + abs(ranked[0])):
            break
        tied += 1
    floor = epsilon / F(len(ranked))
    return [floor + (F(1) - epsilon) / F(tied) if k < tied else floor for k in range(len(ranked))]


@dataclass(frozen=True)
class Row:
    """Result of an event."""

    loss: np.float32
    known: tuple[int, np.float32, np.float32] | None
    n_features: int
    shown_features: int
    order: list[int]
    score: list[np.float32]


@dataclass
class Bandit:
    """Learns events of several actions; `n_actions` for those of ``--cb N``, which have one line."""

    featurizer: Featurizer
    learner: Learner
    cb_type: str = "mtr"
    n_actions: int | None = None
    explore: bool = False
    epsilon: np.float32 = EPSILON
    first_only: bool = False
    clip_p: np.float32 = ZERO
    link: str = "identity"
    training: bool = True
    sums: list[int] = field(default_factory=lambda: [0, 0])

    def examples(self, event: Event) -> tuple[list[Example], int, int]:
        """Return the examples of the actions; shared features that VW counts for each action, and once."""
        if self.n_actions is not None:
            numbers = range(self.n_actions)
            return [self.featurizer.numbered(event[0], k, self.n_actions) for k in numbers], 0, 0
        if not event[0].shared:
            return [self.featurizer.action(line) for line in event], 0, 0
        repeated = sum(map(len, self.featurizer.groups(event[0]).values()))
        examples = [self.featurizer.action(line, event[0]) for line in event[1:]]
        return examples, repeated, repeated + (not self.featurizer.noconstant)

    def label(self, event: Event) -> tuple[int, np.float32, np.float32] | None:
        """Return the logged action, cost and probability."""
        if self.n_actions is not None:
            observed = [(a, F(c), F(p)) for a, c, p in event[0].costs if c is not None and p > 0]
            if observed and 1 <= observed[0][0] <= self.n_actions:
                return observed[0][0] - 1, *observed[0][1:]
            return None
        lines = event[1:] if event[0].shared else event
        for action, line in enumerate(lines):
            if len(line.costs) == 1 and line.costs[0][1] is not None:
                return action, F(line.costs[0][1]), F(line.costs[0][2])
        return None

    def event(self, event: Event, *, holdout: bool = False) -> Row:
        self.featurizer.see(event)
        examples, repeated, once = self.examples(event)
        label = self.label(event)
        exempt = holdout and (self.n_actions is not None or not self.featurizer.exact)
        learns = label is not None and self.training and not exempt
        estimates = [F(0)] * len(examples)
        if learns and self.cb_type == "dr":
            estimates = self.estimates(examples, label)
        scores = [self.learner.raw(example.features) for example in examples]
        order = rank(scores)
        score = [scores[action] for action in order]
        if self.explore and score:
            score = greedy(score, self.epsilon, first_only=self.first_only)
        known = label if label is not None and label[2] > 0 else None
        loss = self.loss(known, order, score, estimates)
        if learns:
            assert label is not None
            self.learn(examples, label, estimates)
        self.learner.account(F(1), labelled=known is not None, holdout=holdout)
        own = sum(example.n_own + example.n_crossed for example in examples)
        shown = own + len(examples) * repeated
        return Row(loss, known, shown if self.explore else own + once, shown, order, score)

    def loss(
        self,
        known: tuple[int, np.float32, np.float32] | None,
        order: list[int],
        score: list[np.float32],
        estimates: list[np.float32],
    ) -> np.float32:
        if known is None or not order:
            return F(0)
        action, cost, probability = known
        if self.explore:
            return F(0) + cost / probability * score[order.index(action)]
        estimate = estimates[order[0]]
        return (cost - estimate) / probability + estimate if order[0] == action else estimate

    def estimates(
        self, examples: list[Example], label: tuple[int, np.float32, np.float32] | None
    ) -> list[np.float32]:
        """Return the costs that the second lane predicts; it learns the logged one."""
        assert label is not None
        estimates = []
        for action, example in enumerate(examples):
            if action == label[0] and label[2] > 0:
                _, p = self.learner.learn(
                    example.features, label[1], F(1) / label[2], lane=1, squares=example.squares
                )
            else:
                p = self.learner.clip(self.learner.raw(example.features, lane=1))
            estimates.append(apply_link(self.link, p))
        return estimates

    def learn(
        self, examples: list[Example], label: tuple[int, np.float32, np.float32], estimates: list[np.float32]
    ) -> None:
        logged, cost, probability = label
        if self.cb_type == "mtr":
            self.sums = [self.sums[0] + len(examples), self.sums[1] + 1]
            weight = mtr_weight(probability, self.clip_p, self.sums[1], self.sums[0])
            if not self.featurizer.exact and not np.isfinite(weight):
                weight = F(0)
            example = examples[logged]
            self.learner.learn(example.features, cost, weight, squares=example.squares)
            return
        targets = list(estimates) if self.cb_type == "dr" else [F(0)] * len(examples)
        if self.cb_type == "ips":
            targets[logged] = ips_target(cost, probability, self.clip_p)
        elif self.cb_type == "dm":
            targets[logged] = cost
        elif probability > 0:
            targets[logged] = dr_target(cost, probability, self.clip_p, estimates[logged])
        for example, target in zip(examples, targets, strict=True):
            self.learner.learn(example.features, target, F(1), squares=example.squares)


def _make_learner(options: Mapping[str, Any], *, lanes: int) -> Learner:
    parts = {name: bool(options.get(name)) for name in ("adaptive", "normalized", "invariant")}
    named = any(parts.values()) or bool(options.get("sgd"))
    parts = parts if named else dict.fromkeys(parts, True)
    whole = parts["adaptive"] and parts["normalized"]
    plain = not parts["adaptive"] and not parts["normalized"]
    initial_t = float(F(options.get("initial_t", 1 if plain else 0)))
    power_t = F(options.get("power_t", 0.5))
    rate = F(options.get("learning_rate", 0.5 if whole else 10))
    if plain:
        rate = rate * F(initial_t) ** power_t
    name = options.get("loss_function", "squared")
    low = {"quantile": "quantile_tau", "expectile": "expectile_q"}.get(name, "logistic_min")
    bounded = "min_prediction" in options or "max_prediction" in options
    wide = 0 if bounded or options.get("testonly") or name not in ("logistic", "poisson") else 50
    return Learner(
        loss=make_loss(
            name,
            F(options.get(low, 0.5 if name == "quantile" else -1)),
            F(options.get("logistic_max", 1)),
        ),
        learning_rate=rate,
        power_t=power_t,
        l1=float(F(options.get("l1", 0))),
        l2=float(F(options.get("l2", 0))),
        initial_t=initial_t,
        supplied_t=float(F(options.get("initial_t", 0))),
        initial_weight=options.get("initial_weight", 0.0),
        low=F(options.get("min_prediction", -wide)),
        high=F(options.get("max_prediction", wide)),
        track=not bounded,
        lanes=lanes,
        **parts,
    )


def _letters(words: Sequence[str], *, exact: bool) -> tuple[bytes, ...]:
    """Return the letters of words: bytes, or characters in native mode."""
    data = b"".join(unescape(word) for word in words)
    if exact:
        return tuple(data[i : i + 1] for i in range(len(data)))
    return tuple(
        letter.encode("utf-8", "surrogateescape") for letter in data.decode("utf-8", "surrogateescape")
    )


def make_twin(options: Mapping[str, Any]) -> Bandit | Regressor:
    """Return the reference engine for the options of a `Workspace`."""
    kinds = [kind for kind in ("cb", "cb_adf", "cb_explore", "cb_explore_adf") if options.get(kind)]
    lanes = 2 if kinds and options.get("cb_type") == "dr" else 1
    keep, exact = options.get("keep"), options.get("vw_exact", False)
    featurizer = Featurizer(
        cells=2 ** options.get("bit_precision", 18) // lanes,
        exact=exact,
        quadratic=options.get("quadratic", ()),
        cubic=options.get("cubic", ()),
        interactions=options.get("interactions", ()),
        full_names=options.get("experimental_full_name_interactions", ()),
        ignore=_letters(options.get("ignore", ()), exact=exact),
        keep=_letters(keep, exact=exact) if keep else None,
        ignore_linear=_letters(options.get("ignore_linear", ()), exact=exact),
        noconstant=options.get("noconstant", False),
        permutations=options.get("permutations", False),
        leave_duplicates=options.get("leave_duplicate_interactions", False),
    )
    learner = _make_learner(options, lanes=lanes)
    link, training = options.get("link", "identity"), not options.get("testonly", False)
    if not kinds:
        return Regressor(
            featurizer, learner, link=link, binary=options.get("binary", False), training=training
        )
    return Bandit(
        featurizer,
        learner,
        cb_type=options.get("cb_type", "mtr"),
        n_actions=options.get("cb") or options.get("cb_explore"),
        explore="explore" in kinds[0],
        epsilon=F(options.get("epsilon", 0.05)),
        first_only=options.get("first_only", False),
        clip_p=F(options.get("clip_p", 0)),
        link=link,
        training=training,
    )
