"""Bagging: several models vote, each having learnt from its own random sample of the events.

Each model learns every event as often as a Poisson distribution with the mean 1 says, which is drawing events
with replacement, online. Where the models agree there is little to find out; where they do not, each one's
choice is tried in its turn. Under ``--automl`` every live config has its own bag; all of them learn an event
equally often, so that they differ in what they are and not in their luck.

Source: Oza & Russell, *Online Bagging and Boosting*, 2001; Bietti, Agarwal & Langford, *A Contextual Bandit
Bake-off*, 2021, algorithm 4; VW's ``--bag`` and ``--greedify``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration

__all__ = ["Bag", "BagOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BagOptions:
    """Bagging."""

    title: ClassVar[str] = "Exploration: bagging"

    bag: int | None = option(
        None,
        "Let N models vote, each of which learns every event a random number of times.",
        keep=True,
        minimum=1,
        maximum=2**16,
        metavar="N",
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    greedify: bool = option(
        False, "Let the first of these models learn every event once.", keep=True, needs=("bag",)
    )


class Bag(Explorer):
    """Models that vote."""

    name = "bag"
    flags = ("bag",)
    uses = ("epsilon", "first_only")

    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """How many models there are, and whether the first one is as good as without the others."""
        del exact
        options = configuration[BagOptions]
        return {"policies": options.bag or 1, "greedify": options.greedify}

    def parts(self, configuration: Configuration, *, estimates: bool, exact: bool) -> int:
        """As many models, each with its own estimates."""
        return (configuration[BagOptions].bag or 1) * super().parts(
            configuration, estimates=estimates, exact=exact
        )
