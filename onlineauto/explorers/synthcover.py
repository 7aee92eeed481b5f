"""Synthetic cover: probability is poured over the actions, a hundredth at a time, each onto the best one.

Whatever an action gets makes its cost look higher by a bit, until another looks better: the costs, clipped to
those seen so far, are filled up to a common level. No model but the one is needed, unlike ``--cover``.

In VW the cost that is about to be learnt widens the range first, and so is part of the prediction;
``--vw_exact`` does that too, otherwise the prediction is made before.

Source: VW's ``--synthcover``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration

__all__ = ["Synthcover", "SynthcoverOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthcoverOptions:
    """Synthetic cover."""

    title: ClassVar[str] = "Exploration: synthetic cover"

    synthcover: bool = option(
        False,
        "Pour probability over the actions, each bit onto the best one, which makes it look worse.",
        keep=True,
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    synthcoverpsi: float = option(
        0.1,
        "How much worse an action would look by all of the probability.",
        keep=True,
        override=True,
        above=0,
        metavar="PSI",
        needs=("synthcover",),
    )
    synthcoversize: int = option(
        100,
        "Into how many bits the probability is divided.",
        keep=True,
        minimum=1,
        maximum=2**32 - 1,
        metavar="N",
        needs=("synthcover",),
    )


class Synthcover(Explorer):
    """Probability poured onto the best, bit by bit."""

    name = "synthcover"
    flags = ("synthcover",)

    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """How much is poured at a time, and what it costs."""
        del exact
        options = configuration[SynthcoverOptions]
        return {"psi": options.synthcoverpsi, "size": options.synthcoversize}

    def announced(self, configuration: Configuration) -> tuple[str, ...]:
        """Its options."""
        options, epsilon = configuration[SynthcoverOptions], float(str(configuration.get("epsilon")))
        lines = ["Using synthcover for CB exploration", f"synthcoversize = {options.synthcoversize}"]
        if "epsilon" in configuration.supplied and epsilon > 0:
            lines.append(f"epsilon = {epsilon:g}")
        return (*lines, f"synthcoverpsi = {options.synthcoverpsi:g}")
