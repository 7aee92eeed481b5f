"""A live config: its model, its evidence, and intervals of its reward, which the journal reports.

A lower bound on a sum of means is the best of 48 bets. An upper bound is a lower bound of negated numbers.

Source: Howard and others, *Time-uniform, nonparametric, nonasymptotic confidence sequences*, 2021 (empirical
Bernstein).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tests.naive.draws import Draws
from tests.naive.native_search.bets import LossTest, RewardTest
from tests.naive.native_search.regressor import Regressor

if TYPE_CHECKING:
    from tests.naive.native_search.configs import Config, Interaction
    from tests.naive.native_search.options import Options
    from tests.naive.native_search.scale import Scale

F = np.float32
LEANING = 0.25
"""Level at which rewards contradict losses."""
HIGHEST_PRICE = 0.24

LARGEST = 0.75
STAKES = [LARGEST * 1.6**-i for i in range(48)]
LOG_SHARES = [-math.log((i + 1.0) * (i + 2.0)) for i in range(48)]
GAIN, GAIN_SQUARES, LOSS, LOSS_SQUARES = range(4)


class Value:
    """The estimate of the reward of a policy from logged events."""

    def __init__(self) -> None:
        self.sums: NDArray[np.float64] = np.zeros(4)
        """Σ x and Σ (x - what was expected)², and the same of what bounds -x."""
        self.first_bound = self.bound = 0.0
        """How far x can be from what was expected, at first and now."""
        self.rewards = self.weights = 0.0
        """Of the mean so far, which is what is expected next."""

    def observe(self, scale: Scale, weight: float, reward: float) -> None:
        """Take in a logged event: `weight` is 1/p if the policy would have done what was logged, else 0."""
        width = scale.width
        if not width > 0.0:
            return
        r = scale.part(reward)
        mean = self.rewards / self.weights if self.weights > 0.0 else 0.5
        expected = scale.low + mean * width
        if scale.floor > 0.0:
            weight = min(weight, 1.0 / scale.floor)
            x = expected + weight * (r - mean) * width
            self._add(x, -x, expected, width / scale.floor)
        else:
            x = scale.low + weight * r * width
            self._add(x, weight * (1.0 - r) * width - scale.high, expected, width)
        self.rewards += weight * weight * r
        self.weights += weight * weight

    def observe_loss(self, loss: float, bound: float) -> None:
        """Take in the loss of a single line, as a negative reward; `bound` is the largest before it."""
        if not bound > 0.0:
            return
        loss = min(loss, bound)
        mean = self.rewards / self.weights if self.weights > 0.0 else 0.0
        self._add(-loss, loss, -mean, bound)
        self.rewards += loss
        self.weights += 1.0

    def _add(self, up: float, down: float, expected: float, bound: float) -> None:
        distances = (up - expected) * (up - expected), (down + expected) * (down + expected)
        self.sums = self.sums + np.array([up, distances[0], down, distances[1]])
        self.first_bound = self.first_bound or bound
        self.bound = max(self.bound, bound)

    def interval(self, alpha: float, before: NDArray[np.float64] | None = None) -> tuple[float, float]:
        """Bounds on the sum of rewards since the sums were as they were `before`."""
        sums = (self.sums if before is None else self.sums - before).tolist()
        low = self._lower(sums[GAIN], sums[GAIN_SQUARES], alpha / 2.0)
        high = -self._lower(sums[LOSS], sums[LOSS_SQUARES], alpha / 2.0)
        return low, high

    def _lower(self, total: float, squares: float, alpha: float) -> float:
        best = -math.inf
        for stake_of_first, log_share in zip(STAKES, LOG_SHARES, strict=True):
            if not self.first_bound > 0.0:
                continue
            stake = stake_of_first / self.first_bound
            z = stake * self.bound
            if z <= LARGEST:
                psi = (-math.log1p(-z) - z) / (self.bound * self.bound)
                best = max(best, total - (psi * squares - math.log(alpha) - log_share) / stake)
        return best


class Live:
    """The champion or a challenger."""

    def __init__(self, config: Config, options: Options) -> None:
        self.options = options
        self.config = config
        self.interactions: list[Interaction] = []
        self.regressor = Regressor()
        self.price = 0.0
        """What a challenger must gain by an event, as a part of the largest gain: it may be dearer to run."""
        self.say = 1.0
        """How much it has to say where all live configs predict together; all of these sum to 1."""
        self.updates = 0
        """Events on which it was compared with the champion."""
        self.compared = 0
        """Those of them on which its rewards were."""
        self.by_reward, self.by_loss = RewardTest(), LossTest()
        self.level = 0.0
        self.value = Value()
        self.is_removed = False
        """Whether it was proved worse, and is about to leave for good."""
        self.champion_before = np.zeros(4)
        """Sums of the champion's value when this began to be compared with it."""

    @property
    def learning_rate(self) -> np.float32:
        """Its own, or that of the command line."""
        given = F(self.options.learning_rate)
        own = self.config.learning_rate
        return given if own is None else given * F(own / float(given))

    def be_compared(self, champion: Live) -> None:
        """Forget what was compared so far, and begin a comparison with this champion."""
        self.updates = self.compared = 0
        self.value = Value()
        self.champion_before = champion.value.sums

    def be_tested(self, level: float) -> None:
        """Begin both tests anew."""
        self.by_reward, self.by_loss, self.level = RewardTest(), LossTest(), level

    # -- what the tests say ----------------------------------------------------------------------------

    def is_alike(self, champion: Live) -> bool:
        """Return whether losses can compare both configs; those of bandits only compare interactions."""
        return self.options.single_lines or self.config.learning_rate == champion.config.learning_rate

    def promise(self, champion: Live) -> float:
        """Evidence that it is better than the champion; 1 is none."""
        by_loss = self.by_loss.better if self.is_alike(champion) else 0.0
        return max(self.by_reward.better, by_loss) or 1.0

    def verdict(
        self, champion: Live, draws: Draws, compared_draws: Draws, *, others_wait: bool
    ) -> str | None:
        """Say what is proved: that it is better by "reward" or by "loss", that it is "worse", or nothing.

        Both tests share the level, if both have a say. Losses prove nothing that rewards lean against, nor
        anything while one action is logged. Where events share draws, proofs have to be that much stronger.
        """
        rewards, losses = self.by_reward, self.by_loss
        asks_rewards = self.options.by_reward
        asks_losses = self.options.by_loss and self.is_alike(champion)
        of_rewards = self.level * (0.5 if asks_losses else 1.0)
        of_losses = self.level * losses.share * (0.5 if asks_rewards else 1.0)
        asks_losses = asks_losses and draws.tell_of_actions
        of_losses = of_losses**draws.events
        of_rewards, leaning = (each**compared_draws.events for each in (of_rewards, LEANING))
        if asks_rewards and rewards.better * of_rewards >= 1.0:
            return "reward"
        if asks_losses and losses.better * of_losses >= 1.0 and not rewards.worse * leaning >= 1.0:
            return "loss"
        if not others_wait:
            return None
        if asks_rewards and rewards.worse * of_rewards >= 1.0:
            return "worse"
        if asks_losses and losses.worse * of_losses >= 1.0 and not rewards.better * leaning >= 1.0:
            return "worse"
        return None


def better_or_worse(
    live: Sequence[Live], draws: Draws, compared_draws: Draws, *, others_wait: bool
) -> tuple[int, str] | None:
    """Return which challenger is proved better, and by which test, or which one is proved worse.

    What rewards prove goes before what losses prove, and that before what is worse. Of several that are
    better the last one counts, of several that are worse the first one.
    """
    verdicts = [
        (place, each.verdict(live[0], draws, compared_draws, others_wait=others_wait))
        for place, each in enumerate(live)
        if place > 0
    ]
    for wanted in ("reward", "loss"):
        proved = [place for place, verdict in verdicts if verdict == wanted]
        if proved:
            return proved[-1], wanted
    worse = [place for place, verdict in verdicts if verdict == "worse"]
    return (worse[0], "worse") if worse else None


def set_prices(live: Iterable[Live], terms: Sequence[float], cost: float) -> None:
    """Require more of a challenger that has more features than the champion."""
    for each, many in zip(live, terms, strict=True):
        price = cost * math.log2(max(many, 1.0) / max(terms[0], 1.0))
        each.price = min(max(price, 0.0), HIGHEST_PRICE)
