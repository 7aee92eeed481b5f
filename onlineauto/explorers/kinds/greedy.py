"""ε-greedy: mostly the best action, now and then any.

The probability ε is spread over all actions, the rest goes to the best; several that are as good share it.
It is the explorer when no other is chosen.

Source: Langford & Zhang, *The Epoch-Greedy Algorithm for Contextual Multi-armed Bandits*, 2007; VW's
``--epsilon`` and ``--first_only``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.explorers.explorer import Explorer

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.explorers._kernels import Exploration


class Greedy(Explorer):
    """Mostly the best action; its options are those that other explorers share."""

    name = "greedy"
    flags = ()
    uses = ("epsilon", "first_only")
    epsilon = 0.05
    direct = True
    predicts_apart = False

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel for scores that are not of the loop, which has ε-greedy in itself."""
        from onlineauto.explorers.pmf_kernels import greedy as spread
        from onlineauto.jit import entry_kernel

        @entry_kernel
        def greedy(
            at: Exploration, order: NDArray[np.int32], score: NDArray[np.float32], room: NDArray[np.float32]
        ) -> None:
            spread(score, len(score), at.epsilon, at.first_only)

        return greedy
