"""The flags of the search for a better model: ``--automl`` and what goes with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.priorities import PRIORITIES
from onlineauto.options import option

__all__ = ["AutomlOptions"]

_NEEDS = ("automl",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomlOptions:
    """Search for interactions."""

    title: ClassVar[str] = "AutoML"

    automl: int | None = option(
        None,
        "Search for better interactions with N live configs, the champion one of them.",
        keep=True,
        minimum=1,
        maximum=128,
        metavar="N",
        bare=4,
    )
    oracle_type: str = option(
        "one_diff",
        "Who proposes configs: one interaction more or less than the champion's, from all (one_diff; rand: "
        "shuffled) or from none (one_diff_inclusion), over all pairs (qbase_cubic), families first (ladder).",
        keep=True,
        choices=tuple(ORACLES),
        needs=_NEEDS,
    )
    interaction_type: str = option(
        "quadratic",
        "Interactions to choose from: of two namespaces, of three, or both.",
        keep=True,
        choices=("quadratic", "cubic", "both"),
        needs=_NEEDS,
    )
    default_lease: int = option(
        4000,
        "Learnt events that a challenger is given first; each time they are over it gets twice as many.",
        keep=True,
        minimum=0,
        maximum=2**62,
        metavar="EVENTS",
        needs=_NEEDS,
        aliases=("lease",),
    )
    priority_type: str = option(
        "none",
        "Which inactive config is next: the last one proposed (none), or the one whose excluded interactions "
        "are of the rarest namespaces (favor_popular_namespaces).",
        keep=True,
        choices=tuple(PRIORITIES),
        needs=_NEEDS,
        synonyms=(("lease_exclusion", "favor_popular_namespaces"),),
    )
    priority_challengers: int = option(
        -1,
        "Challengers that keep running when their lease is over; -1 is half of them, rounded down.",
        keep=True,
        minimum=-(2**31),
        maximum=2**31 - 1,
        needs=_NEEDS,
    )
    estimator: str | None = option(
        None,
        "What proves a challenger better or worse than the champion: their rewards compared event by event "
        "(paired), or a bound on the reward of each, as in VW (robust). Not supplied: paired, or robust with "
        "--vw_exact.",
        vw=False,
        keep=True,
        choices=("paired", "robust"),
        needs=_NEEDS,
    )
    min_prob: float = option(
        0.0,
        "Least probability that the logging policy gives to any action, which helps the paired test; 0 if it "
        "is not known.",
        vw=False,
        keep=True,
        minimum=0,
        maximum=1,
        metavar="P",
        needs=_NEEDS,
    )
    automl_significance_level: float = option(
        0.05,
        "Probability of a wrong change of champion, shared among the live configs.",
        keep=True,
        above=0,
        below=2,
        because="each of two bounds has half of it",
        needs=_NEEDS,
    )
    fixed_significance_level: bool = option(
        False, "Give each live config the whole significance level.", keep=True, needs=_NEEDS
    )
    tol_x: float = option(
        1e-6, "Precision of the bounds on rewards.", keep=True, above=0, metavar="TOLERANCE", needs=_NEEDS
    )
    opt_func: str = option(
        "bisect",
        "How the bounds are found: by bisection or by Brent's method.",
        keep=True,
        choices=("bisect", "brentq"),
        needs=_NEEDS,
    )
    reward_as_cost: bool = option(
        False,
        "Take the cost for the reward in the search, as it is, where it would be negated.",
        keep=True,
        needs=_NEEDS,
    )
    debug_reversed_learn: bool = option(
        False, "Let the challengers learn in reversed order; it must make no difference.", needs=_NEEDS
    )
    verbose_metrics: bool = option(
        False, "Add the interactions of every live config to --extra_metrics.", needs=_NEEDS
    )
    csv_trace: bool = option(
        False,
        "Write every example, bound and decision to CSV files in the working directory, named by the time.",
        needs=_NEEDS,
    )

    def is_paired(self, *, exact: bool) -> bool:
        """Whether the paired test decides."""
        return self.estimator == "paired" or (self.estimator is None and not exact)
