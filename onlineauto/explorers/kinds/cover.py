"""Online cover: several good policies, each with a bonus for actions that earlier policies do not choose.

The first policy learns as ``--cb_type`` says. Every other policy learns from doubly robust costs of all
actions, minus a bonus for actions that the policies before it do not choose. Each policy's choice gets the
same share of probability. Every action gets a minimum probability, which falls as events are learnt unless
``--epsilon`` fixes it.

Source: Agarwal, Hsu, Kale, Langford, Li & Schapire, *Taming the Monster: A Fast and Simple Algorithm for
Contextual Bandits*, 2014, section 3.3; VW's ``--cover``.
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

    from onlineauto.explorers.quirks import ExploringQuirks
    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.options import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverOptions:
    """Options of online cover."""

    title: ClassVar[str] = "Exploration: online cover"

    cover: int | None = option(
        None,
        "Choose among N policies, each of which learns to choose well and differently from those before it.",
        keep=True,
        minimum=1,
        maximum=2**15,
        metavar="N",
        needs=EXPLORING,
    )
    psi: float = option(
        1.0,
        "How much --cover rewards policies for choosing differently.",
        keep=True,
        override=True,
        metavar="PSI",
        needs=("cover",),
    )
    nounif: bool = option(
        False,
        "Give no probability to actions that no policy chooses.",
        keep=True,
        override=True,
        needs=("cover",),
    )


class Cover(Explorer):
    """Explorer by policies that differ."""

    name = "cover"
    flags = ("cover",)
    options = (CoverOptions,)
    policy_kind = "cover"
    uses = ("epsilon", "first_only")
    epsilon = 1.0
    cb_types = ("mtr", "ips", "dr")
    predicts_apart = False

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return ψ, whether the minimum probability falls, and whether unchosen actions get none."""
        options = configuration[CoverOptions]
        return options.psi, "epsilon" not in configuration.supplied, options.nounif

    def models(self, configuration: Configuration) -> int:
        """Return the number of policies."""
        return configuration[CoverOptions].cover or 1

    def parts(self, configuration: Configuration, *, estimates: bool, quirks: ExploringQuirks) -> int:
        """Return a model for each policy, and one that estimates costs."""
        del estimates
        times = 2 if quirks.twice_the_policies and configuration.get("cb_type") != "ips" else 1
        return times * (self.models(configuration) + 1)

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel, which reads shares and summed scores, and sorts actions by probability."""
        import numpy as np

        from onlineauto.explorers.pmf_kernels import falling_floor, hold_floor
        from onlineauto.explorers.ranking_kernels import SUMS, VOTES, WORK, rank_by_probability
        from onlineauto.jit import entry_kernel

        @entry_kernel
        def cover(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            n, votes = len(score), scratch[VOTES]
            least = falling_floor(exploration, bool(exploration.numbers[1] > 0.0), n)
            hold_floor(votes, n, least * np.float32(n), not exploration.numbers[2] > 0.0, scratch[WORK])
            rank_by_probability(votes, scratch[SUMS], n, order)
            for i in range(n):
                score[i] = votes[order[i]]

        return cover
