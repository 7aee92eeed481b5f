"""Synthetic cover: distribute probability in parts of 1/100, each to the action whose cost is lowest.

Each part raises the action's cost a little, until another action has the lowest cost. So the costs, clipped
to the range seen so far, are raised to a common level. Unlike ``--cover``, one model is enough.

In VW and in exact mode, the cost to be learnt widens the range before the prediction and so affects it.
Native mode predicts first. Its least probability of an action is 0.01 / K by default, and VW's is 0.

Source: VW's ``--synthcover``.
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
class SynthcoverOptions:
    """Options of synthetic cover."""

    title: ClassVar[str] = "Exploration: synthetic cover"

    synthcover: bool = option(
        False,
        "Hand out probability in small parts, each to the action that looks best, which then looks a little"
        " worse.",
        keep=True,
        needs=EXPLORING,
    )
    synthcoverpsi: float = option(
        0.1,
        "How much worse an action would look with all of the probability.",
        keep=True,
        override=True,
        above=0,
        metavar="PSI",
        needs=("synthcover",),
    )
    synthcoversize: int = option(
        100,
        "Into how many parts the probability is divided.",
        keep=True,
        minimum=1,
        maximum=2**32 - 1,
        metavar="N",
        needs=("synthcover",),
    )


class Synthcover(Explorer):
    """Explorer that gives probability to the best action in small parts."""

    name = "synthcover"
    flags = ("synthcover",)
    options = (SynthcoverOptions,)
    epsilon = 0.01
    sees_costs = True

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return the amount by which a probability of 1 raises a cost, and the number of steps to 1."""
        options = configuration[SynthcoverOptions]
        return options.synthcoverpsi, options.synthcoversize

    def announced(self, configuration: Configuration) -> tuple[str, ...]:
        """Return the lines about its options."""
        options, epsilon = configuration[SynthcoverOptions], float(str(configuration.get("epsilon")))
        lines = ["Using synthcover for CB exploration", f"synthcoversize = {options.synthcoversize}"]
        if "epsilon" in configuration.supplied and epsilon > 0:
            lines.append(f"epsilon = {epsilon:g}")
        return (*lines, f"synthcoverpsi = {options.synthcoverpsi:g}")

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel, which sorts actions by probability, and ties in reverse order."""
        import numpy as np

        from onlineauto.explorers.pmf_kernels import hold_floor
        from onlineauto.explorers.ranking_kernels import FILLED, HIGH, LOW, WORK, rank_by_probability
        from onlineauto.jit import entry_kernel, kernel, short_loop

        zero, one, infinite = np.float32(0), np.float32(1), np.float32(np.inf)

        @kernel
        def pour(
            exploration: Exploration, pmf: NDArray[np.float32], cost: NDArray[np.float32], n: int
        ) -> None:
            """Fill in the probabilities of two or more actions by action number; raise `cost` accordingly."""
            psi, size = np.float32(exploration.numbers[0]), int(exploration.numbers[1])
            bit = one / np.float32(size)
            for action in range(n):
                pmf[action], cost[action] = (
                    zero,
                    max(exploration.costs[LOW], min(cost[action], exploration.costs[HIGH])),
                )
            poured = 0
            while poured < size:
                best = 0
                for action in range(1, n):
                    short_loop()
                    best = action if cost[action] < cost[best] else best
                second = infinite
                for action in range(n):
                    short_loop()
                    second = min(second, cost[action]) if action != best else second
                while True:  # runs at least once, so that it also ends for a cost of NaN
                    pmf[best] += bit
                    cost[best] += bit * psi
                    poured += 1
                    if poured >= size or not second >= cost[best]:
                        break

        @entry_kernel
        def synthcover(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            n, filled, pmf = len(score), scratch[FILLED], scratch[0]
            if n == 1:
                score[0] = one
                return
            for i in range(n):
                filled[order[i]] = score[i]
            pour(exploration, pmf, filled, n)
            hold_floor(pmf, n, exploration.epsilon, True, scratch[WORK])
            for action in range(n):
                filled[action] = -np.float32(action)
            rank_by_probability(pmf, filled, n, order)
            for i in range(n):
                score[i] = pmf[order[i]]

        return synthcover
