"""Epsilon decay: ε falls as the champion learns, and rises when a younger model replaces the champion.

After n events of its own, a model's ε is `initial_epsilon` · (n + 1)^(-1/3). All models learn every event.
The oldest model is the champion and explores; the others began later. A challenger that is proved to earn
more than the champion over the same events becomes the champion. Its ε is larger, so the explorer adapts to a
change of the stream. A challenger that has learnt too many events to be a fresh start is replaced by a new
model.

Exact mode reproduces VW's errors: a model that starts again keeps sums of its predecessor, and with
``--cb_type dr`` the wrong weights are cleared. Rewards are clipped to [0, 1], or in native mode to the range
that ``--cost_range`` gives.

Source: Auer, Cesa-Bianchi & Fischer, *Finite-time Analysis of the Multiarmed Bandit Problem*, 2002 (decaying
ε); VW's ``--epsilon_decay``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.errors import OptionError
from onlineauto.explorers.explorer import Explorer, explores
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.options import Configuration

_NEEDS = ("epsilon_decay",)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonDecayOptions:
    """Options of epsilon decay."""

    title: ClassVar[str] = "Exploration: decaying ε"

    epsilon_decay: bool = option(
        False,
        "Explore less as the champion learns more; a model that began later may take its place.",
        keep=True,
        needs=("cb_explore", "cb_explore_adf"),
    )
    model_count: int = option(
        3, "Number of models, with the champion.", keep=True, minimum=1, maximum=64, metavar="N", needs=_NEEDS
    )
    initial_epsilon: float = option(
        1.0,
        "ε of a model that has learnt nothing yet.",
        keep=True,
        minimum=0,
        maximum=1,
        needs=_NEEDS,
    )
    constant_epsilon: bool = option(
        False, "Explore with --epsilon, however much was learnt.", keep=True, needs=_NEEDS
    )
    challenger_epsilon: bool = option(
        False,
        "Judge a challenger by the reward of exploring with its own ε, and not by that of its best actions.",
        keep=True,
        needs=_NEEDS,
    )
    min_scope: int = option(
        100,
        "Least number of events that a challenger learns before it gives way to a new one.",
        keep=True,
        minimum=0,
        maximum=2**62,
        metavar="EVENTS",
        needs=_NEEDS,
    )
    shift_model_bounds: int = option(
        0,
        "Let challengers learn longer: the I-th of N up to n^((I+S) / (N+S)) events, if the champion has "
        "learnt n.",
        keep=True,
        minimum=0,
        maximum=2**31,
        metavar="S",
        needs=_NEEDS,
    )
    min_champ_examples: int = option(
        0,
        "Least number of events that a challenger learns before it becomes the champion.",
        keep=True,
        minimum=0,
        maximum=2**62,
        metavar="EVENTS",
        needs=_NEEDS,
    )
    epsilon_decay_significance_level: float = option(
        0.05,
        "Probability of a wrong change of champion, shared among the models.",
        keep=True,
        above=0,
        below=2,
        because="each of two bounds has half of it",
        needs=_NEEDS,
    )
    bonferroni_denominator: int = option(
        0,
        "Number of models that share --epsilon_decay_significance_level; 0 is --model_count.",
        keep=True,
        minimum=0,
        maximum=2**62,
        metavar="N",
        needs=_NEEDS,
    )


def models_of(configuration: Configuration) -> int:
    """Return the number of models; 0 without ``--epsilon_decay``."""
    options = configuration[EpsilonDecayOptions]
    return options.model_count if options.epsilon_decay and explores(configuration) else 0


class EpsilonDecay(Explorer):
    """ε-greedy explorer with an ε that falls, and with models that start again."""

    name = "epsilon_decay"
    flags = ("epsilon_decay",)
    options = (EpsilonDecayOptions,)
    policy_kind = "epsilon_decay"
    uses = ("epsilon", "first_only")
    epsilon = 0.05
    stack = ("cb_explore_adf_greedy",)

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return a placeholder for the champion's ε, which the loop writes at every event."""
        del configuration
        return (0.0,)

    def models(self, configuration: Configuration) -> int:
        """Return the number of models."""
        return configuration[EpsilonDecayOptions].model_count

    def check(self, configuration: Configuration) -> None:
        """Refuse ``--ccb_explore_adf``: models that start again do not support slots."""
        super().check(configuration)
        if "ccb_explore_adf" in configuration.supplied:
            raise OptionError("--epsilon_decay is not for --ccb_explore_adf; it is for --cb_explore_adf")

    def check_effects(self, configuration: Configuration) -> None:
        """Refuse ``--epsilon`` unless it is constant, since each model has its own ε."""
        constant = configuration[EpsilonDecayOptions].constant_epsilon
        if "epsilon" in configuration.supplied and not constant:
            raise OptionError(
                "--epsilon has no effect with --epsilon_decay without --constant_epsilon: leave it out"
            )

    @staticmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel."""
        import numpy as np

        from onlineauto.explorers.pmf_kernels import greedy
        from onlineauto.jit import entry_kernel

        @entry_kernel
        def epsilon_decay(
            exploration: Exploration,
            order: NDArray[np.int32],
            score: NDArray[np.float32],
            scratch: NDArray[np.float32],
        ) -> None:
            greedy(score, len(score), np.float32(exploration.numbers[0]), exploration.first_only)

        return epsilon_decay
