"""``--epsilon_decay`` the slow and obvious way: several bandits, each with estimators of its reward."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.bandit import greedy, rank
from tests.naive.confidence_sequence import Estimator, is_better
from tests.naive.exploring import Exploring
from tests.naive.learner import Cell

if TYPE_CHECKING:
    from tests.naive.bandit import Row
    from tests.naive.blocks import Event
    from tests.naive.exploring import Label
    from tests.naive.features import Example

F = np.float32


@dataclass
class Decaying(Exploring):
    """The champion is the last model; of each there is an estimator for every model up to itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.places = list(range(self.policies))
        self.evidence = [[self.fresh() for _ in range(model + 1)] for model in range(self.policies)]

    def fresh(self) -> Estimator:
        level = F(self.options.get("epsilon_decay_significance_level", 0.05))
        return Estimator(alpha=float(level / F(self.options.get("bonferroni_denominator") or self.policies)))

    def age(self, model: int) -> int:
        return self.evidence[model][model].lower.g.t

    def epsilon_of(self, model: int) -> np.float32:
        if self.options.get("constant_epsilon"):
            return F(self.options.get("epsilon", 0.05))
        power = float(F(-1) / F(3))
        return F(self.options.get("initial_epsilon", 1)) * F(math.pow(self.age(model) + 1, power))

    def event(self, event: Event, *, holdout: bool = False) -> Row:
        row = super().event(event, holdout=holdout)
        learns = self.label(event) is not None and not (holdout and self.n_actions is not None)
        if self.training and (learns or self.n_actions is None):
            self.compare()
        return row

    def vote(self, examples: list[Example], label: Label | None) -> tuple[list[int], list[np.float32]]:
        champion, own = self.policies - 1, 2 if self.cb_type == "dr" else 1
        shown: tuple[list[int], list[np.float32]] = ([], [])
        for model in range(champion, -1 if label is not None else champion - 1, -1):
            lane = self.places[model] * own
            epsilon, scores = self.epsilon_of(model), self.scores(examples, lane)
            order = rank(scores)
            ranked = [scores[action] for action in order]
            pmf = greedy(ranked, epsilon, first_only=self.first_only) if order else []
            if model == champion:
                shown = order, pmf
            if label is not None:
                action, cost, probability = label
                share = pmf[order.index(action)]
                if model != champion and not self.options.get("challenger_epsilon"):
                    share = F(order[0] == action)
                reward = min(max(cost if self.options.get("reward_as_cost") else -cost, F(0)), F(1))
                self.learn_policy(examples, label, policy=self.places[model], lane=lane)
                for estimator in self.evidence[model]:
                    estimator.update(float(share / probability) if probability > 0 else 0.0, float(reward))
        return shown

    def compare(self) -> None:
        champion, options = self.policies - 1, self.options
        for model in range(champion - 1, -1, -1):
            better = is_better(self.evidence[model][model], self.evidence[champion][model])
            if better and self.age(model) >= options.get("min_champ_examples", 0):
                self.move_up(model, champion - model)
                break
        shift = options.get("shift_model_bounds", 0)
        for model in range(champion - 1, -1, -1):
            power = float(F(model + 1 + shift) / F(self.policies + shift))
            most = max(float(options.get("min_scope", 100)), math.pow(self.age(champion), power))
            if self.age(model) > most:
                self.move_up(model - 1, 1)
                break

    def move_up(self, last: int, distance: int) -> None:
        """Move models 0 to `last` up, over those that are there; the first `distance` begin anew."""
        old = [list(row) for row in self.evidence]
        if last >= 0:
            for model in range(last + 1):
                self.evidence[model + distance][distance : model + distance + 1] = old[model]
            for model in range(last + distance + 1, self.policies):
                self.evidence[model][distance : last + 2] = old[model][: last + 2 - distance]
            for model in range(last, -1, -1):
                upper = model + distance
                self.places[model], self.places[upper] = self.places[upper], self.places[model]
        for row in self.evidence:
            row[:distance] = [self.fresh() for _ in row[:distance]]
        lanes = self.learner.lanes
        begun = set(self.places[:distance])
        cleared = {
            k * self.policies + place for k in range(lanes // self.policies) for place in begun
        }  # wrong ones with estimates, as in VW
        for at in self.learner.table:
            if at[1] in cleared:
                self.learner.table[at] = Cell(F(0), F(0))
