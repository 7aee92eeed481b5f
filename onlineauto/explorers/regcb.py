"""RegCB: explore the actions that may still be the best, given how sure their costs are.

The range in which the cost of an action plausibly lies is narrow where much has been learnt
(`onlineauto.explorers.cost_range`). Eliminating (``--regcb``), the actions whose range begins below the end
of every other's are chosen alike; optimistic (``--regcbopt``), the one whose range begins lowest is.

The costs are learnt as they are, by regression, without importance weights. Where VW errs, ``--vw_exact``
does too: its last action keeps the importance weight; each of several actions that begin equally low has the
"probability" 1; interactions of wildcards are left out of the plausible costs. Otherwise none of this is so.

Source: Foster, Agarwal, Dudík, Luo & Schapire, *Practical Contextual Bandits with Regression Oracles*, 2018,
algorithms 1 and 2; VW's ``--regcb`` and ``--regcbopt``.
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

__all__ = ["Regcb", "RegcbOptions"]

_MELLOWNESS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RegcbOptions:
    """RegCB."""

    title: ClassVar[str] = "Exploration: RegCB"

    regcb: bool = option(
        False,
        "Choose alike among all actions that may still be the best.",
        keep=True,
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    regcbopt: bool = option(
        False,
        "Choose the action with the lowest cost that is plausible.",
        keep=True,
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )


class Regcb(Explorer):
    """The actions that may still be the best."""

    name = "regcb"
    flags = ("regcb", "regcbopt")
    uses = ("first_only",)
    cb_types = ("mtr",)

    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """Whether it is optimistic, and how wide a range is."""
        return {
            "optimistic": configuration[RegcbOptions].regcbopt,
            **range_parameters(configuration, mellowness=_MELLOWNESS, exact=exact),
        }

    def bounds(self, configuration: Configuration) -> bool:
        """Always."""
        del configuration
        return True
