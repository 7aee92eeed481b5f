"""Make the record of exploration that kernels read from the options."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.explorers.cost_range import CostRangeOptions
from onlineauto.explorers.options import ExplorerOptions, choose_explorer
from onlineauto.explorers.quirks import NO_EXPLORING_QUIRKS
from onlineauto.explorers.ranking_kernels import (
    ALONE,
    BAG,
    COVER,
    EPSILON_DECAY,
    RND,
    ROWS,
    Errors,
    Exploration,
)
from onlineauto.explorers.sampling import SampleOptions
from onlineauto.jit import Sealed
from onlineauto.state.schema import add, counts, declare, field, latest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from onlineauto.explorers.explorer import Explorer
    from onlineauto.explorers.quirks import ExploringQuirks
    from onlineauto.options import Configuration

_POLICY_KINDS = {"": ALONE, "bag": BAG, "cover": COVER, "rnd": RND, "epsilon_decay": EPSILON_DECAY}
"""Codes of how several models learn, by the name that explorers declare."""


def make_exploration(
    configuration: Configuration,
    *,
    quirks: ExploringQuirks = NO_EXPLORING_QUIRKS,
    seed: int = 0,
    active: bool = True,
    samples: bool = False,
) -> Exploration:
    """Return the `Exploration` of the options; `samples` draws an action even without ``--cb_sample``."""
    options, explorer = configuration[ExplorerOptions], choose_explorer(configuration)
    costs, models = configuration[CostRangeOptions], explorer.models(configuration)
    low, high = (0.0, 1.0) if quirks.costs_in_unit else (np.nan, np.nan)
    floor = 0.0 if quirks.no_own_floor and explorer.name == "synthcover" else explorer.epsilon
    return Exploration(
        policy_kind=_POLICY_KINDS[explorer.policy_kind],
        direct=explorer.direct,
        active=active,
        bounds=explorer.bounds(configuration),
        regresses=explorer.cb_types == ("mtr",),
        samples=active and (samples or configuration[SampleOptions].cb_sample),
        sees_costs=explorer.sees_costs,
        sees_errors=explorer.sees_errors,
        quirks=quirks,
        epsilon=np.float32(options.epsilon if "epsilon" in configuration.supplied else floor),
        first_only=options.first_only,
        numbers=np.array(explorer.numbers(configuration), np.float64),
        mellowness=np.float32(explorer.mellowness if costs.mellowness is None else costs.mellowness),
        low=np.float32(low if costs.cb_min_cost is None else costs.cb_min_cost),
        high=np.float32(high if costs.cb_max_cost is None else costs.cb_max_cost),
        policies=models,
        counts=np.zeros(2, np.int64),
        costs=np.zeros(2, np.float32),
        errors=np.zeros(len(Errors), np.float64),
        random=np.array([seed], np.uint64),
        times=np.zeros(models, np.int64),
        guesses=np.zeros(models, np.float32),
    )


def merge_errors(everyone: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the sums `Exploration.errors` over the events of several models."""
    sums = np.array(everyone)
    merged: NDArray[np.float64] = sums.sum(axis=0)
    events, mean = sums[:, Errors.EVENTS], sums[:, Errors.MEAN]
    merged[Errors.MEAN] = events @ mean / max(merged[Errors.EVENTS], 1.0)
    merged[Errors.SQUARES] += events @ (mean - merged[Errors.MEAN]) ** 2
    return merged


def _merge_branch_errors(
    base: NDArray[np.float64], ends: Sequence[NDArray[np.float64]], context: Any
) -> NDArray[np.float64]:
    """Return the sums over all learnt events; recent events decay in each branch."""
    new, totals = add(base, ends, context), []
    for errors in (base, *ends):
        events, mean = errors[Errors.EVENTS], errors[Errors.MEAN]
        totals.append([events, events * mean, errors[Errors.SQUARES] + events * mean**2])
    sums = np.array(totals)
    events, costs, squares = sums[0] + (sums[1:] - sums[0]).sum(axis=0)
    new[Errors.EVENTS], new[Errors.MEAN] = events, costs / max(events, 1.0)
    new[Errors.SQUARES] = max(squares - events * new[Errors.MEAN] ** 2, 0.0)
    recent = [Errors.RECENT, Errors.RECENT_SQUARES]
    new[recent] = np.array([errors[recent] for errors in ends]).mean(axis=0)
    return new


def _merge_costs(
    base: NDArray[np.float32], ends: Sequence[NDArray[np.float32]], context: Any
) -> NDArray[np.float32]:
    """Return the range of the costs of all branches."""
    del base, context
    return np.array([min(costs[0] for costs in ends), max(costs[1] for costs in ends)], np.float32)


declare(
    Exploration,
    counts=field(2, read=counts(), merge=add, predicts=True),
    costs=field(2, merge=_merge_costs, predicts=True),
    errors=field(len(Errors), merge=_merge_branch_errors, predicts=True),
    random=field(1, merge=latest, predicts=True),
)
"""The arrays that last from event to event."""


@cache
def kernel_of(explorer: type[Explorer]) -> Callable[..., None]:
    """Return the kernel of an explorer; each call returns the same object."""
    return explorer.kernel()


def pmf_address(explorer: Explorer, exploration: Exploration) -> int:
    """Return the address, in this process, of an explorer's machine code; 0 if the loop needs none."""
    if not exploration.active or explorer.direct:
        return 0
    kernel: Any = kernel_of(type(explorer))
    actions = np.zeros(1, np.int32), np.zeros(1, np.float32), np.zeros((ROWS, 1), np.float32)
    return int(kernel.address(Sealed(exploration), *actions))
