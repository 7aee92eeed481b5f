"""``Observations``: the configs of trials and their latest losses, for searchers that fit a model."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlineauto.tune.plain import PlainState
from onlineauto.tune.searchers.outcome import INFEASIBLE
from onlineauto.tune.spaces import Config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CUT = 2.0
"""Losses are cut at the median plus this many times the distance from the least loss to the median."""
_ENOUGH = 25


def compared_level(levels: Sequence[int]) -> int:
    """Return the highest resource that 25 trials, or all of them, have reached, from the resource of each."""
    return sorted(levels)[max(len(levels) - _ENOUGH, 0)]


class Observations(PlainState):
    """The configs of trials in the order in which they began, each with its loss at its highest resource."""

    STATE: ClassVar = {"configs": list[Config], "levels": list[int], "losses": list[float]}

    def __init__(self) -> None:
        self.configs: list[Config] = []
        self.levels: list[int] = []
        self.losses: list[float] = []
        self.rows: dict[tuple[Any, ...], int] = {}

    @property
    def count(self) -> int:
        """Number of trials with a loss."""
        return len(self.levels) - self.levels.count(0)

    def begin(self, config: Config) -> None:
        """Add a trial."""
        self.rows[tuple(config.items())] = len(self.configs)
        self.configs.append(config)
        self.levels.append(0)
        self.losses.append(0.0)

    def replace(self, before: Config, config: Config) -> None:
        """Change the config of a trial; no other trial may have the config that it had before."""
        row = self.rows.pop(tuple(before.items()))
        self.configs[row] = config
        self.rows[tuple(config.items())] = max(row, self.rows.get(tuple(config.items()), row))

    def result(self, config: Config, resource: int, loss: float) -> int:
        """Store a loss, and return the row of the trial."""
        row = self.rows[tuple(config.items())]
        if resource >= self.levels[row]:
            self.levels[row], self.losses[row] = resource, loss
        return row

    def order(self, rows: list[int]) -> list[int]:
        """Return the rows of trials with a loss, the best first.

        Losses are compared at the highest resource that 25 trials, or all of them, have reached. Trials with
        less resource are last, in decreasing order of resource, because a scheduler has stopped them.
        """
        compared = compared_level([self.levels[row] for row in rows]) if rows else 0
        return sorted(rows, key=lambda row: (-min(self.levels[row], compared), self.losses[row]))

    def values(self, rows: list[int]) -> np.ndarray:
        """Return the losses of trials for a model: float64[n], mean 0 and deviation 1, lower is better.

        Losses far above the median are cut: a model of them would be blind to differences between good
        configs. If resources differ, or a loss is infinite or that of an infeasible trial, normal scores of
        the ranks stand for the losses.
        """
        losses = np.array([self.losses[row] for row in rows])
        if len({self.levels[row] for row in rows}) > 1 or not (np.abs(losses) < INFEASIBLE).all():
            rank = {row: index for index, row in enumerate(self.order(rows))}
            return np.array([NormalDist().inv_cdf((rank[row] + 0.5) / len(rows)) for row in rows])
        middle = float(np.median(losses))
        losses = np.minimum(losses, middle + _CUT * (middle - losses.min()))
        return np.asarray((losses - losses.mean()) / max(float(losses.std()), 1e-300))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        super().load_state_dict(state)
        self.rows = {tuple(config.items()): row for row, config in enumerate(self.configs)}
