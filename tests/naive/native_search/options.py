"""Options of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the command line that this program supports, with their defaults.

    It knows `--cb_explore_adf` and `--ccb_explore_adf` with `--cb_type mtr`, single lines, the default update
    rule, `--oracle_type stepwise` and `--estimator paired`. It assumes that all input is finite.
    """

    automl: int
    cb_explore_adf: bool = False
    ccb_explore_adf: bool = False
    default_lease: int = 2000
    search: str = "interactions,learning_rate"
    priority_challengers: int = -1
    champion_test: str = "both"
    predict_with: str = "mix"
    on_drift: str = "reopen"
    feature_cost: float = 1e-4
    automl_significance_level: float = 0.05
    cost_range: str | None = None
    min_prob: float | None = None
    loss_function: str = "squared"
    link: str = "identity"
    learning_rate: float = 0.5
    epsilon: float = 0.05
    first_only: bool = False
    keep_configs: bool = False
    waiting_overtakes: bool = False
    noconstant: bool = False
    bit_precision: int = 18
    max_crossed: int = 10_000_000

    @staticmethod
    def of(**given: Any) -> Options:
        """Return the options of a `Workspace`."""
        unknown = given.keys() - {field.name for field in fields(Options)}
        if unknown:
            raise ValueError(f"the reference implementation does not support {', '.join(sorted(unknown))}")
        return Options(**given)

    @property
    def single_lines(self) -> bool:
        """Return whether an event is a single line with a label, and not a choice among actions."""
        return not (self.cb_explore_adf or self.ccb_explore_adf)

    @property
    def searched(self) -> frozenset[str]:
        """Return the properties in which challengers may differ from the champion."""
        return frozenset(self.search.split(","))

    @property
    def n_that_stay(self) -> int:
        """Return the number of challengers that remain live when their lease ends."""
        if self.priority_challengers >= 0:
            return self.priority_challengers
        return min(self.automl // 2, max(self.automl - 2, 0))

    @property
    def by_reward(self) -> bool:
        """Return whether rewards may prove that a challenger is better."""
        return not self.single_lines and self.champion_test != "loss"

    @property
    def by_loss(self) -> bool:
        """Return whether losses may prove that a challenger is better."""
        return self.champion_test != "reward"

    @property
    def is_sparing(self) -> bool:
        """Return whether rewards are compared on one event in eight only."""
        return not self.single_lines and self.by_loss and self.predict_with == "champion"

    @property
    def mixes(self) -> bool:
        """Return whether the prediction is a mixture of all live configs."""
        return self.single_lines and self.predict_with == "mix"

    @property
    def rewards(self) -> tuple[float, float]:
        """Lowest and highest reward; (inf, -inf) if they are to be learnt."""
        if self.cost_range is None:
            return math.inf, -math.inf
        low, high = map(float, self.cost_range.split(","))
        return -high, -low
