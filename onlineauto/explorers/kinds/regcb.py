"""RegCB: explore the actions that may still be the best, by their ranges of plausible costs.

The range of an action's plausible costs narrows as more is learnt (`onlineauto.explorers.cost_range`). With
``--regcb`` an action is eliminated if its range begins above the end of another action's range; the choice
among the rest is uniform. With ``--regcbopt`` the action whose range begins lowest is chosen.

Costs are learnt by regression, without importance weights. Exact mode reproduces VW's errors: see
`weighs_last_action` and `ties_are_certain` in `onlineauto.explorers.quirks`. Interactions of wildcards are
also left out of the plausible costs there.

Source: Foster, Agarwal, Dudík, Luo & Schapire, *Practical Contextual Bandits with Regression Oracles*, 2018,
algorithms 1 and 2; VW's ``--regcb`` and ``--regcbopt``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.cost_range import CostRangeOptions
from onlineauto.explorers.explorer import EXPLORING, Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.options import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class RegcbOptions:
    """Options of RegCB."""

    title: ClassVar[str] = "Exploration: RegCB"

    regcb: bool = option(
        False,
        "Choose uniformly among all actions that may still be the best.",
        keep=True,
        needs=EXPLORING,
    )
    regcbopt: bool = option(
        False,
        "Choose the action with the lowest plausible cost.",
        keep=True,
        needs=EXPLORING,
    )


class Regcb(Explorer):
    """Explorer of the actions that may still be the best."""

    name = "regcb"
    flags = ("regcb", "regcbopt")
    options = (RegcbOptions, CostRangeOptions)
    uses = ("first_only",)
    mellowness = 0.1
    cb_types = ("mtr",)

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return whether the explorer is optimistic."""
        return (configuration[RegcbOptions].regcbopt,)

    def bounds(self, configuration: Configuration) -> bool:
        """Return True: plausible costs are always read."""
        del configuration
        return True

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel."""
        import numpy as np

        from onlineauto.explorers.cost_range_kernels import best_highest
        from onlineauto.jit import entry_kernel, kernel

        zero, one = np.float32(0), np.float32(1)
        float_max = np.float32(np.finfo(np.float32).max)

        @kernel
        def spread_over_plausible(
            order: NDArray[np.int32], pmf: NDArray[np.float32], scratch: NDArray[np.float32]
        ) -> None:
            """Give the same probability to each action whose range begins below the end of every other."""
            n = len(pmf)
            limit, left = best_highest(scratch, n), 0
            for action in range(n):
                left += 1 if scratch[0, action] <= limit else 0
            for i in range(n):
                pmf[i] = one / np.float32(left) if scratch[0, order[i]] <= limit else zero

        @kernel
        def lowest(
            exploration: Exploration,
            order: NDArray[np.int32],
            pmf: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            """Choose the action whose range begins lowest; ties share the probability unless `first_only`."""
            n = len(pmf)
            best, tied, low = 0, 0, float_max
            for action in range(n):
                if scratch[0, action] < low:
                    best, low = action, scratch[0, action]
            for action in range(n):
                tied += 1 if scratch[0, action] == low else 0
            share = one
            if not exploration.quirks.ties_are_certain and not exploration.first_only and tied > 0:
                share = one / np.float32(tied)
            for i in range(n):
                alike = not exploration.first_only and scratch[0, order[i]] == low
                pmf[i] = share if order[i] == best or alike else zero

        @entry_kernel
        def regcb(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            if exploration.numbers[0] > 0.0:
                lowest(exploration, order, score, scratch)
            else:
                spread_over_plausible(order, score, scratch)

        return regcb
