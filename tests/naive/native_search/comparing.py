"""Compare every challenger with the champion after an event is learnt.

All live configs have scored the event before any of them learnt it, so each loss is one of a prediction.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.draws import Draws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.naive.native_search.events import Event, Label
    from tests.naive.native_search.live import Live
    from tests.naive.native_search.options import Options
    from tests.naive.native_search.regressor import Labels
    from tests.naive.native_search.scale import Scale

    Scores = Sequence[Sequence[np.float32]]
    """Of every live config, for every action."""

F = np.float32
LARGEST_WEIGHT = F(2.0**40)
GROUP = 32
MEMORY = 256.0
GOLDEN = 0x9E3779B97F4A7C15
LEAST_SAY = 1e-3


def best_action(scores: Sequence[np.float32]) -> int:
    """Return the action of the lowest cost, the first of several."""
    return min(range(len(scores)), key=lambda action: (scores[action], action))


def is_one_in_eight(learnt: int) -> bool:
    """Return whether a sparing search compares rewards on the event after `n` events."""
    return learnt * GOLDEN % 2**64 < 2**64 // 8


def compare_rewards(
    live: Sequence[Live], scores: Scores, label: Label, n_actions: int, scale: Scale, compared: bool
) -> None:
    """Compare the actions and rewards of all live configs, or of the champion alone."""
    weight = float(min(F(1) / label.probability, LARGEST_WEIGHT))
    reward = -float(label.cost)

    def predicted(action: int) -> float:
        """Reward that the champion predicts of an action."""
        return min(max(-float(scores[0][action]), scale.low), scale.high)

    choices = [best_action(each) for each in scores]
    weights = [weight if choice == label.action else 0.0 for choice in choices]
    for place, each in enumerate(live):
        if compared or place == 0:
            each.value.observe(scale, weights[place], reward)
        if place == 0:
            continue
        each.updates += 1
        each.compared += compared
        if compared and choices[place] != choices[0]:
            of_both = predicted(choices[place]), predicted(choices[0])
            each.by_reward.observe(scale, weights[place], weights[0], reward, *of_both, each.price)
    scale.widen(reward, float(label.probability), n_actions)


class Losses:
    """Compare the losses of the live configs."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.largest = 0.0
        """Of single lines, the largest loss so far and how large losses are of late."""
        self.lately = 0.0
        self.fresh: list[float] = []
        """The champion's, since they were last asked for."""
        self.draws, self.compared_draws = Draws(), Draws()
        """Of all events, and of those on which rewards were compared."""
        self.logged: Counter[int] = Counter()
        """How often each action was logged, by its place."""

    def compare(
        self,
        live: Sequence[Live],
        scores: Scores,
        event: Event,
        labels: Labels,
        learnt: int,
        *,
        compared: bool,
    ) -> None:
        """Compare the losses of live configs on the logged action, after `learnt` earlier events."""
        label, single = event.label, self.options.single_lines
        assert label is not None
        weight = float(label.weight) if single else 1.0
        lost = [weight * float(labels.loss_of(each[label.action], label.cost)) for each in scores]
        self.fresh.append(lost[0])
        largest_before = self.largest
        if single:
            self.largest = max(self.largest, lost[0])
            self.lately += (lost[0] - self.lately) / min(learnt + 1.0, MEMORY)
            live[0].value.observe_loss(lost[0], largest_before)
        often = self.logged[label.action] / max(self.logged.total(), 1)
        rare = 1.0 if single else self._rarity(label.action, len(scores[0]))
        if not single:
            self.draws.note(label.action, float(label.probability))
            if compared:
                self.compared_draws.note(label.action, float(label.probability), often=often)
        for each, loss in zip(live[1:], lost[1:], strict=True):
            if not (self.options.by_loss and each.is_alike(live[0])):
                continue
            each.by_loss.observe(rare * (lost[0] - loss), each.price)
            if single:
                each.value.observe_loss(loss, largest_before)
                self.largest = max(self.largest, loss)
                each.updates += 1
                each.compared += 1
        if self.options.mixes:
            self._share(live, lost)

    def _rarity(self, action: int, n_actions: int) -> float:
        """Return the mean frequency of all actions divided by that of this one; then count this one."""
        rare = (self.logged.total() + n_actions) / (n_actions * (self.logged[action] + 1.0))
        self.logged[action] += 1
        return rare

    def _share(self, live: Sequence[Live], lost: Sequence[float]) -> None:
        """Increase the shares of live configs with lower losses; each has a minimum share."""
        rate = 0.5 / self.lately if self.lately > 0.0 else 0.0
        total = 0.0
        for each, loss in zip(live, lost, strict=True):
            if each is live[0] or self.options.by_loss:
                each.say *= math.exp(-rate * loss)
            total += each.say
        for each in live:
            say = each.say / total if total > 0.0 else 1.0 / len(live)
            each.say = (1.0 - LEAST_SAY) * say + LEAST_SAY / len(live)

    def take_means(self) -> list[float]:
        """Take the champion's mean losses of every 32 events since the last time; what is left over stays."""
        means = []
        while len(self.fresh) >= GROUP:
            group, self.fresh = self.fresh[:GROUP], self.fresh[GROUP:]
            total = 0.0
            for loss in group:
                total += loss
            means.append(total / GROUP)
        return means


def mixed(live: Sequence[Live], scores: Scores, labels: Labels) -> np.float32:
    """Return the mixed prediction of all live configs for a single line."""
    total = 0.0
    for each, (score,) in zip(live, scores, strict=True):
        total += each.say * float(labels.clip(score))
    return F(total)


def share_equally(live: Sequence[Live], coming: Live) -> None:
    """Give a new live config an equal share of the mixture, taken from all others."""
    coming.say = 0.0
    total = 0.0
    for each in live:
        total += each.say
    for each in live:
        each.say *= (1.0 - 1.0 / len(live)) / max(total, 1e-300)
    coming.say = 1.0 / len(live)
