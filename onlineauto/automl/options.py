"""The options of the search for a better model: ``--automl`` and those that belong to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.priorities import PRIORITIES
from onlineauto.options import TUNABLE, option

_NEEDS = ("automl",)
_ALSO = ("automl", "epsilon_decay")

OF_DECAY = ("cost_range", "tol_x", "reward_as_cost")
"""Options of the search that ``--epsilon_decay`` uses too."""

ELEMENTS = ("interactions", "namespaces")
"""Values of ``--search`` besides the names of tunable options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomlOptions:
    """Options of the search."""

    title: ClassVar[str] = "AutoML"

    automl: int | None = option(
        None,
        "Search for better interactions with N live configs, the champion one of them.",
        keep=True,
        minimum=1,
        maximum=128,
        metavar="N",
        const=4,
        keyword="live_configs",
    )
    oracle_type: str | None = option(
        None,
        "How configs are proposed: what seems to gain most (stepwise, native mode's default); or one "
        "interaction more or less than all (one_diff; rand: shuffled), none (one_diff_inclusion) or all "
        "pairs (qbase_cubic).",
        keep=True,
        choices=ORACLES,
        needs=_NEEDS,
    )
    search: str = option(
        "interactions,learning_rate",
        f"What --oracle_type stepwise searches, separated by commas: {', '.join(ELEMENTS)}, {TUNABLE}. "
        "With namespaces: which to use by themselves, uncrossed.",
        vw=False,
        keep=True,
        metavar="NAMES",
        listed=True,
        needs=_NEEDS,
    )
    interaction_type: str = option(
        "quadratic",
        "Interactions to choose from: of two namespaces, of three, or both.",
        keep=True,
        choices=("quadratic", "cubic", "both"),
        needs=_NEEDS,
    )
    default_lease: int | None = option(
        None,
        "First lease of a challenger, in learnt events; whenever its lease is over, it is doubled. Not "
        "supplied: 2000, or 4000 with --vw_exact.",
        keep=True,
        override=True,
        minimum=0,
        maximum=2**62,
        metavar="EVENTS",
        needs=_NEEDS,
        aliases=("lease",),
    )
    priority_type: str = option(
        "none",
        "Which waiting config is next: the last one proposed (none), or the one whose excluded interactions "
        "are of the rarest namespaces (favor_popular_namespaces).",
        keep=True,
        override=True,
        choices=PRIORITIES,
        needs=_NEEDS,
        synonyms=(("lease_exclusion", "favor_popular_namespaces"),),
    )
    priority_challengers: int = option(
        -1,
        "How many challengers stay live when their lease is over: those with the most evidence with "
        "--oracle_type stepwise, else the first ones. -1 is half of them.",
        keep=True,
        override=True,
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
    champion_test: str | None = option(
        None,
        "What makes a challenger the champion: weighted rewards (reward); the loss of the cost models on "
        "logged actions, which needs fewer events (loss); or either of them, unless rewards speak against "
        "it (both, the default).",
        vw=False,
        keep=True,
        choices=("reward", "loss", "both"),
        needs=_NEEDS,
    )
    predict_with: str | None = option(
        None,
        "Predict with the champion, a mix of all live configs (single lines), or the ensemble (the "
        "default where it is possible) once it leads or is proved better than the champion or the mix.",
        vw=False,
        keep=True,
        override=True,
        choices=("champion", "mix", "ensemble"),
        needs=_NEEDS,
    )
    member_budget: float = option(
        100.0,
        "Largest price of all members of --members that work at once, as a multiple of the "
        "champion's. Members with the least worth for their price rest; members without measurable worth "
        "rest for longer and longer pauses.",
        vw=False,
        keep=True,
        override=True,
        above=0,
        metavar="CONFIGS",
        needs=_NEEDS,
    )
    cost_range: str | None = option(
        None,
        "Lowest and highest cost. In the test, a cost outside counts as the nearer of the two; in learning "
        "it counts as it is. Not supplied: the lowest and highest so far.",
        vw=False,
        keep=True,
        metavar="LOW,HIGH",
        listed=True,
        needs=_ALSO,
    )
    min_prob: float | None = option(
        None,
        "Least probability that the logging policy gives to any action. 0 if that is unknown; the test then "
        "takes several times as many events. Not supplied: the least that was logged so far.",
        vw=False,
        keep=True,
        minimum=0,
        maximum=1,
        metavar="P",
        needs=_NEEDS,
    )
    on_drift: str = option(
        "reopen",
        "What to do when the champion's loss rises: nothing (ignore); try all configs again "
        "(reopen); do that with the champion's weights in all challengers (reset_challengers), or with no "
        "weights (reset_model).",
        vw=False,
        keep=True,
        override=True,
        choices=("ignore", "reopen", "reset_challengers", "reset_model"),
        needs=_NEEDS,
    )
    keep_configs: bool = option(
        False,
        "At a change of champion, keep all configs under consideration, each with a first lease; also with "
        "oracles that drop them, which are all but stepwise.",
        vw=False,
        keep=True,
        needs=_NEEDS,
    )
    waiting_overtakes: bool = option(
        False,
        "At a review, make a waiting config the champion if the lower bound on its reward is above the "
        "champion's upper bound. The bounds are of different events, so it is no valid test.",
        vw=False,
        keep=True,
        needs=_NEEDS,
    )
    feature_cost: float = option(
        1e-4,
        "What a challenger with twice the champion's features must gain on each event on which the two "
        "differ, as a part of the range of rewards or losses.",
        vw=False,
        keep=True,
        override=True,
        minimum=0,
        below=0.25,
        metavar="GAIN",
        needs=_NEEDS,
    )
    automl_significance_level: float = option(
        0.05,
        "Probability of a wrong change of champion, shared among all tests (with --estimator robust: among "
        "the live configs).",
        keep=True,
        override=True,
        above=0,
        below=2,
        because="each of two bounds has half of it",
        needs=_NEEDS,
    )
    fixed_significance_level: bool = option(
        False,
        "Give each live config the whole significance level. For --estimator robust.",
        keep=True,
        needs=_NEEDS,
    )
    tol_x: float = option(
        1e-6,
        "Precision of the bounds on rewards. For --estimator robust.",
        keep=True,
        above=0,
        metavar="TOLERANCE",
        needs=_ALSO,
    )
    reward_as_cost: bool = option(
        False,
        "In the search, let the reward be the cost itself, and not the negated cost.",
        keep=True,
        needs=_ALSO,
    )
    debug_reversed_learn: bool = option(
        False,
        "Let the challengers learn in reversed order, to test that it makes no difference.",
        needs=_NEEDS,
        keep=True,
    )
    verbose_metrics: bool = option(
        False, "Add the interactions of every live config to --extra_metrics.", needs=_NEEDS
    )

    def searched(self) -> frozenset[str]:
        """Return the names of everything that is searched."""
        return frozenset(filter(None, (name.strip() for name in self.search.split(","))))

    def rewards(self) -> tuple[float, float]:
        """Return the lowest and the highest expected reward; (inf, -inf) if not supplied."""
        if self.cost_range is None:
            return math.inf, -math.inf
        low, high = map(float, self.cost_range.split(","))
        if not -math.inf < low < high < math.inf:
            raise ValueError(self.cost_range)
        return (low, high) if self.reward_as_cost else (-high, -low)

    def tests_rewards(self) -> bool:
        """Return whether rewards may decide a change of champion."""
        return self.champion_test != "loss"

    def tests_losses(self) -> bool:
        """Return whether losses may decide a change of champion."""
        return self.champion_test != "reward"

    def is_paired(self, default: bool) -> bool:
        """Return whether the paired test decides; `default` applies without ``--estimator``."""
        return default if self.estimator is None else self.estimator == "paired"
