"""The verb ``warmup``: compile all kernels now, so that the first run need not."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack

import numpy as np

from onlineauto.engine.event.live_config_kernels import swap_lanes
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.exploration import pmf_address
from onlineauto.formats.json_reader import JsonReader
from onlineauto.formats.lines.reader_state_kernels import Rules
from onlineauto.jit import cache_directory, note_warm, watch_compiling
from onlineauto.workspace.workspace import Workspace

__all__ = ["run", "warm_up"]

_EVENT = b"shared |a x\n0:-1:0.5 |b y\n|b z\n\n"
_MANY_FEATURES = b"|a " + b" ".join(b"%d" % i for i in range(1100)) + b"\n\n"
_MANY_NAMES = b" ".join(b"|n%d x" % i for i in range(600)) + b"\n\n"
"""Events that need larger buffers than there are at first."""
_JSON = b'{"c":{"a":1}}'
_LINE = "\r\x1b[K"
"""Moves to the beginning of a terminal's line and clears it."""


def run() -> int:
    """Compile all kernels that are not on disk yet, and print where they are."""
    compiled: list[int] = []
    with watch_compiling(lambda number, _: compiled.append(number)):
        seconds = warm_up()
    if not compiled:
        print(f"the kernels are compiled already, in {cache_directory()}")
    else:
        print(f"compiled the kernels in {seconds:.0f} s, into {cache_directory()}")
    return 0


def warm_up(part: str = "all") -> float:
    """Learn a little in both modes, which compiles a part of the kernels; return the seconds it took.

    On a terminal, standard error shows how far it is.

    Parameters
    ----------
    part : {"all", "text"}
        Everything that learning needs; or only what runs over text need.
    """
    begin = time.perf_counter()

    def show(number: int, total: int) -> None:
        done = min(number, total)
        seconds = time.perf_counter() - begin
        text = f"onlineauto: compiling the kernels, once: {done} of about {total}, {seconds:.0f} s so far"
        text += ", about twice that in all" if done < total // 2 else "; the last take longest"
        print(f"{_LINE}{text}", end="", file=sys.stderr, flush=True)

    with ExitStack() as stack:
        if sys.stderr.isatty():
            stack.enter_context(watch_compiling(show))
            stack.callback(print, _LINE, end="", file=sys.stderr, flush=True)
        for exact in (False, True):
            workspace = Workspace(cb_explore_adf=True, automl=2, lease=1, bit_precision=8, vw_exact=exact)
            workspace.fit(8 * _EVENT)
            swap_lanes(workspace.weights, np.zeros(0, np.int64), 0, 1)
            workspace.estimates.lower(0), workspace.estimates.upper(0)
        sampling = Workspace(cb_explore_adf=True, cb_sample=True).fit(_EVENT)
        for explorer in EXPLORERS.values():
            pmf_address(explorer, sampling.learner.task.exploration)
        Workspace(cb_adf=True, quadratic="aa", hash_seed=1).fit(_MANY_FEATURES + _MANY_NAMES)
        if part != "text":
            for _ in JsonReader(_JSON, Rules(log=True)):
                pass
    note_warm(part)
    return time.perf_counter() - begin
