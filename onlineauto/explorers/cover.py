"""Online cover: policies that all are good, and each of which likes what those before it do not choose.

The first policy learns as ``--cb_type`` has it. Every other learns from doubly robust costs of all actions,
less a bonus for those that the policies before it leave aside; then each policy's choice gets the same share
of probability, and every action a least one, which falls as events are learnt unless ``--epsilon`` fixes it.

VW mixes up actions and ranks where it adds the policies' scores, by which it lists actions of the same
probability; so does ``--vw_exact``.

Source: Agarwal, Hsu, Kale, Langford, Li & Schapire, *Taming the Monster: A Fast and Simple Algorithm for
Contextual Bandits*, 2014, section 3.3; VW's ``--cover``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration

__all__ = ["Cover", "CoverOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverOptions:
    """Online cover."""

    title: ClassVar[str] = "Exploration: online cover"

    cover: int | None = option(
        None,
        "Choose among N policies, each of which learns to choose well and otherwise than those before it.",
        keep=True,
        minimum=1,
        maximum=2**15,
        metavar="N",
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    psi: float = option(
        1.0,
        "How much --cover pays for choosing otherwise.",
        keep=True,
        override=True,
        metavar="PSI",
        needs=("cover",),
    )
    nounif: bool = option(
        False,
        "Give no probability to actions that no policy chooses.",
        keep=True,
        override=True,
        needs=("cover",),
    )


class Cover(Explorer):
    """Policies that differ."""

    name = "cover"
    flags = ("cover",)
    uses = ("epsilon", "first_only")
    epsilon = 1.0
    cb_types = ("mtr", "ips", "dr")
    predicts_apart = False

    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """How many policies there are, and how they differ."""
        del exact
        options = configuration[CoverOptions]
        return {
            "policies": options.cover or 1,
            "psi": options.psi,
            "nounif": options.nounif,
            "decays": "epsilon" not in configuration.supplied,
        }

    def parts(self, configuration: Configuration, *, estimates: bool, exact: bool) -> int:
        """A model for each policy, and one that estimates costs; VW has room for twice as many."""
        del estimates
        times = 2 if exact and configuration.get("cb_type") != "ips" else 1
        return times * ((configuration[CoverOptions].cover or 1) + 1)
