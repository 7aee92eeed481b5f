"""With ``NUMBA_DISABLE_JIT=1`` kernels run as plain Python, and predict what machine code predicts."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from tests.processes import ROOT, python

BUDGET = set(json.loads((ROOT / "tests/compile_budget.json").read_text(encoding="utf-8")))
PAGE = ROOT / "docs/develop/numba.md"


def listed(heading: str) -> set[str]:
    """Return the programs in the table under a heading of the page for maintainers."""
    part = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    return {
        name
        for row in re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }


def programs(**environment: str) -> dict[str, Any]:
    """Run the programs in a process."""
    made: dict[str, Any] = json.loads(python("-m", "tests.jit.programs", code=0, **environment).stdout)
    return made


@pytest.mark.ci
def test_every_listed_program_predicts_the_same_in_plain_python() -> None:
    machine, plain = programs(NUMBA_DISABLE_JIT="0"), programs(NUMBA_DISABLE_JIT="1")
    assert machine["ran"] == []
    assert plain["predictions"].keys() == machine["predictions"].keys()
    for name, found in plain["predictions"].items():
        for one, other in zip(found, machine["predictions"][name], strict=True):
            assert np.asarray(one) == pytest.approx(np.asarray(other), rel=1e-6, abs=1e-7), name
    assert BUDGET - set(plain["ran"]) == listed("Kernels as plain Python")


@pytest.mark.bounds
def test_every_program_is_run_with_bounds_checks() -> None:
    code = (
        "import json\n"
        "from onlineauto.cli.warmup import warm_up\n"
        "from onlineauto.jit import code\n"
        "symbol, loaded = code.symbol_of, set()\n"
        "def noted(function, packed):\n"
        "    loaded.add(function.__qualname__)\n"
        "    return symbol(function, packed)\n"
        "code.symbol_of = noted\n"
        "warm_up()\n"
        "print(json.dumps(sorted(loaded)))\n"
    )
    done = python("-c", code, NUMBA_BOUNDSCHECK="1")
    assert set(json.loads(done.stdout.splitlines()[-1])) >= BUDGET
