"""Random network distillation: prefer actions that were seldom learnt.

Besides the model of the costs there are N auxiliary models. Each has a random guess for every action, drawn
from the hashes of features, and learns this guess, with a little noise, for logged actions. Its error is
large for an action whose features it has seldom learnt. So the error measures how little is known of the
action, and approximates the bonus of LinUCB. The probabilities are those of softmax over cost minus a part
of the bonus, relative to the largest bonus.

VW's guesses are similar for near indices and for its auxiliary models. With another ``--cb_type`` than mtr,
VW also teaches the auxiliary models that actions which were not logged cost nothing. Therefore exact mode
rejects ``--rnd``.

Source: Burda, Edwards, Storkey & Klimov, *Exploration by Random Network Distillation*, 2019; VW's ``--rnd``.
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
class RndOptions:
    """Options of random network distillation."""

    title: ClassVar[str] = "Exploration: random network distillation"

    rnd: int | None = option(
        None,
        "Prefer actions of which little is known: N models learn random guesses, and are still wrong there.",
        keep=True,
        minimum=1,
        maximum=2**15,
        metavar="N",
        needs=EXPLORING,
    )
    rnd_alpha: float = option(
        0.1,
        "Noise in what these models learn: with more of it, --rnd explores known actions for longer.",
        keep=True,
        above=0,
        needs=("rnd",),
    )
    rnd_invlambda: float = option(
        0.1,
        "Variance of the guesses: with more of it, --rnd explores new actions more.",
        keep=True,
        above=0,
        needs=("rnd",),
    )


class Rnd(Explorer):
    """Explorer by softmax over costs minus a bonus for little-known actions."""

    name = "rnd"
    flags = ("rnd",)
    options = (RndOptions,)
    policy_kind = "rnd"

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return the noise of the auxiliary models' labels, and the variance of their guesses."""
        options = configuration[RndOptions]
        return options.rnd_alpha, options.rnd_invlambda

    def models(self, configuration: Configuration) -> int:
        """Return the number of models, including the model of the costs."""
        return 1 + (configuration[RndOptions].rnd or 1)

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel, which reads the bonus of each action: a measure of its uncertainty."""
        import numpy as np

        from onlineauto.explorers.pmf_kernels import hold_floor, softmax
        from onlineauto.explorers.ranking_kernels import BONUS, WORK
        from onlineauto.jit import entry_kernel

        one, euler, least = np.float32(1), np.float32(0.57721566490153286), np.float32(1e-3)

        @entry_kernel
        def rnd(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            n, bonus, most = len(score), scratch[BONUS], least
            for action in range(n):
                most = max(most, bonus[action])
            for i in range(n):
                score[i] -= euler * (bonus[order[i]] - most)
            softmax(score, n, one / most)
            hold_floor(score, n, exploration.epsilon, True, scratch[WORK])

        return rnd
