"""The budget of the compiler: how many statements each program has before LLVM optimises it.

    python -m tests.compile_budget            # compile everything, and compare with compile_budget.json
    python -m tests.compile_budget --write    # write what was found there

The time that compiling takes is nearly proportional to the number of statements, and the number is the same
on every machine. A program that grows by more than 5 % fails: either what made it grow is worth the seconds
that every user waits, and the budget is written again, or it belongs into a separate program
(`onlineauto.engine.loop.working_memory`).

The kernels are compiled into the cache directory, which must have none of them yet. A warning says how many
of them the package's bitcode lacks.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from onlineauto.cli.warmup import warm_up
from onlineauto.jit import bitcode, cache_directory, watch_compiling
from onlineauto.jit.levels import levels

BUDGET = Path(__file__).with_suffix(".json")
TOLERANCE = 0.05


def measure() -> dict[str, int]:
    """Compile everything; return the statements of each program, of the largest if one has several forms."""
    from numba.core.codegen import CPUCodeLibrary

    library: Any = CPUCodeLibrary
    counts: list[int] = []
    found: dict[str, int] = {}
    optimize = library._optimize_final_module

    def counted(self: Any) -> None:
        counts.append(str(self._final_module).count("\n  "))
        optimize(self)

    def note(program: str, done: int, total: int) -> None:
        if done == total:
            found[program] = max(found.get(program, 0), counts.pop())

    library._optimize_final_module = counted
    try:
        with watch_compiling(note):
            warm_up()
    finally:
        library._optimize_final_module = optimize
    return found


def compare(found: dict[str, int], budget: dict[str, int]) -> list[str]:
    """Return the errors of the statements that were found, a sentence each."""
    wrong = [
        f"{name} has no budget; it has {n} statements" for name, n in found.items() if name not in budget
    ]
    wrong += [f"{name} is not compiled, and has a budget" for name in budget if name not in found]
    for name in sorted(found.keys() & budget.keys()):
        n, allowed = found[name], budget[name]
        if n > allowed * (1 + TOLERANCE):
            wrong.append(
                f"{name} has {n} statements, {n / allowed - 1:.0%} more than its budget of {allowed}"
            )
    return wrong


def bitcode_warning(symbols: set[str]) -> str:
    """Return a line if the package's bitcode lacks programs; "" if it has all, or if there is none."""
    path = next(filter(Path.exists, map(bitcode.file_for, levels())), None)
    missing = symbols - bitcode.read(path)[1].keys() if path else set()
    if not missing:
        return ""
    return (
        f"warning: a first run compiles {len(missing)} of {len(symbols)} programs, since the package's "
        "bitcode is of other sources: run python -m tools.bitcode\n"
    )


def main(words: list[str] | None = None) -> int:
    """Compare with the budget, or write it; return 1 if a program is over its budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the budget")
    options = parser.parse_args(words)
    if any(cache_directory().glob("*.o")):
        parser.error(
            f"kernels are compiled already, in {cache_directory()}; ONLINEAUTO_CACHE_DIR names another"
        )
    os.environ["ONLINEAUTO_KERNELS"] = "none"  # which compiles what the package has bitcode of, too
    os.environ["ONLINEAUTO_COMPILE_PROCESSES"] = "1"  # statements are counted in this process
    begin, seconds = time.perf_counter(), time.process_time()
    found = measure()
    took = f"{time.process_time() - seconds:.0f} CPU seconds, {time.perf_counter() - begin:.0f} s"
    print(f"{sum(found.values())} statements in {len(found)} programs, compiled in {took}")
    print(bitcode_warning({path.stem for path in cache_directory().glob("*.o")}), end="", file=sys.stderr)
    if options.write:
        BUDGET.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
        return 0
    wrong = compare(found, json.loads(BUDGET.read_text()))
    for each in wrong:
        print(each, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
