"""The first seconds: what compiling costs beside a fixed piece of work for Numba, and what a warm start.

    python -m bench.cold_start [--library FOLDER] [--rounds 5]

Each figure is of processes of their own. *calibration* compiles a fixed function with Numba alone, so that
figures of two machines can be compared. *first run* is the README's command with no cache, which generates
machine code from the package's bitcode; *compile time* is the same without bitcode, in one process. They are
the figures of README and documentation, `FIRST_RUN` and `COMPILE_TIME` in `onlineauto/jit/compiling.py`. *all
cores* is the wall time of the latter with one process for each core, up to four. *warm run* is five
events with a full cache, *library* five events with kernels compiled ahead of time (``onlineauto warmup
--library FOLDER``). Seconds are of the processor; memory is the most that was resident.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import kit
from bench.speed.process import started

REPOSITORY = Path(__file__).resolve().parents[1]
_SEARCH = ("--cb_explore_adf", "--automl", "--epsilon", "0.1")
QUICK_START = ("-d", "datasets/cb-surveys-u.txt.gz", *_SEARCH, "-p", "predictions.txt")
"""The words of the README's first command."""
FIVE = 5 * "shared |a x\n0:-1:0.5 |b y\n|b z\n\n"
CALIBRATION = """
import numba

def body(n):
    turn = "    x{0} = x{1} * {0}.5 + a[{0}] if x{0} < a[{0}] else x{2} - {0}"
    lines = [turn.format(i, (i + 7) % n, (i + 3) % n) for i in range(n)]
    starts = [f"    x{i} = a[{i}]" for i in range(n)]
    ends = [f"    a[{i}] = x{i}" for i in range(n)]
    return "\\n".join(["def f(a):", *starts, *lines, *ends])

import numpy
names = {}
exec(body(160), names)
numba.njit(names["f"])(numpy.ones(160))
"""
IMPORTED = """
from onlineauto.cli.main import main
code = main(sys.argv[1:])
print(int("numba" in sys.modules), int("llvmlite" in sys.modules))
sys.exit(code)
"""


class Cost(NamedTuple):
    """The time and memory of a process."""

    seconds: float  # of the processor
    wall: float
    megabytes: float
    output: str


def cost_of(words: Sequence[str], *, cache: Path, **environment: str) -> Cost:
    """Run a process to its end and return what it took."""
    variables = os.environ | {"ONLINEAUTO_CACHE_DIR": str(cache), "PYTHONPATH": str(REPOSITORY)} | environment
    done = started(words, environment=variables, cwd=REPOSITORY)
    if done["code"]:
        raise RuntimeError(f"{' '.join(words[-3:])} ended with {done['code']}")
    return Cost(done["cpu"], done["seconds"], done["peak_mb"], done["output"])


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = kit.parser(
        __doc__,
        library=kit.Option(str, "kernels compiled ahead of time"),
        rounds=kit.Option(5, "how often the warm runs are repeated"),
    ).parse_args(words)
    with tempfile.TemporaryDirectory() as directory:
        cache, events = Path(directory) / "cache", Path(directory) / "five.txt"
        events.write_text(FIVE)
        five = ["-c", IMPORTED, "-d", str(events), "--cb_explore_adf", "-q", "::", "--quiet"]
        calibration = cost_of(["-c", CALIBRATION], cache=cache)
        command = [*QUICK_START[:-1], str(Path(directory) / QUICK_START[-1])]
        print(f"calibration   {calibration.seconds:7.2f} s")
        for name, kernels, folder in (("first run", "", cache), ("compile time", "none", cache / "compiled")):
            first = cost_of(
                ["-m", "onlineauto", *command],
                cache=folder,
                ONLINEAUTO_KERNELS=kernels,
                ONLINEAUTO_COMPILE_PROCESSES="1",
            )
            times = first.seconds / calibration.seconds
            print(
                f"{name:13} {first.seconds:7.2f} s, {times:.2f} calibrations, {first.wall:.1f} s of wall time"
            )
        together = cost_of(
            ["-m", "onlineauto", *command],
            cache=cache / "all cores",
            ONLINEAUTO_KERNELS="none",
            ONLINEAUTO_COMPILE_PROCESSES="",
        )
        print(f"all cores     {together.wall:7.1f} s of wall time")
        _print("warm run", [cost_of(five, cache=cache) for _ in range(options.rounds)])
        _print(
            "--help", [cost_of(["-m", "onlineauto", "--help"], cache=cache) for _ in range(options.rounds)]
        )
        if options.library:
            empty = Path(directory) / "empty"
            runs = [
                cost_of(five, cache=empty, ONLINEAUTO_KERNELS=options.library) for _ in range(options.rounds)
            ]
            _print("library", runs)


def _print(name: str, runs: list[Cost]) -> None:
    imported = runs[0].output.split()[-2:]
    told = f", Numba {'' if imported[0] == '1' else 'not '}imported" if imported[0] in "01" else ""
    seconds, size = median(run.seconds for run in runs), median(run.megabytes for run in runs)
    print(f"{name:13} {seconds:7.3f} s, {size:.0f} MB{told}")


if __name__ == "__main__":
    main()
