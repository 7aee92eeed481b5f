"""Scaled SquareCB: SquareCB whose γ is learnt from the errors of predictions; the default of a search.

With K actions, an action whose predicted cost is Δ above the lowest has probability 1 / (K + γ Δ); the best
action has the rest. After t learnt events, γ = c √(K t) / σ, where c is 0.3 times ``--gamma_scale`` and σ is
the typical error of the predictions: the root of the mean square of about the last 1,000 errors, or the
standard deviation of the costs if that is less. Where members of the ensemble disagree about the action or
the best one, σ² is larger by a quarter of the weighted mean square of their distances from it. In SquareCB,
γ is √(K t) divided by the square root of the regret of the regression, which grows with σ². So the
probabilities are the same in any unit of the costs, and exploration fades out sooner where predictions are
good. As long as all costs are equal, all actions are equally likely.

Unlike ``--squarecb``, costs are learnt with importance weights, so learning from a log does not depend on the
explorer. The least probability of an action is 0.01 / K, so that logs remain useful for other policies.

Source: Foster & Rakhlin, *Beyond UCB: Optimal and Efficient Contextual Bandits with Regression Oracles*,
2020, algorithm 1 and theorem 1. The scale is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import EXPLORING, Explorer
from onlineauto.explorers.kinds.squarecb import SquarecbOptions
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.options import Configuration

_FACTOR = 0.3
"""With 1 a search sometimes keeps to a wrong action if rewards have no noise."""

_DISAGREEMENT = 0.25
"""Part of the disagreement of members that counts; with 1/2 or 1, explorers earn less on most streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledSquarecbOptions:
    """Options of scaled SquareCB."""

    title: ClassVar[str] = "Exploration: scaled SquareCB"

    scaled_squarecb: bool = option(
        False,
        "Explore like --squarecb, with differences of costs in units of the typical error of predictions. "
        "The default of --cb_explore_adf --automl without --epsilon or another explorer.",
        keep=True,
        vw=False,
        needs=EXPLORING,
    )


class ScaledSquarecb(Explorer):
    """Explorer like SquareCB, with differences of costs in units of the typical error of predictions."""

    name = "scaled_squarecb"
    flags = ("scaled_squarecb",)
    options = (ScaledSquarecbOptions,)
    epsilon = 0.01
    sees_errors = True

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return the factor of γ."""
        return (_FACTOR * configuration[SquarecbOptions].gamma_scale,)

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel."""
        import math

        import numpy as np

        from onlineauto.explorers.pmf_kernels import hold_floor
        from onlineauto.explorers.ranking_kernels import LEARNT, UNSURE, WORK, typical_error
        from onlineauto.jit import entry_kernel, short_loop

        zero, one, largest = np.float32(0), np.float32(1), 1e30

        @entry_kernel
        def scaled_squarecb(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            n, error, unsure = len(score), typical_error(exploration), scratch[UNSURE]
            scale = exploration.numbers[0] * math.sqrt(np.float64(n * exploration.counts[LEARNT]))
            best, total = score[0], zero
            for i in range(1, n):
                short_loop()
                variance, away = error * error, np.float64(unsure[order[0]]) + np.float64(unsure[order[i]])
                if away < np.inf:  # False for NaN: a score is infinite
                    variance += _DISAGREEMENT * away
                gamma = min(scale / math.sqrt(variance), largest) if error > 0.0 else 0.0
                difference = np.float64(score[i]) - np.float64(best)
                if difference >= 0.0:  # False for NaN: both are infinite
                    score[i] = np.float32(1.0 / (np.float64(n) + gamma * difference))
                else:
                    score[i] = np.float32(1.0 / np.float64(n))
                total += score[i]
            score[0] = one - total
            if score[n - 1] < exploration.epsilon / np.float32(
                n
            ):  # the least probability, since scores ascend
                hold_floor(score, n, exploration.epsilon, True, scratch[WORK])

        return scaled_squarecb
