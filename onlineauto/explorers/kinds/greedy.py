"""ε-greedy: the default explorer without a search, which mostly chooses the best action.

The probability ε is spread over all actions. The best action gets the rest; several best actions share it.

Source: Langford & Zhang, *The Epoch-Greedy Algorithm for Contextual Multi-armed Bandits*, 2007; VW's
``--epsilon`` and ``--first_only``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.explorers.explorer import Explorer

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.explorers.ranking_kernels import Exploration


class Greedy(Explorer):
    """Explorer that mostly chooses the best action; it has only the shared options."""

    name = "greedy"
    flags = ()
    uses = ("epsilon", "first_only")
    epsilon = 0.05
    direct = True
    predicts_apart = False

    def keywords(self) -> dict[str, Any]:
        """Return its options, ``epsilon`` at least, which choose it in a search."""
        chosen = self.settings.keys() & self.uses
        return dict(self.settings) if chosen else {**self.settings, "epsilon": self.epsilon}

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel. The loop does not call it, because the loop computes ε-greedy itself."""
        from onlineauto.explorers.pmf_kernels import greedy as spread
        from onlineauto.jit import entry_kernel

        @entry_kernel
        def greedy(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            spread(score, len(score), exploration.epsilon, exploration.first_only)

        return greedy
