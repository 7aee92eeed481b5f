"""SquareCB: an action's probability falls with the inverse of its predicted disadvantage.

With K actions, an action whose predicted cost is Δ above the lowest has probability 1 / (K + γ Δ); the best
action has the rest. γ grows with the number of events learnt, so that exploration fades out. Costs are learnt
by regression, without importance weights.

With ``--elim`` only actions that may still be the best are explored: those whose lowest plausible cost is not
above the highest plausible cost of another.

Exact mode reproduces VW's errors: see `weighs_last_action`, `miscounts_left` and `no_floor_of_left` in
`onlineauto.explorers.quirks`.

Source: Foster & Rakhlin, *Beyond UCB: Optimal and Efficient Contextual Bandits with Regression Oracles*,
2020, algorithm 1; VW's ``--squarecb``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import EXPLORING, Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.options import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class SquarecbOptions:
    """Options of SquareCB."""

    title: ClassVar[str] = "Exploration: SquareCB"

    squarecb: bool = option(
        False,
        "Choose each action with a probability that falls as its predicted cost rises above the lowest one,"
        " by the inverse of the difference.",
        keep=True,
        needs=EXPLORING,
    )
    gamma_scale: float = option(
        10.0,
        "How much --squarecb and --scaled_squarecb prefer what looks better, after the first event.",
        keep=True,
        override=True,
        minimum=0,
        needs=("squarecb", "scaled_squarecb", "automl"),
    )
    gamma_exponent: float = option(
        0.5,
        "Exponent by which --gamma_scale grows with the number of events learnt.",
        keep=True,
        override=True,
        needs=("squarecb",),
    )
    elim: bool = option(
        False, "Explore only actions that may still be the best.", keep=True, needs=("squarecb",)
    )


class Squarecb(Explorer):
    """Explorer with probabilities by the inverse of an action's predicted disadvantage."""

    name = "squarecb"
    flags = ("squarecb",)
    options = (SquarecbOptions,)
    mellowness = 0.001
    cb_types = ("mtr",)

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return the parameters of γ, and whether actions are eliminated."""
        options = configuration[SquarecbOptions]
        return options.gamma_scale, options.gamma_exponent, options.elim

    def bounds(self, configuration: Configuration) -> bool:
        """Return whether actions are eliminated, which needs plausible costs."""
        return configuration[SquarecbOptions].elim

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel."""
        import numpy as np

        from onlineauto.explorers.cost_range_kernels import best_highest
        from onlineauto.explorers.pmf_kernels import hold_floor
        from onlineauto.explorers.ranking_kernels import LEARNT, WORK
        from onlineauto.jit import F32, entry_kernel, kernel

        zero, one = np.float32(0), np.float32(1)
        float_max = np.float32(np.finfo(np.float32).max)

        @kernel
        def spread_over_all(score: NDArray[np.float32], n: int, gamma: F32) -> None:
            """Replace ranked scores by 1 / (n + γ Δ), and the first one by the remaining probability."""
            best, total = score[0], zero
            for i in range(1, n):
                score[i] = one / (np.float32(n) + gamma * (score[i] - best))
                total += score[i]
            score[0] = one - total

        @kernel
        def spread_over_plausible(
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            n: int,
            gamma: F32,
            plausible: NDArray[np.float32],
            miscounts: bool,
        ) -> None:
            """Replace scores like `spread_over_all` for actions that may be the best; set the others to 0."""
            limit = best_highest(plausible, n)
            first, left = -1, 0
            for i in range(n):
                if plausible[0, order[i]] <= limit:
                    left += 1 if first < 0 or not miscounts else 0
                    first = i if first < 0 else first
            best, total = score[first] if first >= 0 else float_max, zero
            first = max(first, 0)
            for i in range(n):
                if plausible[0, order[i]] > limit:  # False for NaN, which is not eliminated.
                    score[i] = zero
                elif i != first:
                    score[i] = one / (np.float32(left) + gamma * (score[i] - best))
                    total += score[i]
            score[first] = one - total

        @entry_kernel
        def squarecb(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            n, scale, exponent = (
                len(score),
                np.float32(exploration.numbers[0]),
                np.float32(exploration.numbers[1]),
            )
            gamma = scale * np.float32(np.float64(exploration.counts[LEARNT]) ** np.float64(exponent))
            if exploration.numbers[2] > 0.0:
                spread_over_plausible(order, score, n, gamma, scratch, exploration.quirks.miscounts_left)
            else:
                spread_over_all(score, n, gamma)
            if exploration.numbers[2] == 0.0 or not exploration.quirks.no_floor_of_left:
                hold_floor(score, n, exploration.epsilon, True, scratch[WORK])

        return squarecb
