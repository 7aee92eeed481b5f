"""Random network distillation: what was seldom learnt may be better than it looks.

Beside the model there are N members, each of which makes a random guess for every action, and learns it,
and a little noise, for the actions that are logged. As long as a member has not learnt much of what an
action is made of, it is far off its guess, and so the error says how little is known of the action: it
approximates the bonus of LinUCB. Probabilities are those of softmax, of costs less a part of the bonus, by
the largest bonus.

VW draws guesses from the number of a weight, by a generator whose numbers for near ones are alike, also those
of its members; and with another ``--cb_type`` than mtr it teaches the members that actions which were not
logged cost nothing. So does ``--vw_exact``. Otherwise guesses are drawn from the hash of the feature's name,
and members only learn what was logged.

Source: Burda, Edwards, Storkey & Klimov, *Exploration by Random Network Distillation*, 2019; VW's ``--rnd``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration

__all__ = ["Rnd", "RndOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RndOptions:
    """Random network distillation."""

    title: ClassVar[str] = "Exploration: random network distillation"

    rnd: int | None = option(
        None,
        "Prefer actions of which little is known: those whose random guesses N members have not learnt yet.",
        keep=True,
        minimum=1,
        maximum=2**15,
        metavar="N",
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    rnd_alpha: float = option(
        0.1,
        "Noise of what the members learn: the more, the longer --rnd explores what was learnt already.",
        keep=True,
        above=0,
        needs=("rnd",),
    )
    rnd_invlambda: float = option(
        0.1,
        "Variance of their guesses: the more, the more --rnd explores what is new.",
        keep=True,
        above=0,
        needs=("rnd",),
    )


class Rnd(Explorer):
    """Softmax of costs less a bonus for what is not known."""

    name = "rnd"
    flags = ("rnd",)

    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """How many models there are, that of the costs included, and how the members guess and learn."""
        del exact
        options = configuration[RndOptions]
        return {
            "policies": 1 + (options.rnd or 1),
            "noise": options.rnd_alpha,
            "variance": options.rnd_invlambda,
        }

    def parts(self, configuration: Configuration, *, estimates: bool, exact: bool) -> int:
        """As many models, each with its own estimates."""
        return (1 + (configuration[RndOptions].rnd or 1)) * super().parts(
            configuration, estimates=estimates, exact=exact
        )
