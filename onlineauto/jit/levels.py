"""Levels: the kinds of processors for which a wheel's kernels are compiled ahead of time."""

from __future__ import annotations

import platform
from functools import cache
from itertools import takewhile
from pathlib import Path

_LEVELS = {
    "x86_64": ("x86-64-v3", "x86-64-v2"),
    "AMD64": ("x86-64-v3", "x86-64-v2"),
    "aarch64": ("generic",),
    "arm64": ("generic",),
}
"""LLVM's names of the levels of each machine, the most capable first."""
_FLAGS = {
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
    "x86-64-v3": {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"},
}
"""Linux's names of the features that each level has in addition to those of the lower levels."""


def levels() -> tuple[str, ...]:
    """Return the levels of this kind of machine, the most capable first."""
    return _LEVELS.get(platform.machine(), ())


def compiles_for(processor: str) -> dict[str, str]:
    """Return the variables that make Numba compile for `processor`, without this machine's features."""
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}


@cache
def runnable_levels() -> tuple[str, ...]:
    """Return the levels that this processor can run, the most capable first; empty if unknown."""
    flags = _processor_flags()
    result: tuple[str, ...] = ()
    for level in reversed(levels()):
        if not _FLAGS.get(level, set()) <= flags:
            break
        result = (level, *result)
    return result


@cache
def processor_lines() -> tuple[str, ...]:
    """Return the lines of ``/proc/cpuinfo`` about the first processor; empty on other systems."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            return tuple(line.rstrip("\n") for line in takewhile(str.strip, file))
    except OSError:
        return ()


def _processor_flags() -> set[str]:
    for line in processor_lines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return set(value.split())
    return set()
