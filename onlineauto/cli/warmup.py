"""The verb ``warmup``: compile all kernels now, so that the first run need not."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.cli.compiling import shown_compiling
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.exploration import pmf_address
from onlineauto.formats.json_reader import JsonReader
from onlineauto.formats.lines.reader_state_kernels import Rules
from onlineauto.jit import cache_directory, watch_compiling
from onlineauto.jit.compiler.build import build_library
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["run", "warm_up"]

_EVENT = b"shared |a x\n0:-1:0.5 |b y\n|b z\n\n"
_MANY_FEATURES = b"|a " + b" ".join(b"%d" % i for i in range(1100)) + b"\n\n"
_MANY_NAMES = b" ".join(b"|n%d x" % i for i in range(600)) + b"\n\n"
"""Events that need larger buffers than there are at first."""
_JSON = b'{"c":{"a":1}}'


def run(words: Sequence[str]) -> int:
    """Compile all kernels that are not on disk yet, and print where they are."""
    options = _parser().parse_args(words)
    if options.library is not None:
        build_library(options.library, [sys.executable, "-m", "onlineauto", "warmup"])
        print(f"the library of kernels is in {options.library}")
        return 0
    if options.cpu is not None:
        os.environ["NUMBA_CPU_NAME"] = options.cpu
    compiled: set[str] = set()
    begin = time.perf_counter()
    with watch_compiling(lambda program, *_: compiled.add(program)), shown_compiling():
        warm_up()
    seconds = time.perf_counter() - begin
    if not compiled:
        print(f"the kernels are compiled already, in {cache_directory()}")
    else:
        print(f"compiled the kernels in {seconds:.0f} s, into {cache_directory()}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("onlineauto warmup", description="Compile the kernels now.")
    parser.add_argument(
        "--cpu",
        metavar="NAME",
        help="compile for another processor than this one: x86-64-v3 runs on most of the last ten years, "
        "x86-64-v2 on all of the last fifteen",
    )
    parser.add_argument(
        "--library",
        metavar="FOLDER",
        type=Path,
        help="compile ahead of time, into shared objects that need no compiler; ONLINEAUTO_KERNELS names the "
        "folder to a process that is to use them",
    )
    return parser


def warm_up() -> None:
    """Learn a little with every option that needs kernels of its own, which compiles them."""
    for exact in (False, True):
        workspace = Workspace(cb_explore_adf=True, automl=2, lease=1, bit_precision=8, vw_exact=exact)
        workspace.fit(8 * _EVENT)
    sampling = Workspace(cb_explore_adf=True, cb_sample=True).fit(_EVENT)
    for explorer in EXPLORERS.values():
        pmf_address(explorer, sampling.learner.task.exploration)
    Workspace(cb_adf=True, quadratic="aa", hash_seed=1).fit(_MANY_FEATURES + _MANY_NAMES)
    for _ in JsonReader(_JSON, Rules(log=True)):
        pass
