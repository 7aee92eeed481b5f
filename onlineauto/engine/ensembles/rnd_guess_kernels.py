"""What members of ``--rnd`` guess before they have learnt anything: random numbers of features, summed up.

In exact mode a number is drawn from VW's index of a weight, of which a table has the low bits only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import open_action
from onlineauto.engine.event.pass_kernels import over_again
from onlineauto.explorers.explore_kernels import WORK
from onlineauto.explorers.rnd_kernels import normal_of
from onlineauto.explorers.sample_kernels import mixed_state
from onlineauto.features._kernels import forget
from onlineauto.features.product_kernels import cross_all, list_linear
from onlineauto.jit import F32, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from onlineauto.engine.event.state import Actions, Buffers, Run

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO = np.float32(0)
_TWO = np.float32(2)
_LEAST = np.float32(1e-12)
_APART = np.uint64(0xD6E8FEB86659FD93)


@kernel
def _list_names(run: Run, actions: Actions, action: int, buffers: Buffers) -> int:
    """List the features of an action by their whole hashes; return the number of runs."""
    scratch, features, n_shared = run.scratch, run.stream.features, actions.n_shared
    groups, _, _ = open_action(run, actions, action)
    name, value = buffers.name, buffers.value
    n = list_linear(run.layout, scratch, features, n_shared, groups, _ALL, name, value)
    _, n_runs = cross_all(run.interactions, scratch, features, _ALL, name, value, buffers.runs, n)
    forget(scratch, n_shared, groups)
    return n_runs


@inline_kernel
def _begin(run: Run, name: np.uint64, member: int) -> np.uint64:
    """Where the generator begins for a feature: at VW's index, or at a mix of its name and the seed."""
    if not run.task.exact:
        return mixed_state(run.task.exploration.random[0], name + np.uint64(member) * _APART)
    keeps = run.task.training and (run.rule.adaptive or run.rule.normalized)
    stride = np.uint64(4 if keeps else 1)
    lane = np.uint64(len(run.live.lease) * run.task.parts * member)
    return stride * (name * np.uint64(run.model.weights.shape[2]) + lane)


@kernel
def guess(run: Run, actions: Actions, slot: int, member: int, buffers: Buffers) -> None:
    """Fill the explorer's scratch with what a member (from 1) of a slot guesses of each action."""
    run, spread = over_again(run), run.task.exploration.spread
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
                number, _ = normal_of(_begin(run, buffers.name[i], member))
                squares += x * x
                product += x * number
        size: F32 = math.sqrt(_TWO * max(_LEAST, squares))
        buffers.explored[WORK, action] = spread * product / size
