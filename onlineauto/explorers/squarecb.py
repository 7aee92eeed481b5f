"""SquareCB: an action's probability falls with the inverse of how much worse it looks than the best.

With K actions, an action that looks worse by Δ has the probability 1 / (K + γ Δ), and the best one the rest;
γ grows with the events learnt, so that exploring fades out. The costs are learnt as they are, by regression,
without importance weights.

With ``--elim`` only actions that may still be the best are explored: those whose lowest plausible cost is not
above the highest plausible cost of another.

Where VW errs, ``--vw_exact`` does too: its last action keeps the importance weight; with ``--elim`` it takes
the number of remaining actions for 1, which before the first event gives "probabilities" of -1 and 1, and
ignores ``--epsilon``. Otherwise none of this is so.

Source: Foster & Rakhlin, *Beyond UCB: Optimal and Efficient Contextual Bandits with Regression Oracles*,
2020, algorithm 1; VW's ``--squarecb``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.cost_range import range_parameters
from onlineauto.explorers.explorer import Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration

__all__ = ["Squarecb", "SquarecbOptions"]

_MELLOWNESS = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class SquarecbOptions:
    """SquareCB."""

    title: ClassVar[str] = "Exploration: SquareCB"

    squarecb: bool = option(
        False,
        "Choose an action with a probability that falls with the inverse of how much worse than the best it "
        "looks.",
        keep=True,
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    gamma_scale: float = option(
        10.0,
        "How much --squarecb prefers what looks better, after the first event.",
        keep=True,
        override=True,
        minimum=0,
        needs=("squarecb",),
    )
    gamma_exponent: float = option(
        0.5,
        "Exponent by which that grows with the events learnt.",
        keep=True,
        override=True,
        needs=("squarecb",),
    )
    elim: bool = option(
        False, "Explore only actions that may still be the best.", keep=True, needs=("squarecb",)
    )


class Squarecb(Explorer):
    """Probabilities by the inverse of how much worse an action looks."""

    name = "squarecb"
    flags = ("squarecb",)
    cb_types = ("mtr",)

    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """How greedy it is, and whether actions are eliminated."""
        options = configuration[SquarecbOptions]
        return {
            "gamma_scale": options.gamma_scale,
            "gamma_exponent": options.gamma_exponent,
            "elim": options.elim,
            **range_parameters(configuration, mellowness=_MELLOWNESS, exact=exact),
        }

    def bounds(self, configuration: Configuration) -> bool:
        """Only to eliminate actions."""
        return configuration[SquarecbOptions].elim
