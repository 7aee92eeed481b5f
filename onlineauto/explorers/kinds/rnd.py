"""Random network distillation: what was seldom learnt may be better than it looks.

Beside the model there are N members, each of which makes a random guess for every action, and learns it,
and a little noise, for the actions that are logged. As long as a member has not learnt much of what an
action is made of, it is far off its guess, and so the error says how little is known of the action: it
approximates the bonus of LinUCB. Probabilities are those of softmax, of costs less a part of the bonus, by
the largest bonus.

Guesses are drawn from the hash of the feature's name, and members only learn what was logged. VW draws them
from the number of a weight, by a generator whose numbers for near ones are alike, also those of its members;
and with another ``--cb_type`` than mtr it teaches the members that actions not logged cost nothing. So
exact mode refuses it.

Source: Burda, Edwards, Storkey & Klimov, *Exploration by Random Network Distillation*, 2019; VW's ``--rnd``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.explorers._kernels import Exploration
    from onlineauto.options import Configuration

__all__ = ["Rnd", "RndOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RndOptions:
    """Random network distillation."""

    title: ClassVar[str] = "Exploration: random network distillation"

    rnd: int | None = option(
        None,
        "Prefer actions of which little is known: N members learn random guesses, and are still wrong there.",
        keep=True,
        minimum=1,
        maximum=2**15,
        metavar="N",
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    rnd_alpha: float = option(
        0.1,
        "Noise in what the members learn: with more of it, --rnd explores known actions for longer.",
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
    """Softmax of costs less a bonus for what is not known."""

    name = "rnd"
    flags = ("rnd",)
    options = (RndOptions,)
    ensemble = "rnd"

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return the noise of what the members learn, and the variance of what they guess."""
        options = configuration[RndOptions]
        return options.rnd_alpha, options.rnd_invlambda

    def models(self, configuration: Configuration) -> int:
        """Return how many models there are, that of the costs included."""
        return 1 + (configuration[RndOptions].rnd or 1)

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel; the room has a bonus for each action: how little is known of it."""
        import numpy as np

        from onlineauto.explorers.explore_kernels import BONUS, WORK
        from onlineauto.explorers.pmf.floor_kernels import hold_floor
        from onlineauto.explorers.pmf.softmax_kernels import softmax
        from onlineauto.jit import entry_kernel

        one, euler, least = np.float32(1), np.float32(0.57721566490153286), np.float32(1e-3)

        @entry_kernel
        def rnd(
            at: Exploration, order: NDArray[np.int32], score: NDArray[np.float32], room: NDArray[np.float32]
        ) -> None:
            n, bonus, most = len(score), room[BONUS], least
            for action in range(n):
                most = max(most, bonus[action])
            for i in range(n):
                score[i] -= euler * (bonus[order[i]] - most)
            softmax(score, n, one / most)
            hold_floor(score, n, at.epsilon, True, room[WORK])

        return rnd
