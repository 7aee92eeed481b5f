"""``Pacing``: holds the mean cost of a decision at a budget, by a price that is added to predicted costs.

The price λ has the unit reward per cost: an action of the cost c is ranked like one whose predicted reward is
lower by λ c. After each decision, λ follows the *overspending* o, by which the mean cost has exceeded the
budget, as a share of the budget: λ = λ₁ (μ + 10 o max(μ, 1)), at least 0, and μ rises by 0.03 o max(μ, 1).
μ is the integral of a dual ascent, and the term with 10 o damps it, so that no debt is left. λ₁ is the root
mean square of rewards over the mean difference between the dearest and the cheapest action.

A decision counts with the cost that was known when it was made. A reported cost replaces that. The state is a
function of the records of the log; there is no clock and no random number.
"""

from __future__ import annotations

from math import inf
from typing import Final

import msgspec

_DAMPING: Final = 10.0
_RATE: Final = 0.03
_HIGHEST: Final = 1000.0
"""Bound of the price, in multiples of λ₁."""
_FEW: Final = 100
"""Decisions within the budget that are assumed before the first one."""
_HORIZON: Final = 1000
"""Decisions over which overspending is a mean."""
_MOST_CREDIT: Final = 100.0
_MOST_DEBT: Final = 500.0
"""Bounds of what is saved up or owed, in budgets of a decision."""
_RECENT: Final = 200
"""Number of latest costs that a running mean weights most."""
_PRIOR: Final = 2.0
"""Number of reported costs of all actions that the mean cost of an action begins with."""
_MOST_ACTIONS: Final = 1024
_FAR: Final = 10.0
"""Multiple of the mean, or of the budget, beyond which a cost is absurd: a mean takes this bound instead."""
_FAR_AT_FIRST: Final = 1000.0
"""The same multiple of the budget for the first cost of a mean."""
LARGEST_COST: Final = 1e30


class RunningMean(msgspec.Struct, array_like=True):
    """A mean of numbers, of which the older ones count less."""

    count: int = 0
    mean: float = 0.0

    def add(self, value: float) -> None:
        """Add a number."""
        self.count += 1
        self.mean += (value - self.mean) / min(self.count, _RECENT)

    def bound(self, budget: float | None) -> float:
        """Return the bound beyond which the next number is absurd, infinity if nothing is known."""
        usual = max(self.mean, budget or 0.0)
        return (_FAR if self.count else _FAR_AT_FIRST) * usual or inf


class Pacing(msgspec.Struct):
    """The price, the spending, and the mean cost of each action.

    Examples
    --------
    >>> pacing = Pacing()
    >>> for _ in range(20):
    ...     pacing.pay(4.0)
    ...     pacing.follow(4.0, spread=3.0, budget=2.0)
    >>> pacing.mean_cost, round(pacing.price, 2), round(pacing.debt, 2)
    (4.0, 0.57, 20.0)
    """

    level: float = 0.0  # μ
    debt: float = 0.0  # What decisions have cost above the budget, in budgets.
    decisions: int = 0  # Decisions since the budget was set.
    spread: RunningMean = msgspec.field(default_factory=RunningMean)  # Of the dearest to the cheapest action.
    squares: RunningMean = msgspec.field(default_factory=RunningMean)  # Of rewards.
    recent: RunningMean = msgspec.field(default_factory=RunningMean)  # Of costs of decisions.
    spent: float = 0.0  # The sum of all costs, and the number of decisions in it.
    costed: int = 0
    over_budget: int = 0  # Decisions whose cheapest action costs more than the budget.
    reported: int = 0  # Costs that were reported, and those of no known decision.
    unmatched: int = 0
    clipped: int = 0  # Costs far beyond all others, of which the means took less.
    reports: RunningMean = msgspec.field(default_factory=RunningMean)  # Of the reported costs, by action.
    by_action: dict[str, RunningMean] = msgspec.field(default_factory=dict)

    @property
    def mean_cost(self) -> float:
        """The mean cost of a decision, over all."""
        return self.spent / self.costed if self.costed else 0.0

    @property
    def recent_cost(self) -> float:
        """The mean cost of a decision, in which the latest 200 count most."""
        return self.recent.mean

    @property
    def price(self) -> float:
        """The price in force, in rewards per unit of cost."""
        if not self.spread.mean > 0.0:
            return 0.0
        relative = self.level + _DAMPING * self._overspending * max(self.level, 1.0)
        scale = self.squares.mean**0.5 if self.squares.mean else 1.0
        return min(max(relative, 0.0), _HIGHEST) * scale / self.spread.mean

    @property
    def _overspending(self) -> float:
        return min(max(self.debt / min(self.decisions + _FEW, _HORIZON), -1.0), 1.0)

    def begin(self) -> None:
        """Begin to count, with another budget."""
        self.debt, self.decisions = 0.0, 0

    def mean_of(self, action: str, budget: float) -> float:
        """Return the mean of the reported costs of an action, shrunk to the mean of all actions.

        The mean of all actions is the budget before the first report.
        """
        overall = self.reports.mean if self.reports.count else budget
        known = self.by_action.get(action) or RunningMean()
        return (known.count * known.mean + _PRIOR * overall) / (known.count + _PRIOR)

    def pay(self, cost: float) -> None:
        """Add the cost of a decision to the spending."""
        self.spent, self.costed = self.spent + cost, self.costed + 1
        self.recent.add(cost)

    def follow(self, cost: float, *, spread: float, budget: float) -> None:
        """Adapt the price to the cost of a decision; `spread` is the range of the costs of its actions."""
        bound = self.spread.bound(budget)
        self.clipped += spread > bound
        self.spread.add(min(spread, bound))
        self.decisions += 1
        self._owe(cost / budget - 1.0)
        step = _RATE * self._overspending * max(self.level, 1.0)
        self.level = min(max(self.level + step, 0.0), _HIGHEST)

    def report(self, action: str, cost: float, assumed: float | None, *, budget: float | None) -> None:
        """Add the reported cost of a decision, in place of the cost that it was `assumed` to have.

        Without a budget, the price does not change.
        """
        self.reported += 1
        mean = self.by_action.pop(action, None) or RunningMean()
        bound = max(
            self.reports.bound(budget), mean.bound(budget) if mean.count else 0.0, _FAR * (assumed or 0.0)
        )
        self.clipped += cost > bound
        self.reports.add(min(cost, bound))
        mean.add(min(cost, bound))
        self.by_action[action] = mean  # the last one, so that the first one was reported longest ago
        if len(self.by_action) > _MOST_ACTIONS:
            del self.by_action[next(iter(self.by_action))]
        if assumed is None:
            self.pay(cost)
            return
        self.spent += cost - assumed
        self.recent.mean += (cost - assumed) / min(max(self.recent.count, 1), _RECENT)
        if budget is not None:
            self._owe((cost - assumed) / budget)

    def reward(self, value: float) -> None:
        """Add a reward, which sets the scale of the price."""
        self.squares.add(value * value)

    def _owe(self, debt: float) -> None:
        self.debt = min(max(self.debt + debt, -_MOST_CREDIT), _MOST_DEBT)
