"""The ensemble the slow, obvious way: weights of what has scores, and two tests against the champion."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.draws import Draws
from tests.naive.means import Shrinkage
from tests.naive.members import KEEPS, NAMES, ON_LINES, Members, Squares
from tests.naive.native_search.bets import LossTest, RewardTest, level_of_test
from tests.naive.native_search.comparing import is_one_in_eight
from tests.naive.native_search.options import Options
from tests.naive.native_search.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from tests.naive.members import Features, Named

    Scores = Sequence[Sequence[np.float32]] | NDArray[np.float32]
    """Of each action, those of every live config."""

LEANING, UNSURE, NEW = 0.25, 2.0, 0.5
OF_LINES, USUAL, KEEPS_LOSSES = 0.02, 3.0, 0.999
EXPLAINED, SLOWEST = 0.2, 0.05
OF_LEVEL, LEAST_NOISE, YOUNG, LATEST = 0.25, 0.02, 64, 2000
FIRST, SOON = 512, 0.5
LEADS, WIDE, FAR = 0.5, 8, 6


@dataclass(frozen=True)
class Logged:
    """The logged action, its cost, its probability, and the weight of the event."""

    action: int
    cost: float
    probability: float
    weight: float


@dataclass(frozen=True)
class Choice:
    """An event: the features of its context and of each action, and what was logged."""

    context: Features
    actions: Sequence[Features]
    logged: Logged | None


def rank(scores: Sequence[np.float32], action: int) -> int:
    """Return the number of actions with a lower predicted cost."""
    return sum(bool(score < scores[action]) for score in scores)


def best(scores: Sequence[np.float32]) -> int:
    return min(range(len(scores)), key=lambda action: (scores[action], action))


def fairness(logged: Logged, n_actions: int) -> float:
    """Return the propensity weight of an event, by which all actions count alike."""
    return min(1 / (n_actions * logged.probability), 32.0) if logged.probability > 0 else 1.0


def care(logged: Logged, n_actions: int) -> float:
    """Return the propensity weight of an event of a policy that hardly explores, and 1 of any other."""
    often = logged.probability > 0.5
    explores = logged.probability * n_actions
    if often and n_actions > 1:
        explores = (1 - logged.probability) * n_actions / (n_actions - 1)
    return fairness(logged, n_actions) if n_actions > 1 and 0 < explores < 1 / 12 else 1.0


def trust(logged: Logged, champion: Sequence[np.float32], ranking: Sequence[np.float32]) -> float:
    """Return the trust in a logged action: a third for a bad favourite of a policy that hardly explores."""
    n, action = len(champion), logged.action
    explores = (1 - logged.probability) * n / (n - 1) if n > 1 else 1
    doubted = logged.probability > 0.5 and 0 < explores < 1 / 12
    return 1 / 3 if doubted and rank(champion, action) > 0 and rank(ranking, action) > 0 else 1.0


class Ensemble:
    """The ensemble of at most so many live configs, with or without members, on single lines or choices.

    `asks` names the test that decides: "reward", "loss" or "both"; `named` is as in `Members`.
    """

    def __init__(
        self,
        live: int,
        *,
        single: bool,
        numbered: bool,
        members: bool = True,
        asks: str = "both",
        named: Named | None = None,
    ) -> None:
        self.single, self.most_live, self.n_live = single, live, 1
        self.new = OF_LINES if single else NEW
        self.unsure = OF_LINES if single else UNSURE
        self.fair = [0.0]
        self.asks_rewards = not single and asks != "loss"
        self.asks_losses = single or asks != "reward"
        self.names = () if not members else ON_LINES if single else NAMES
        self.members = Members(names=self.names, numbered=numbered, named=named) if members else None
        self.n_scores = len(self.names)
        self.n = self.most_live + self.n_scores + 1
        self.firsts = [0] if single else [0, self.n]
        """Where the weights of scores and those of their levels begin."""
        self.error = self.mean = self.variance = self.spread = 0.0
        self.n_errors = 0
        self.means = self.names.index("means") if "means" in self.names else -1
        self.squares, self.shrinkage = Squares(self.unsure), Shrinkage()
        self.begin()
        self.range = 0.0, 0.0
        self.labels = 0.0, 0.0
        self.scale = Scale(Options.of(automl=live, cb_explore_adf=True))
        self.logged: Counter[int] = Counter()
        self.draws = Draws()
        self.serves = self.leads = False
        self.n_tests = self.n_learnt = 0
        self.test_anew()

    def begin(self) -> None:
        """Trust the champion, and as much the ridge, if there is one."""
        self.squares = Squares(self.unsure, self.n + (len(self.firsts) - 1) * (self.n - 1))
        trusted = [0, *(self.most_live + at for at, name in enumerate(self.names) if name == "ridge")]
        for at in range(len(self.squares.weights)):
            if at in trusted:
                self.squares.weights[at] = 1 / len(trusted)
            elif at != self.n - 1:
                self.squares.spread[at, at] = self.new

    def test_anew(self) -> None:
        self.n_tests += 1
        self.by_reward, self.by_loss = RewardTest(), LossTest()
        if not self.single:
            self.fair = [0.0]
        self.level = level_of_test(0.05, self.n_tests)

    # -- what becomes of the live configs --------------------------------------------------------------

    def join(self, live: int) -> None:
        """Set the weight of a new config to 0; a new champion inherits the weight of the previous one."""
        self.n_live = max(self.n_live, live + 1)
        if live > 0:
            weights, spread = self.squares.weights, self.squares.spread
            for first in self.firsts:
                at = first + live
                weights[first] += weights[at]
                weights[at] = spread[at, :] = spread[:, at] = 0.0
                spread[at, at] = self.new

    def exchange(self, live: int) -> None:
        order = list(range(len(self.squares.weights)))
        for first in self.firsts:
            order[first], order[first + live] = first + live, first
        keeps = not self.single and self.squares.weights[live] < self.squares.weights[0]
        change = np.eye(len(self.squares.weights))
        if self.single:  # the champion's weight is what the others leave of 1
            spread = self.squares.spread
            learnt = [at for at in range(1, self.n - 1) if np.count_nonzero(spread[at]) > 1]
            change[0] = [-1.0 if at in learnt else 0.0 for at in range(len(change))]
        if not keeps:
            self.squares.weights = self.squares.weights[order]
        self.squares.spread = (change @ self.squares.spread @ change.T)[np.ix_(order, order)]
        self.trust_champion()
        self.test_anew()

    def trust_champion(self) -> None:
        """Give the champion of single lines the weight that the others leave, without a covariance."""
        if self.single:
            weights, spread = self.squares.weights, self.squares.spread
            weights[0] = 1.0 - weights[1 : self.n - 1].sum()
            spread[0], spread[:, 0] = 0.0, 0.0
            spread[0, 0] = OF_LINES

    def rest(self, names: Collection[str]) -> None:
        """Deactivate members; the weights become those of least squares without their scores."""
        assert self.members is not None
        if "features" in names:
            names = {*names, "layer"}
        for member, name in enumerate(self.names):
            if name in names and not self.members.rests[member]:
                self._leave_out(member)
        self.members.rests = [name in names for name in self.names]

    def _leave_out(self, member: int) -> None:
        weights, spread = self.squares.weights, self.squares.spread
        for at in (first + self.most_live + member for first in self.firsts):
            others = np.arange(len(weights)) != at
            share = spread[others, at] / spread[at, at]
            weights[others] -= share * weights[at]
            spread[np.ix_(others, others)] -= np.outer(share, spread[at, others])
            weights[at] = spread[at, :] = spread[:, at] = 0.0
            spread[at, at] = self.new
        self.trust_champion()

    def serve(self, who: str) -> None:
        self.serves = who == "ensemble"
        self.test_anew()

    # -- an event --------------------------------------------------------------------------------------

    @property
    def has_scores(self) -> NDArray[np.bool_]:
        """Return which weights of an event have a score."""
        found = np.arange(self.n - 1) < self.n_live
        if self.members is not None:
            found[self.most_live :] = self.members.works
        return found

    def on_scale(self, cost: float) -> float:
        low, high = self.range
        place = (float(cost) - low) / (high - low)
        return min(max(place, -1.0), 2.0) if place >= -1.0 else -1.0

    def bounded(self, cost: float) -> float:
        """Return a cost on the scale; that of a bandit is at most six standard deviations from the mean."""
        place = self.on_scale(cost)
        if self.single or self.n_errors < YOUNG:
            return place
        reach = FAR * math.sqrt(self.spread + (place - self.mean) ** 2 / self.n_errors)
        return min(max(place, self.mean - reach), self.mean + reach)

    def inputs(self, live: Scores, pairs: Scores, action: int) -> np.ndarray:
        """Return the scores of an action and, unless most events lack scores, their mean over actions."""
        found = np.zeros(len(self.squares.weights))
        columns = {slot: [float(each[slot]) for each in live] for slot in range(self.n_live)}
        if self.members is not None:
            for member, works in enumerate(self.members.works):
                if works:
                    columns[self.most_live + member] = [float(each[member]) for each in pairs]
        has_levels = not self.single and (self.members is None or self.members.joint is None)
        for at, column in columns.items():
            found[at] = self.on_scale(column[action])
            if has_levels:
                found[self.n + at] = OF_LEVEL * self.on_scale(sum(column) / len(column))
        found[self.n - 1] = 1.0
        return found

    def scores(self, choice: Choice, live: Scores) -> list[tuple[np.float32, ...]]:
        """Scores of the members, and then of the ensemble, for every action."""
        champion = [each[0] for each in live]
        pairs: Sequence[tuple[np.float32, ...]] = [()] * len(live)
        if self.members is not None:
            pairs = self.members.scores(choice.context, choice.actions, champion)
        low, high = self.range
        totals = champion
        if high > low:
            inputs = [self.inputs(live, pairs, action) for action in range(len(live))]
            totals = [np.float32(low + (high - low) * (self.squares.weights @ each)) for each in inputs]
            if self.scores_all and self.shrinks(len(live)):
                totals = self.shrinkage.shrink(totals, [pair[self.means] for pair in pairs])
        return [(*pair, total) for pair, total in zip(pairs, totals, strict=True)]

    def shrinks(self, n_actions: int) -> bool:
        """Return whether the scores of an event are shrunk: the means scored its actions."""
        return (
            self.members is not None and self.means >= 0 and self.members.works[self.means] and n_actions > 1
        )

    @property
    def predicts(self) -> bool:
        """Return whether the ensemble predicts: it is proved better, or it leads."""
        return self.serves or self.leads

    def _has_lead(self) -> bool:
        """Return whether nothing speaks against the ensemble.

        Losses must be for it without members, and if few costs are far from all others.
        """
        leans = self.by_reward.worse >= (1 / LEANING) ** self.draws.events
        if self.members is not None and self.spread >= 1 / WIDE**2:
            return not leans and sum(self.fair) >= -math.sqrt(sum(each**2 for each in self.fair))
        if not self.asks_losses or not self.draws.tell_of_actions:
            return False
        losses = self.by_loss.better >= (1 / (LEADS * self.by_loss.share)) ** self.draws.events
        return losses and self.is_fair and not leans

    @property
    def is_fair(self) -> bool:
        """Return whether propensity-weighted losses agree within one standard error."""
        return self.single or sum(self.fair) >= math.sqrt(sum(each**2 for each in self.fair))

    @property
    def scores_all(self) -> bool:
        """Return whether all actions of the next learnt event are scored, not only the logged one."""
        if self.predicts or not self.asks_losses or self.members is None or self.members.joint is None:
            return True
        return self.n_learnt < FIRST or self.by_loss.better >= 1 / SOON or is_one_in_eight(self.n_learnt)

    def learn(
        self, choice: Choice, live: Scores, own: Scores, mix: Sequence[float] | None = None
    ) -> str | None:
        """Learn an event that was scored so; say who is proved to predict better, and by what.

        On single lines the ensemble is compared with a `mix` of the live configs.
        """
        proved, scores_all, trusted, bounded = None, self.scores_all, 1.0, None
        logged = choice.logged
        if logged is None:
            return None
        self.labels = min(self.labels[0], logged.cost), max(self.labels[1], logged.cost)
        if self.range[1] > self.range[0]:
            champion, ensemble = [each[0] for each in live], [each[-1] for each in own]
            if mix is not None:
                clipped = np.clip(np.asarray(live[0], float), *self.labels)
                champion = [np.float32(np.dot(mix[: self.n_live], clipped[: self.n_live]))]
            ranking = ensemble if scores_all else champion
            self._test(champion, ensemble, ranking, logged)
            proved = self._verdict()
            self.leads = self.fair[0] > 0 if self.single else self._has_lead()
            trusted = trust(logged, [each[0] for each in live], ranking)
            noise = (1.0 + rank(ranking, logged.action)) / math.sqrt(fairness(logged, len(live)))
            noise /= logged.weight
            inputs = self.inputs(live, own, logged.action)
            bounded = target = self.bounded(logged.cost)
            if scores_all and self.shrinks(len(live)):
                counts = math.sqrt(1 + rank(ranking, logged.action)) / noise
                self._learn_shrinkage(own, logged.action, self.squares.weights @ inputs, target, counts)
            error, square = target - self.squares.weights @ inputs, self.error if self.n_errors else 1.0
            self.n_errors = min(self.n_errors + 1, LATEST)
            self.error += (error**2 / noise - self.error) / self.n_errors
            speed = 1.0
            if self.single:
                square = max(square, 1e-12)
                noise *= max(square, abs(error) * math.sqrt(square) / USUAL)
                target -= inputs[0]
                inputs[: self.n - 1] -= inputs[0] * self.has_scores
            else:
                found = self.on_scale(logged.cost)
                self.mean += (found - self.mean) / max(self.n_errors / logged.weight, 1)
                self.spread += ((found - self.mean) ** 2 - self.spread) / self.n_errors
                self.variance += ((found - self.mean) ** 2 / noise - self.variance) / self.n_errors
                part = self.error / self.variance if self.variance > 0 else 1.0
                part = min(max(part, LEAST_NOISE), 1.0)
                noise *= max(part, YOUNG / self.n_errors)
                speed = min(max((1 - part) / EXPLAINED, SLOWEST), 1.0)
            self.squares.keeps = 1 - speed * (1 - KEEPS)
            self.squares.learn(inputs, target, noise)
            self.squares.cut_off()
            self.trust_champion()
        low, high = self.range
        cost = logged.cost if bounded is None else low + bounded * (high - low)
        if self.members is not None:
            worked = self.members.works
            careful = logged.weight * care(logged, len(choice.actions))
            weights = logged.weight, logged.weight * trusted, careful
            self.members.learn(choice.context, choice.actions, logged.action, cost, weights)
            for at, (before, now) in enumerate(zip(worked, self.members.works, strict=True)):
                if before and not now:
                    self._leave_out(at)
        self.widen(logged.cost)
        self.scale.widen(-logged.cost, logged.probability, len(choice.actions))
        self.logged[logged.action] += 1
        self.n_learnt += 1
        if not self.single:
            self.draws.note(logged.action, logged.probability)
        return proved

    def _learn_shrinkage(self, own: Scores, action: int, score: float, target: float, count: float) -> None:
        low, high = self.range
        shrunk = [float(each[-1]) for each in own]
        means = [float(each[self.means]) for each in own]
        level = (np.mean(shrunk) - low) / (high - low)
        mean = (means[action] - np.mean(means)) / (high - low)
        self.shrinkage.learn(score - level, mean, target - level, count)

    def widen(self, cost: float) -> None:
        """Widen the range to a cost, at most by as much again; keep what the ensemble says of each input."""
        low, high = self.range
        width = high - low
        lower, higher = min(low, cost), max(high, cost)
        if width > 0:
            lower, higher = max(lower, low - width), min(higher, high + width)
            change, constant = np.eye(len(self.squares.weights)), self.n - 1
            change[constant, constant] = scale = width / (higher - lower)
            weights = change @ self.squares.weights
            total = self.squares.weights[:constant].sum() + OF_LEVEL * self.squares.weights[self.n :].sum()
            weights[constant] += (low - lower) * (1 - total) / (higher - lower)
            self.error, self.variance = self.error * scale**2, self.variance * scale**2
            self.spread *= scale**2
            self.shrinkage.scale(scale)
            self.mean = self.mean * scale + (low - lower) / (higher - lower)
            self.squares.weights, self.squares.spread = weights, change @ self.squares.spread @ change
        self.range = lower, higher

    def rarity(self, action: int, n_actions: int) -> float:
        """Return the mean frequency of all logged actions divided by the frequency of this one."""
        return (self.logged.total() + n_actions) / (n_actions * (self.logged[action] + 1.0))

    def _test(
        self,
        champion: Sequence[np.float32],
        ensemble: Sequence[np.float32],
        ranking: Sequence[np.float32],
        logged: Logged,
    ) -> None:
        def error(scores: Sequence[np.float32]) -> float:
            return min(max(float(scores[logged.action]), self.labels[0]), self.labels[1]) - logged.cost

        counts = logged.weight / (1 + min(rank(champion, logged.action), rank(ranking, logged.action)))
        gain = error(champion) ** 2 - error(ensemble) ** 2
        moved = ensemble
        if not self.single and ranking is ensemble:  # its level counts as that of the champion
            away = np.mean(np.asarray(champion, float)) - np.mean(np.asarray(ensemble, float))
            moved = [np.float32(score + away) for score in np.asarray(ensemble, float)]
        fair = error(champion) ** 2 - error(moved) ** 2
        if self.single:
            self.fair[0] = KEEPS_LOSSES * self.fair[0] + counts * fair
        else:
            self.fair.append(counts * fair * fairness(logged, len(ensemble)))
        counts *= self.rarity(logged.action, len(ensemble))
        reach = None
        if not self.single:
            one, other = error(champion) + logged.cost, error(ensemble) + logged.cost
            reach = counts * max(abs((one - cost) ** 2 - (other - cost) ** 2) for cost in self.range)
        self.by_loss.observe(counts * gain, 0.0, reach)
        chosen, usual = best(ensemble), best(champion)
        if self.single or chosen == usual or ranking is champion:
            return
        weight = 1 / logged.probability
        weights = [weight if each == logged.action else 0.0 for each in (chosen, usual)]
        predicted = [
            min(max(-float(champion[each]), self.scale.low), self.scale.high) for each in (chosen, usual)
        ]
        self.by_reward.observe(
            self.scale, weights[0], weights[1], -logged.cost, predicted[0], predicted[1], 0.0
        )

    def _verdict(self) -> str | None:
        rewards, losses = self.by_reward, self.by_loss
        both = self.asks_rewards and self.asks_losses
        level = self.level * (0.5 if both else 1.0)
        of_rewards = 1 / level if self.asks_rewards else math.inf
        of_losses = 1 / (level * losses.share) if self.asks_losses else math.inf
        if not self.draws.tell_of_actions:
            of_losses = math.inf
        of_rewards, of_losses, leaning = (
            each**self.draws.events for each in (of_rewards, of_losses, 1 / LEANING)
        )
        if self.serves:
            if rewards.worse >= of_rewards:
                return "champion by reward"
            leans = self.single or rewards.worse >= leaning
            return "champion by loss" if losses.worse >= of_losses and leans else None
        if rewards.better >= of_rewards:
            return "ensemble by reward"
        leans = not self.is_fair or rewards.worse >= leaning
        return "ensemble by loss" if losses.better >= of_losses and not leans else None
