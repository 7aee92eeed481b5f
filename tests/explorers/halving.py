"""An explorer from outside the package: each action half as likely as the one before it, or another part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from onlineauto.explorers.explorer import Explorer
from onlineauto.explorers.ranking_kernels import Exploration
from onlineauto.options import Configuration, option


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvingOptions:
    """Halving."""

    title: ClassVar[str] = "Exploration: halving"

    halving: bool = option(
        False, "Halve the probability from action to action, the best first.", vw=False, keep=True
    )
    share: float = option(
        0.5, "Another part than half.", vw=False, keep=True, above=0, below=1, needs=("halving",)
    )


class Halving(Explorer):
    """An explorer whose probabilities depend on the rank alone."""

    name = "halving"
    flags = ("halving",)
    options = (HalvingOptions,)

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return the part."""
        return (configuration[HalvingOptions].share,)

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel."""
        import numpy as np

        from onlineauto.explorers.pmf_kernels import hold_floor
        from onlineauto.explorers.ranking_kernels import WORK
        from onlineauto.jit import entry_kernel

        one, zero = np.float32(1), np.float32(0)

        @entry_kernel
        def halving(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            part, total = one, zero
            for i in range(len(score)):
                score[i] = part
                total += part
                part *= np.float32(exploration.numbers[0])
            for i in range(len(score)):
                score[i] /= total
            hold_floor(score, len(score), exploration.epsilon, True, scratch[WORK])

        return halving
