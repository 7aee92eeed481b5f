"""The conformance suite of policies of a cluster."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.cluster.policies.policy import allocate, best_choices
from onlineauto.cluster.policies.situation import Row, Situation

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.cluster.policies.policy import ClusterPolicy
    from onlineauto.cluster.policies.situation import Bools, Ints

_KINDS = ("study", "stream", "refit")


def check_policy(make: Callable[[], ClusterPolicy]) -> None:
    """Check a policy against the requirements of a cluster, in many simulated situations.

    Scores have the shape ``[B, 3J + 1]``, and none is NaN. The same situation has the same scores, and
    scoring does not change the situation. The scores of a cluster do not depend on the other clusters of its
    batch. Rows without a job, and jobs that cannot use more, get nothing; the capacity is not exceeded; no
    job that could begin is left with nothing. Slots end.

    Parameters
    ----------
    make : callable
        Returns a new policy, registered or not.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the cluster.

    Examples
    --------
    >>> from onlineauto.cluster import Fair
    >>> check_policy(Fair)
    """
    for seed, jobs, servers in product(range(4), (0, 1, 5, 9), (False, True)):
        where = f"{make().name}, seed {seed}, {jobs} jobs, {'with' if servers else 'without'} servers"
        _check_situation(make(), _situation(seed, jobs, servers=servers), where)


def _situation(seed: int, jobs: int, *, servers: bool) -> Situation:
    draw = np.random.default_rng([seed, jobs, servers])

    def amount(most: float) -> float:
        return round(float(draw.uniform(0.1, most)), 2)

    rows = [
        Row(
            kind=_KINDS[draw.integers(len(_KINDS))],
            age=float(draw.integers(20)),
            done=amount(10),
            remaining=amount(50),
            worker={"CPU": amount(2), "memory": amount(4)},
            server={"CPU": amount(1), "memory": amount(4)} if servers and draw.random() < 0.7 else {},
            most_workers=int(draw.integers(1, 9)),
            most_servers=int(draw.integers(1, 9)),
        )
        for _ in range(jobs)
    ]
    return Situation.of(rows, {"CPU": amount(16), "memory": amount(48)}, places=6)


def _check_situation(policy: ClusterPolicy, situation: Situation, where: str) -> None:
    def require(condition: bool, message: str) -> None:
        if not condition:
            raise AssertionError(f"{message}; {where}")

    steps = 0

    def watch(now: Situation, choices: Bools, actions: Ints) -> None:
        nonlocal steps
        steps += 1
        copies = {name: getattr(now, name).copy() for name in ("workers", "servers", "free", "remaining")}
        score, again = policy.score(now), policy.score(now)
        require(score.shape == (1, 3 * now.places + 1), f"the shape of the scores is {score.shape}")
        require(not np.isnan(score).any(), "a score is NaN")
        require(np.array_equal(score, again), "the same situation has other scores")
        require(all(np.array_equal(getattr(now, name), copy) for name, copy in copies.items()), "changes it")
        twice = policy.score(_repeat_cluster(now))
        same = [np.array_equal(best_choices(each[None], choices), actions) for each in twice]
        require(all(same), "an action depends on the clusters beside it")
        require(bool(choices[0, actions[0]]), f"action {actions[0]} is not possible")

    after = allocate(policy, situation, watch=watch)
    bound = int(situation.most_workers.sum() + situation.most_servers.sum()) + 1
    require(steps <= bound, f"a slot has {steps} actions")
    require(bool((after.free >= -1e-6).all()), f"gives away more than there is: {after.free}")
    empty = ~after.valid
    require(not after.workers[empty].any() and not after.servers[empty].any(), "serves a row without a job")
    require(bool((after.workers <= after.most_workers).all()), "gives more workers than a job can use")
    require(bool((after.servers <= after.most_servers).all()), "gives more servers than a job can use")
    waits = after.valid & (after.workers == 0)
    begins = after.legal()[:, : 3 * after.places].reshape(1, 3, after.places).any(1)
    require(not (waits & begins).any(), "leaves a job with nothing that could be begun")


def _repeat_cluster(situation: Situation) -> Situation:
    """Return a batch with a cluster twice."""
    arrays = {name: getattr(situation, name) for name in Situation.__dataclass_fields__}
    doubled: dict[str, Any] = {
        name: np.concatenate([array] * 2) for name, array in arrays.items() if isinstance(array, np.ndarray)
    }
    return replace(situation, **doubled)
