"""Keys of actions: what members know an action by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.event.state import ACTIONS, CB, MOST_ACTIONS, SIMPLE
from onlineauto.engine.stack.member_input_kernels import joins
from onlineauto.jit import inline_kernel, short_loop

if TYPE_CHECKING:
    from onlineauto.engine.event.state import Actions, Members, Run

_WHOLE = 2.0**52
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@inline_kernel
def action_key(run: Run, actions: Actions, action: int) -> np.uint64:
    """Return what tells an action from others: its number, or a hash of all its features."""
    if run.task.shape in (SIMPLE, CB):
        return np.uint64(action + 1)
    stream, line = run.stream, line_of(run, actions, action)
    key = np.uint64(1)  # a sum, so that the order of features does not matter
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            short_loop()
            value = np.float64(stream.features[i].value) * 65536.0
            whole = np.int64(value) if abs(value) < _WHOLE else np.int64(0)  # NaN, too, is no whole number
            part = (np.uint64(stream.features[i].hash) ^ (np.uint64(whole) << np.uint64(32))) * _MIX
            key += (part ^ (part >> _SHIFT)) * _MIX
    return key


@inline_kernel
def index_of(members: Members, key: np.uint64) -> int:
    """Return the index of an action's regressions, -1 if the action is not known."""
    if joins(members):
        return 0
    for i in range(min(members.tally[ACTIONS], MOST_ACTIONS)):
        short_loop()
        if members.action[i] == key:
            return i
    return -1
