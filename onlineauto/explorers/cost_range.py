"""The range of plausible costs of an action, which narrows as more is learnt about the action.

The lowest plausible cost is the lowest prediction that adds at most
``mellowness · ln(K t) · (cb_max_cost - cb_min_cost)²`` of squared loss, for K actions after t events. The
highest plausible cost is defined likewise. Both are computed from the *sensitivity*: how far the prediction
would move if the action were learnt once more with a cost just outside the possible range. The more often an
action was learnt, the less its prediction moves.

Source: Foster et al., *Practical Contextual Bandits with Regression Oracles*, 2018, section 4; Krishnamurthy
et al., *Active Learning for Cost-Sensitive Classification*, 2017, section 7.1; VW's ``--mellowness``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.errors import OptionError
from onlineauto.options import option

if TYPE_CHECKING:
    from onlineauto.options import Configuration

_USERS = ("regcb", "regcbopt", "elim")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRangeOptions:
    """Options of plausible costs."""

    title: ClassVar[str] = "Exploration: plausible costs, for RegCB and --elim"

    mellowness: float | None = option(
        None,
        "How wide the range of plausible costs is. Not supplied: 0.1, or 0.001 with --squarecb --elim.",
        keep=True,
        override=True,
        minimum=0,
        needs=_USERS,
    )
    cb_min_cost: float | None = option(
        None,
        "Lowest possible cost. Not supplied: the lowest so far, or 0 if that is less; with --vw_exact 0.",
        keep=True,
        override=True,
        metavar="COST",
        needs=_USERS,
    )
    cb_max_cost: float | None = option(
        None,
        "Highest possible cost. Not supplied: the highest so far, or 0 if that is more; with --vw_exact 1.",
        keep=True,
        override=True,
        metavar="COST",
        needs=_USERS,
    )


def check_cost_range(configuration: Configuration) -> None:
    """Refuse a ``--cb_min_cost`` above ``--cb_max_cost``."""
    options = configuration[CostRangeOptions]
    low, high = options.cb_min_cost, options.cb_max_cost
    if low is not None and high is not None and low > high:
        raise OptionError(f"--cb_min_cost {low} is above --cb_max_cost {high}")
