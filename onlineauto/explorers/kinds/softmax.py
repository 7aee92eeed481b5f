"""Softmax: an action's probability is proportional to ``exp(-λ cost)``.

With λ = 0 all actions are equally likely; with a large λ the best one is nearly certain.

Source: Luce, *Individual Choice Behavior*, 1959; VW's ``--softmax``.
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
class SoftmaxOptions:
    """Options of softmax."""

    title: ClassVar[str] = "Exploration: softmax"

    softmax: bool = option(
        False,
        "Choose an action with a probability proportional to exp(-lambda * cost).",
        keep=True,
        needs=EXPLORING,
    )
    lambda_: float = option(
        1.0,
        "How much --softmax prefers what looks better; a negative number counts as positive.",
        keep=True,
        override=True,
        needs=("softmax",),
    )


class Softmax(Explorer):
    """Explorer with probabilities proportional to exp(-λ cost)."""

    name = "softmax"
    flags = ("softmax",)
    options = (SoftmaxOptions,)

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return λ."""
        return (abs(configuration[SoftmaxOptions].lambda_),)

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel."""
        import numpy as np

        from onlineauto.explorers.pmf_kernels import hold_floor
        from onlineauto.explorers.pmf_kernels import softmax as spread
        from onlineauto.explorers.ranking_kernels import WORK
        from onlineauto.jit import entry_kernel

        @entry_kernel
        def softmax(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            n = len(score)
            spread(score, n, np.float32(exploration.numbers[0]))
            hold_floor(score, n, exploration.epsilon, True, scratch[WORK])

        return softmax
