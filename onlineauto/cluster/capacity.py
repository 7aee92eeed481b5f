"""The default capacity of a cluster: the processors of this machine, or all resources of Ray."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from onlineauto.errors import OptionError
from onlineauto.tune.workers.resources import is_amount

if TYPE_CHECKING:
    from collections.abc import Mapping

BACKENDS = ("local", "ray")
"""Kinds of workers: processes and threads of this machine, or actors of Ray."""

_OF_RAY_ITSELF = ("node:", "object_store_memory", "memory", "accelerator_type:")


def capacity_of(backend: str) -> dict[str, float]:
    """Return the amount of each resource of a backend; for ``ray``, this process must be connected."""
    if backend == "local":
        n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return {"CPU": float(n_cores or 1)}
    import ray

    capacity: Mapping[str, float] = ray.cluster_resources()
    return {name: float(amount) for name, amount in capacity.items() if not name.startswith(_OF_RAY_ITSELF)}


def check_capacity(capacity: Mapping[str, float]) -> dict[str, float]:
    """Return a capacity with amounts as floats."""
    for name, amount in capacity.items():
        if not is_amount(amount) or not 0 < amount < math.inf:
            raise OptionError(f"capacity {name} = {amount!r}: give a number, more than 0")
    if not capacity:
        raise OptionError("the capacity is empty: give one, such as {'CPU': 8}")
    return {name: float(amount) for name, amount in capacity.items()}
