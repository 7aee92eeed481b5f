"""The search below an explorer of several models the slow and obvious way: to it each of them is an event.

Of rules that adapt their rates: others take Σ x² of whoever learns an action first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.automl import Manager, Options
from tests.naive.bandit import rank
from tests.naive.confidence_sequence import Estimator, is_better
from tests.naive.exploring import Exploring

if TYPE_CHECKING:
    from tests.naive.bandit import Row
    from tests.naive.blocks import Event
    from tests.naive.exploring import Label
    from tests.naive.features import Example

__all__ = ["SearchedBelow"]

F = np.float32


@dataclass
class SearchedBelow(Exploring):
    """Asks the search for what a model predicts, and has the search learn what a model learns."""

    events: list[Event] = field(default_factory=list)
    told: Label | None = None
    shown: int = 0
    n_taught: int = 0
    slot_sums: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.slots, self.own = self.options["automl"], 2 if self.cb_type == "dr" else 1
        lease = self.options["default_lease"]
        priority = (self.slots - 1) // 2
        self.manager = Manager(Options(self.slots, lease, "one_diff", "quadratic", "none", priority, 0))
        self.evidence = [self.fresh()]

    def fresh(self) -> tuple[Estimator, Estimator]:
        """Bounds on the reward of a config, and of the champion since it is live."""
        alpha = float(F(self.options["automl_significance_level"]))
        return Estimator(alpha=alpha, tol_x=float(F(1e-6))), Estimator(alpha=alpha, tol_x=float(F(1e-6)))

    def event(self, event: Event, *, holdout: bool = False) -> Row:
        self.events.append(event)
        learns = self.training and self.label(event) is not None
        self.told = self.label(event) if learns else None
        row = super().event(event, holdout=holdout)
        _, repeated, _ = self.examples(event)
        shown = self.shown + len(row.order) * repeated
        return replace(row, n_features=shown, shown_features=shown)

    # -- what the explorer asks for ----------------------------------------------------------------

    def scores(self, examples: list[Example], lane: int) -> list[np.float32]:
        """Scores of a model; under online cover the others do without the search, and so without products."""
        if "cover" not in self.options:
            return self.predicted(lane // self.own)
        if lane == 0:
            return self.predicted(0) if self.told is None else self.taught(0, self.told)
        if lane > 1:
            self.shown = counted(examples)
        return super().scores(examples, lane)

    def learn_policy(self, examples: list[Example], label: Label, *, policy: int, lane: int) -> None:
        """The first policy of a cover has learnt when it was asked for its scores."""
        del examples, lane
        if "cover" not in self.options:
            self.taught(policy, label)

    # -- the search --------------------------------------------------------------------------------

    def crossed(self, slot: int) -> list[Example]:
        """Examples of the event, with the products of a live config."""
        products = self.manager.estimators[slot].live_interactions
        plain, self.featurizer = self.featurizer, replace(self.featurizer, products=products)
        examples, _, _ = self.examples(self.events[-1])
        self.featurizer = plain
        return examples

    def meet(self) -> None:
        """Tell the search of namespaces that are new."""
        names = {
            self.featurizer.key(name)
            for line in self.events[-1]
            for name, features in line.spans
            if features and self.featurizer.is_wild(name)
        }
        if names - self.manager.ns_counter.keys():
            self.manager.process_example(tuple(sorted(names)))

    def lane(self, model: int, slot: int) -> int:
        of_slot: int = model * self.slots + slot
        return of_slot * self.own

    def predicted(self, model: int) -> list[np.float32]:
        self.meet()
        examples = self.crossed(0)
        self.shown = counted(examples)
        return Exploring.scores(self, examples, self.lane(model, 0))

    def taught(self, model: int, label: Label) -> list[np.float32]:
        """Let all live configs learn; what the champion predicted before."""
        self.meet()
        self.schedule()
        scores = [list[np.float32]()] * len(self.evidence)
        for slot in [*range(1, len(self.evidence)), 0]:
            examples = self.crossed(slot)
            self.shown = counted(examples)
            self.base, self.sums = self.lane(model, slot), self.slot_sums.get((slot, model), [0, 0])
            known = [F(0)] * len(examples)
            if self.cb_type == "dr":
                known = self.estimates(examples, label)
            scores[slot] = Exploring.scores(self, examples, self.base)
            self.learn(examples, label, known)
            self.slot_sums[slot, model], self.base = self.sums, 0
        self.observe(label, [rank(each)[0] for each in scores])
        return scores[0]

    def schedule(self) -> None:
        manager = self.manager
        for known, (own, _) in zip(manager.estimators, self.evidence, strict=True):
            known.lower, known.upper = own.lower_bound(), own.upper_bound()
        manager.log.clear()
        manager.schedule()
        for entry in manager.log:
            if entry[0] == "rotate":
                slot = int(str(entry[1]))
                self.evidence[slot : slot + 1] = [self.fresh()]
                self.move(0, slot)

    def observe(self, label: Label, chosen: list[int]) -> None:
        logged, cost, probability = label
        weight = float(F(1) / probability) if probability > 0 else 0.0
        self.n_taught += 1
        winner = 0
        for slot in range(1, len(chosen)):
            own, champion = self.evidence[slot]
            own.update(weight * (chosen[slot] == logged), float(-cost))
            champion.update(weight * (chosen[0] == logged), float(-cost))
            self.manager.estimators[slot].update_count += 1
            if is_better(own, champion):
                winner = slot
        if winner:
            self.manager.apply_new_champ(winner)
            self.evidence = [self.evidence[winner], self.evidence[winner][::-1]]
            self.move(0, winner, swaps=True)
            self.move(winner, 1)

    def move(self, source: int, target: int, *, swaps: bool = False) -> None:
        """Copy weights from slot to slot, or swap them; with estimates VW takes the wrong ones."""
        cells = {place for place, _ in self.learner.table}
        for part in range(self.learner.lanes // self.slots if source != target else 0):
            lanes = part * self.slots + source, part * self.slots + target
            for one, other in ([self.learner.cell(place, lane) for lane in lanes] for place in cells):
                for name in ("w", "a", "n", "rate"):
                    before, there = getattr(one, name), getattr(other, name)
                    if before != there:
                        setattr(other, name, before)
                        setattr(one, name, there if swaps else before)


def counted(examples: list[Example]) -> int:
    return sum(example.n_own + example.n_crossed for example in examples)
