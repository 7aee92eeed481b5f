"""Explore first: choose uniformly until N events are learnt, then choose only the best action.

The log of the first phase is uniform, which suits every later comparison. In the second phase there is no
exploration.

Source: VW's ``--first``.
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
class FirstOptions:
    """Options of explore-first."""

    title: ClassVar[str] = "Exploration: first"

    first: int | None = option(
        None,
        "Choose uniformly among all actions until N events are learnt, and then the best one.",
        keep=True,
        minimum=0,
        maximum=2**63 - 1,
        metavar="N",
        needs=EXPLORING,
    )


def left_to_explore(configuration: Configuration, learnt: int) -> int:
    """Return the number of events left to explore, after `learnt` events."""
    return max((configuration[FirstOptions].first or 0) - learnt, 0)


class First(Explorer):
    """Explorer that is uniform at first, then always chooses the best action."""

    name = "first"
    flags = ("first",)
    options = (FirstOptions,)

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return the number of events to explore."""
        return (configuration[FirstOptions].first or 0,)

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel."""
        import numpy as np

        from onlineauto.explorers.pmf_kernels import hold_floor
        from onlineauto.explorers.ranking_kernels import LEARNT, WORK
        from onlineauto.jit import entry_kernel

        zero, one = np.float32(0), np.float32(1)

        @entry_kernel
        def first(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            n, exploring = len(score), bool(exploration.counts[LEARNT] < exploration.numbers[0])
            for i in range(n):
                score[i] = one / np.float32(n) if exploring else zero
            if not exploring:
                score[0] = one
            hold_floor(score, n, exploration.epsilon, True, scratch[WORK])

        return first
