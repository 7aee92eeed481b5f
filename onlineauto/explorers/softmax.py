"""Softmax: the better an action looks, the likelier it is.

An action's probability is proportional to ``exp(-λ cost)``: with λ = 0 all are alike, with a large λ the best
one is nearly sure.

Source: Luce, *Individual Choice Behavior*, 1959; VW's ``--softmax``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration

__all__ = ["Softmax", "SoftmaxOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxOptions:
    """Softmax."""

    title: ClassVar[str] = "Exploration: softmax"

    softmax: bool = option(
        False,
        "Choose an action with a probability proportional to exp(-lambda * cost).",
        keep=True,
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    lambda_: float = option(
        1.0,
        "How much --softmax prefers what looks better; a negative number counts as positive.",
        keep=True,
        override=True,
        needs=("softmax",),
    )


class Softmax(Explorer):
    """Probabilities proportional to exp(-λ cost)."""

    name = "softmax"
    flags = ("softmax",)

    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """How greedy it is."""
        del exact
        return {"lambda_": abs(configuration[SoftmaxOptions].lambda_)}
