"""The guesses that members of ``--rnd`` learn as costs: sums of random numbers, one for each feature."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import open_action
from onlineauto.engine.policies.rnd_noise_kernels import RndNumber, normal_of
from onlineauto.explorers.explore_kernels import WORK
from onlineauto.explorers.sample_kernels import mix_state
from onlineauto.features.group_kernels import forget
from onlineauto.features.product_kernels import cross_all, list_linear
from onlineauto.features.records import Listing
from onlineauto.jit import F32, kernel, short_loop

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Actions, Buffers, LoopRun

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO = np.float32(0)
_TWO = np.float32(2)
_LEAST = np.float32(1e-12)
_APART = np.uint64(0xD6E8FEB86659FD93)


@kernel
def _list_names(run: LoopRun, actions: Actions, action: int, buffers: Buffers) -> int:
    """List the features of an action by their 64-bit hashes in `buffers.name`; return the number of runs."""
    scratch, features, n_shared = run.scratch, run.stream.features, actions.n_shared
    groups, _, _ = open_action(run, actions, action)
    listing = Listing(buffers.name, buffers.value, _ALL)
    n = list_linear(run.layout, scratch, features, n_shared, groups, listing)
    _, n_runs = cross_all(run.interactions, scratch, features, listing, buffers.runs, n)
    forget(scratch, n_shared, groups)
    return n_runs


@kernel
def guess(run: LoopRun, actions: Actions, slot: int, member: int, buffers: Buffers) -> None:
    """Fill the explorer's scratch (`WORK`) with the guess of a member (from 1) for each action.

    The sum includes the features that live config `slot` uses, and is divided by √(2 Σ x²).
    """
    seed = run.task.exploration.random[0]
    spread: F32 = math.sqrt(np.float32(run.task.exploration.numbers[RndNumber.VARIANCE]))
    apart = np.uint64(member) * _APART
    for action in range(actions.n):
        n_runs = _list_names(run, actions, action, buffers)
        squares = product = _ZERO
        for r in range(n_runs):
            short_loop()
            listed = buffers.runs[r]
            if not run.interactions.holders[listed.product, slot]:
                continue
            for i in range(listed.start, listed.end):
                x = buffers.value[i]
                number = normal_of(mix_state(seed, buffers.name[i] + apart))
                squares += x * x
                product += x * number
        size: F32 = math.sqrt(_TWO * max(_LEAST, squares))
        buffers.explored[WORK, action] = spread * product / size
