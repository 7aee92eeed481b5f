"""Write the package's bitcode: ``python -m tools.bitcode``, two CPU minutes if all kernels have changed.

It compiles every kernel for the most capable level of this kind of machine, and writes what LLVM has
optimised into ``onlineauto/_bitcode``. Programs whose sources have not changed are kept; ``--all`` compiles
them, too, for a new release of Numba. LLVM cannot read the bitcode of later versions, so the one that is
installed here is the oldest that can use the file.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from llvmlite import binding

from onlineauto.cli.terminal import show_compiling
from onlineauto.cli.warmup import warm_up
from onlineauto.errors import OnlineautoError
from onlineauto.jit import bitcode, code
from onlineauto.jit.cache import cache_directory
from onlineauto.jit.levels import compiles_for, levels, runnable_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FunctionType

    from onlineauto.jit.packing import Packed


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file, and return 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="compile programs that have not changed, too")
    options = parser.parse_args(argv)
    level = levels()[0]
    if level not in runnable_levels():
        raise OnlineautoError(f"this processor cannot run {level}, so kernels cannot be compiled for it here")
    os.environ |= compiles_for(level)
    os.environ["ONLINEAUTO_KERNELS"] = "none" if options.all else ""
    os.environ["ONLINEAUTO_COMPILE_PROCESSES"] = "1"  # `collect` sees what this process compiles
    path, begin = bitcode.file_for(level), time.perf_counter()
    with tempfile.TemporaryDirectory() as cache, show_compiling():
        os.environ["ONLINEAUTO_CACHE_DIR"] = cache
        cache_directory.cache_clear()
        programs = collect(warm_up)
    compiled = len(programs.keys() - bitcode.bitcode().programs.keys())
    if programs != bitcode.bitcode().programs:
        bitcode.write(path, programs, binding.llvm_version_info[0])
    took = f"{time.process_time():.0f} CPU seconds, {time.perf_counter() - begin:.0f} s"
    made = f"{len(programs)} programs, {compiled} of them compiled in {took}"
    print(f"{path.name}: {path.stat().st_size:,} bytes; {made}")
    return 0


def collect(run: Callable[[], object]) -> bitcode.Programs:
    """Return the bitcode of each program that `run` loads; none of them may be in the cache."""
    programs = bitcode.Programs()
    found = code.bitcode_for

    def noted(function: FunctionType, packed: Packed, symbol: str) -> tuple[bytes, str]:
        programs[symbol] = found(function, packed, symbol)
        return programs[symbol]

    code.bitcode_for = noted
    try:
        run()
    finally:
        code.bitcode_for = found
    return programs


if __name__ == "__main__":
    sys.exit(main())
