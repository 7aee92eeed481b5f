"""A search over a stream, event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tests.naive.native_search import oracle
from tests.naive.native_search.bets import level_of_test
from tests.naive.native_search.comparing import (
    Losses,
    compare_rewards,
    is_one_in_eight,
    mixed,
    share_equally,
)
from tests.naive.native_search.decisions import Known, Remove, Reopen, Rotate, Search, Swap, Widen
from tests.naive.native_search.drift import LOSSES_OF_A_LOOK, Drift
from tests.naive.native_search.events import TOLD
from tests.naive.native_search.features import Examples
from tests.naive.native_search.journal import line_of
from tests.naive.native_search.live import Live, better_or_worse, set_prices
from tests.naive.native_search.regressor import Labels, Regressor
from tests.naive.native_search.scale import Scale
from tests.naive.native_search.screening import Screening
from tests.naive.new_actions import bounded, is_new, learnt_part, placed

if TYPE_CHECKING:
    from tests.naive.native_search.configs import Config, Interaction, Space
    from tests.naive.native_search.decisions import Decision
    from tests.naive.native_search.events import Event
    from tests.naive.native_search.journal import Line
    from tests.naive.native_search.options import Options

F = np.float32
REMEMBERED = 4
"""Number of waiting configs, which keep their weights, per live config."""


class Counts:
    """Counts so far; a shared feature counts once for every action."""

    def __init__(self) -> None:
        self.events = self.actions = 0
        self.met: set[bytes] = set()
        self.features: Counter[bytes] = Counter()

    def count(self, event: Event) -> tuple[bytes, ...]:
        """Count an event; return the namespaces that were not met before, in ascending order."""
        shared = event.shared or {}
        self.events += 1
        self.actions += len(event.actions)
        for name, features in shared.items():
            if name != TOLD:
                self.features[name] += len(event.actions) * len(features)
        for action in event.actions:
            for name, features in action.items():
                self.features[name] += 0 if name in shared else len(features)
        new = event.names - self.met
        self.met |= new
        return tuple(sorted(new))

    def sizes(self, names: Iterable[bytes]) -> dict[bytes, float]:
        """Features that an action has in each namespace, on average."""
        return {name: self.features[name] / max(self.actions, 1) for name in names}

    @property
    def actions_of_event(self) -> float:
        """Actions of an event, on average."""
        return self.actions / max(self.events, 1)


@dataclass(frozen=True)
class Step:
    """Result of an event: decisions, and the prediction before it was learnt."""

    lines: list[Line]
    prediction: dict[int, np.float32]
    """Probability of each action, by number; for a single line, the prediction at number 0."""


def greedy(scores: Sequence[np.float32], epsilon: np.float32, *, first_only: bool) -> list[np.float32]:
    """Return probabilities of actions: ε for all, the rest for those of the lowest cost."""
    least = min(scores)
    ranked = sorted(scores)
    tied = 0
    while tied < len(ranked) and abs(ranked[tied] - least) <= F(1e-4) * (abs(ranked[tied]) + abs(least)):
        tied += 1
    tied = 1 if first_only else tied
    order = sorted(range(len(scores)), key=lambda action: (scores[action], action))
    floor = epsilon / F(len(scores))
    share = floor + (F(1) - epsilon) / F(tied)
    return [share if order.index(action) < tied else floor for action in range(len(scores))]


class NativeSearch:
    """Learns a stream with several configs at once; the champion predicts."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.search = Search(options)
        self.live = [Live(self.search.champion, options)]
        self.remembered: dict[Config, tuple[Live, NDArray[np.float64]]] = {}
        """Configs that wait with what they have learnt; and what the champion earned beside each."""
        self.counts, self.labels, self.scale = Counts(), Labels(options), Scale(options)
        self.screening, self.losses, self.drift = Screening(options), Losses(options), Drift()
        self.n_events = self.n_learnt = self.n_tests = self.n_reviews = 0
        self.learnt_cells: set[int] = set()

    @property
    def champion(self) -> Live:
        """Return the live config that predicts."""
        return self.live[0]

    # -- an event --------------------------------------------------------------------------------------

    def learn(self, event: Event) -> Step:
        """Decide what is due, predict, learn, compare; decide on what that has proved."""
        lines: list[Line] = []
        new = self.counts.count(event)
        if new:
            lines += self._answer(self.search.meet(new, event, self._known()))
        learns = event.label is not None
        due = self.n_learnt >= self.search.next_review
        if learns and (due or self._has_losses()):
            drifted = self._drifted()
            if due or drifted:
                lines += self._answer(self.search.review_due(drifted, event, self._known()))
        if learns and self._lease_is_due():
            lines += self._answer(self.search.lease_due(self._known()))
        examples = Examples(event, self.options)
        used, screens = examples.narrow(
            [each.interactions for each in self.live], list(self.screening.gains), self.options.max_crossed
        )
        scores = [
            each.regressor.scores(event, examples, interactions)
            for each, interactions in zip(self.live, used, strict=True)
        ]
        if learns and screens:
            self._screen(event, examples, scores[0])
        mask = 2**self.options.bit_precision - 1
        parts = [learnt_part(own, self.learnt_cells, mask) for own in event.actions]
        if learns:
            self._learn(event, examples, scores, used)
        prediction = self._predict(event, scores, parts)
        self.n_events += 1
        if learns:
            self._compare(event, scores)
            lines += self._answer_to_proofs()
        return Step(lines, prediction)

    def _screen(self, event: Event, examples: Examples, scores: list[np.float32]) -> None:
        """Update the screened interactions with the logged action."""
        assert event.label is not None
        action, cost = event.label.action, event.label.cost
        self.screening.observe(examples, action, self.champion.regressor, scores[action], cost, self.labels)

    def _learn(
        self,
        event: Event,
        examples: Examples,
        scores: list[list[np.float32]],
        used: list[list[Interaction]],
    ) -> None:
        """Update every live config with the logged action, or with the label of a single line."""
        label = event.label
        assert label is not None
        action = label.action
        self.labels.see(label.cost)
        mask = 2**self.options.bit_precision - 1
        for features in event.actions[action].values():
            self.learnt_cells.update(hash_ & mask for hash_, x in features if x != 0)
        for each, its_scores, interactions in zip(self.live, scores, used, strict=True):
            weight = label.weight
            if not self.options.single_lines:
                weight = each.regressor.importance(label, len(event.actions))
            features = examples.all(interactions, action)
            each.regressor.learn(
                features, its_scores[action], label.cost, weight, each.learning_rate, self.labels
            )
            self.learnt_cells.update(cell for cell, _ in features if cell in each.regressor.table)

    def _predict(
        self, event: Event, scores: list[list[np.float32]], parts: list[np.float32]
    ) -> dict[int, np.float32]:
        """Return the prediction; for single lines, clipped to the range of labels, including this one."""
        if self.options.single_lines:
            clipped = self.labels.clip(scores[0][0])
            together = mixed(self.live, scores, self.labels) if self.options.mixes else clipped
            return {0: self.labels.linked(together)}
        new, ranked = is_new(parts, self.n_learnt), scores[0]
        if any(new):
            ranked = placed(ranked, parts, new, tries=False)
        pmf = greedy(ranked, F(self.options.epsilon), first_only=self.options.first_only)
        if any(new):
            order = sorted(range(len(pmf)), key=lambda action: (ranked[action], new[action], action))
            pmf, _ = bounded(pmf, new, order)
        return dict(zip(event.numbers, pmf, strict=True))

    def _compare(self, event: Event, scores: list[list[np.float32]]) -> None:
        compared = not self.options.is_sparing or is_one_in_eight(self.n_learnt)
        if not self.options.single_lines:
            assert event.label is not None
            compare_rewards(self.live, scores, event.label, len(event.actions), self.scale, compared)
        self.losses.compare(self.live, scores, event, self.labels, self.n_learnt, compared=compared)
        self.n_learnt += 1

    # -- what is due, and what is proved ---------------------------------------------------------------

    def _lease_is_due(self) -> bool:
        """Return whether a free index can be filled, or a config has had all events of its lease."""
        leases = zip(self.live, self.search.live, strict=True)
        over = any(each.updates >= candidate.lease for each, candidate in leases)
        return over or (self.search.has_empty_place and bool(self.search.waiting))

    def _has_losses(self) -> bool:
        return self.options.on_drift != "ignore" and len(self.losses.fresh) >= LOSSES_OF_A_LOOK

    def _drifted(self) -> bool:
        means = self.losses.take_means()
        return self.options.on_drift != "ignore" and self.drift.alarms(means)

    def _answer_to_proofs(self) -> list[Line]:
        draws, others_wait = (self.losses.draws, self.losses.compared_draws), bool(self.search.waiting)
        proof = better_or_worse(self.live, *draws, others_wait=others_wait)
        if proof is None:
            return []
        place, verdict = proof
        if verdict == "worse":
            return self._answer(self.search.proved_worse(place))
        return self._answer(self.search.proved_better(place, verdict, self._known()))

    def _known(self) -> Known:
        """Return the state on which decisions are based."""
        empty, alpha = self.options.automl - len(self.live), self.options.automl_significance_level
        return Known(
            learnt=self.n_learnt,
            updates=[each.updates for each in self.live] + [0] * empty,
            promises=[each.promise(self.champion) for each in self.live] + [1.0] * empty,
            gains=self.screening.gains,
            sizes=self.counts.sizes(self.search.names | self.counts.met),
            n_actions=self.counts.actions_of_event,
            champion_upper=self._mean(
                self.champion.value.interval(alpha)[1], self.n_learnt - self.search.since
            ),
            waiting_lower={
                config: self._mean(each.value.interval(alpha)[0], each.compared)
                for config, (each, _) in self.remembered.items()
            },
        )

    def _mean(self, total: float, events: int) -> float:
        low, high = (-self.losses.largest, 0.0) if self.options.single_lines else self.scale.range
        return min(max(total / max(events, 1), low), high)

    # -- carrying decisions out ------------------------------------------------------------------------

    def _answer(self, decisions: list[Decision]) -> list[Line]:
        """Write decisions down and carry them out, then see to what follows from them."""
        lines = []
        for decision in decisions:
            updates = [each.updates for each in self.live]
            lines.append(line_of(decision, self.n_events, updates, self.bounds))
            self._carry_out(decision)
        space = self.search.space(self._known())
        if any(isinstance(each, Widen | Rotate | Swap) for each in decisions):
            self._cross(space)
        reviewed = self.search.n_reviews != self.n_reviews
        if reviewed or any(isinstance(each, Widen | Swap) for each in decisions):
            self.n_reviews = self.search.n_reviews
            champion = self.search.champion
            pool = oracle.screened(champion, space, self.n_reviews)
            self.screening.choose(pool, champion.interactions)
        return lines

    def _cross(self, space: Space) -> None:
        """Set the interactions and the price of each live config."""
        told = space.names if self.options.ccb_explore_adf else None
        for each in self.live:
            each.interactions = each.config.in_order(told)
        alone = () if "namespaces" in self.options.searched else space.names
        own = space.terms((name,) for name in alone)
        terms = [own + space.terms(each.config.interactions) for each in self.live]
        set_prices(self.live, terms, self.options.feature_cost)

    def _carry_out(self, decision: Decision) -> None:
        """Apply the decisions to the models and the tests."""
        if isinstance(decision, Remove):
            self.live[decision.place].is_removed = True
        elif isinstance(decision, Rotate) and decision.place == 0:
            self.champion.config = decision.config
            self.champion.be_compared(self.champion)
        elif isinstance(decision, Rotate):
            self._rotate(decision.place, decision.config)
        elif isinstance(decision, Swap):
            place = decision.place
            self.live[0], self.live[place] = self.live[place], self.live[0]
            self.screening.fade()
            self._compare_anew()
        elif isinstance(decision, Reopen):
            self.drift = Drift()
            self.screening.fade()
            self._compare_anew()
            if decision.what == "reset_model":
                self.champion.regressor = Regressor()
            if decision.what in ("reset_model", "reset_challengers"):
                for each in self.live[1:]:
                    each.regressor = self.champion.regressor.copy()

    def _compare_anew(self) -> None:
        """Forget what was known of all live configs beside the champion, but not what they have learnt."""
        self.remembered.clear()
        for each in self.live:
            each.be_compared(self.champion)
        for each in self.live[1:]:
            each.be_tested(self._next_level())

    def _next_level(self) -> float:
        self.n_tests += 1
        return level_of_test(float(F(self.options.automl_significance_level)), self.n_tests)

    def _rotate(self, place: int, config: Config) -> None:
        """Put a config into a challenger's place: as it left it, or with what the champion has learnt."""
        earned = self.champion.value.sums
        if place < len(self.live) and not self.live[place].is_removed:
            leaving = self.live[place]
            self.remembered[leaving.config] = leaving, earned - leaving.champion_before
            while len(self.remembered) > REMEMBERED * self.options.automl:
                del self.remembered[next(iter(self.remembered))]
        if config in self.remembered:
            coming, earned_beside = self.remembered.pop(config)
            coming.champion_before = earned - earned_beside
        else:
            coming = Live(config, self.options)
            coming.regressor = self.champion.regressor.copy()
            coming.be_compared(self.champion)
            coming.be_tested(self._next_level())
        self.live[place:] = [coming, *self.live[place + 1 :]]
        share_equally(self.live, coming)

    # -- what the journal shows ------------------------------------------------------------------------

    def bounds(self, place: int) -> dict[str, float]:
        """Return bounds of the rewards of a challenger, and of the champion over the same events."""
        each, alpha = self.live[place], self.options.automl_significance_level
        own = each.value.interval(alpha)
        champion = self.champion.value.interval(alpha, each.champion_before)
        sums = [(total, each.compared) for total in own] + [(total, each.updates) for total in champion]
        means = [self._mean(total, events) for total, events in sums]
        names = ("lower", "upper", "champion_lower", "champion_upper")
        return {"updates": each.updates, **dict(zip(names, means, strict=True))}
