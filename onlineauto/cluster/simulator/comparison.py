"""``compare``: compare policies on the same traces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.cluster.simulator.simulation import run
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.cluster.policies.policy import ClusterPolicy
    from onlineauto.cluster.policies.situation import Floats
    from onlineauto.cluster.simulator.simulation import Ran
    from onlineauto.cluster.simulator.workload import Traces

_NORMAL: Final = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The comparison of one policy with a reference policy."""

    name: str  # Name of the policy.
    # Mean over traces of the ratio of mean completion times, policy / reference, with its 95 % interval. A
    # ratio below 1 is faster.
    ratio: float
    low: float
    high: float
    mean: float  # Mean and 95 % quantile of the completion times of jobs, in slots.
    late: float
    finished: float  # The part of all jobs that ended; less than 1 if jobs starve.


def mean_ratio(times: Floats, others: Floats) -> tuple[float, float, float]:
    """Return the mean ratio of two runs over the same traces, and the 95 % interval of this mean.

    Parameters
    ----------
    times, others : float64[B]
        Mean completion times of each trace.
    """
    ratios = times / others
    mean = float(ratios.mean())
    if len(ratios) < 2:
        return mean, float("-inf"), float("inf")
    half = float(_quantile(len(ratios)) * ratios.std(ddof=1) / np.sqrt(len(ratios)))
    return mean, mean - half, mean + half


def _quantile(count: int) -> float:
    """Return the 97.5 % quantile of Student's distribution for a mean of `count` numbers, to 0.3 %.

    Source: Abramowitz and Stegun, *Handbook of mathematical functions*, 26.7.5; the last terms are fitted.
    """
    free = count - 1
    return _NORMAL + 2.372 / free + 2.823 / free**2 + 2.556 / free**3 + 1.59 / free**4 + 1.41 / free**5


def compare(
    policies: Mapping[str, ClusterPolicy],
    traces: Traces,
    *,
    by: str,
    watch: Callable[[str, float], object] | None = None,
) -> list[Compared]:
    """Run all traces under each policy; return the comparison of each with the policy named `by`.

    `watch` is called in each slot with the name of the policy and the part of the work that is done.

    Raises
    ------
    OptionError
        No policy is named `by`.

    Examples
    --------
    >>> from onlineauto.cluster import Fair, MarginalGain
    >>> from onlineauto.cluster.simulator import Workload, draw_traces
    >>> workload = Workload(rate=0.5)
    >>> policies = {"fair": Fair(), "gain": MarginalGain(workload.speeds())}
    >>> fair, gain = compare(policies, draw_traces(workload, range(8)), by="fair")
    >>> fair.ratio, gain.ratio < 1
    (1.0, True)
    """
    if by not in policies:
        raise OptionError(f"by = {by!r} is unknown; valid are {', '.join(policies)}")
    ran = {
        name: run(policy, traces, watch=None if watch is None else partial(watch, name))
        for name, policy in policies.items()
    }
    return [_compare_runs(name, each, ran[by]) for name, each in ran.items()]


def _compare_runs(name: str, result: Ran, other: Ran) -> Compared:
    ratio, low, high = mean_ratio(result.mean, other.mean)
    exists = ~np.isnan(result.times)
    return Compared(
        name=name,
        ratio=ratio,
        low=low,
        high=high,
        mean=float(result.mean.mean()),
        late=float(np.nanquantile(result.times, 0.95)),
        finished=float(result.finished[exists].mean()),
    )
