"""Bagging: several models vote, each having learnt from its own random sample of the events.

Each model learns every event k times, with k drawn from a Poisson distribution of mean 1: the online form of
sampling with replacement. An action's probability is its share of the votes. So where the models agree, there
is little exploration. Under ``--automl`` every live config has a separate bag. All bags use the same draws,
so that live configs are compared without the noise of different samples.

Source: Oza & Russell, *Online Bagging and Boosting*, 2001; Bietti, Agarwal & Langford, *A Contextual Bandit
Bake-off*, 2021, algorithm 4; VW's ``--bag`` and ``--greedify``.
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
class BagOptions:
    """Options of bagging."""

    title: ClassVar[str] = "Exploration: bagging"

    bag: int | None = option(
        None,
        "Let N models vote, each of which learns every event a random number of times.",
        keep=True,
        minimum=1,
        maximum=2**16,
        metavar="N",
        needs=EXPLORING,
    )
    greedify: bool = option(
        False, "Let the first of these models learn every event once.", keep=True, needs=("bag",)
    )


class Bag(Explorer):
    """Explorer by the votes of several models."""

    name = "bag"
    flags = ("bag",)
    options = (BagOptions,)
    policy_kind = "bag"
    uses = ("epsilon", "first_only")

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return whether the first model learns every event exactly once."""
        return (configuration[BagOptions].greedify,)

    def models(self, configuration: Configuration) -> int:
        """Return the number of models."""
        return configuration[BagOptions].bag or 1

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel, which reads votes and summed scores, and sorts actions by probability."""
        import numpy as np

        from onlineauto.explorers.pmf_kernels import hold_floor
        from onlineauto.explorers.ranking_kernels import SUMS, VOTES, WORK, rank_by_probability
        from onlineauto.jit import entry_kernel, kernel

        zero, one, close = np.float32(0), np.float32(1), np.float32(1e-6)

        @kernel
        def count(votes: NDArray[np.float32], n: int) -> None:
            """Replace votes by shares."""
            total = 0.0
            for action in range(n):
                total += votes[action]
            all_votes = np.float32(total)
            if all_votes <= close:
                for action in range(n):
                    votes[action] = one if action == 0 else zero
                return
            share = one / all_votes
            for action in range(n):
                votes[action] *= share

        @entry_kernel
        def bag(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            n, votes = len(score), scratch[VOTES]
            count(votes, n)
            hold_floor(votes, n, exploration.epsilon, True, scratch[WORK])
            rank_by_probability(votes, scratch[SUMS], n, order)
            for i in range(n):
                score[i] = votes[order[i]]

        return bag
