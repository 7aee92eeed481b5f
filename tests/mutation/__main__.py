"""Change kernels, one small change at a time, and count the changes that their own tests notice.

    python -m tests.mutation [--mutants N] [--seed S] [--kernels PATTERN]

Works in a copy of the tree. Each mutant compiles its kernels again, in a cache that is then deleted.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from tests.mutation.changes import count_mutants, mutant

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 600
"""Time for the tests of a mutant, compiling included; a loop that never ends takes all of it."""
OUTCOMES = ("killed", "timed out", "survived", "not compiled")

TESTS: dict[str, tuple[str, ...]] = {
    "estimators/adaptive_window": ("estimators/test_adaptive_window_kernels.py",),
    "estimators/robust": tuple(
        f"estimators/test_{name}.py" for name in ("robust_kernels", "lazy_kernels", "settled_kernels")
    ),
    "estimators": tuple(
        f"estimators/test_{name}_kernels.py" for name in ("difference", "evaluation", "paired")
    ),
    "learners/sensitivity": ("engine/test_explorers.py",),
    "learners/score": ("engine/test_native_twin.py",),
    "learners": ("learners",),
    "explorers": ("explorers",),
    "features/product": ("engine/test_native_twin.py",),
    "features": ("features",),
    "formats/blocks": ("formats/test_block_file.py",),
    "formats/numbers": ("formats/test_float_kernels.py",),
    "formats/json": ("formats/test_float_kernels.py", "formats/test_json_laws.py"),
    "formats": ("formats/test_text_twin.py", "formats/test_mark_kernels.py", "formats/test_slots.py"),
    "engine/policies": ("engine/test_native_twin.py", "engine/test_explorers.py"),
    "engine/ensemble": ("engine/test_class_ensemble_twin.py",),
    "engine": ("engine/test_native_twin.py", "engine/test_slots.py"),
}
"""Tests that belong to kernels, by how the path of the kernels begins; the first that fits is taken.

The kernels of exact mode are not here: the parity catalogue holds them."""


class Result(NamedTuple):
    """The outcome of a mutant."""

    outcome: str
    kernels: str
    change: str


def find_tests(kernels: str, table: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the tests that belong to a file of kernels, by its path in the package."""
    return next((tests for start, tests in table.items() if kernels.startswith(start)), ())


def run_tests(tree: Path, tests: tuple[str, ...], environment: Mapping[str, str]) -> str:
    """Run tests in a tree; return the outcome: survived, if they all pass."""
    words = (*("-m", "pytest", "-q", "-x", "-n", "0", "--tb=short"), *("-p", "no:cacheprovider"))
    given = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "ONLINEAUTO_TESTS": "push"}
    try:
        ended = subprocess.run(
            [sys.executable, *words, *(f"tests/{name}" for name in tests)],
            cwd=tree,
            env=given | dict(environment),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "timed out"
    if ended.returncode in (4, 5):  # pytest was called wrongly, or found no test
        raise SystemExit(f"no tests to run: {ended.stdout}{ended.stderr}")
    compiled = not re.search(r"numba\.core\.errors\.\w+Error", ended.stdout)
    return "survived" if ended.returncode == 0 else "killed" if compiled else "not compiled"


def mutate(
    root: Path, *, mutants: int, seed: int, kernels: str = "*", table: Mapping[str, tuple[str, ...]] = TESTS
) -> list[Result]:
    """Try a number of mutants of the kernels whose path in the package has a pattern; return all results."""
    draw, results, pass_unchanged = random.Random(seed), list[Result](), set[tuple[str, ...]]()
    with tempfile.TemporaryDirectory() as folder:
        tree, cache = Path(folder, "tree"), Path(folder, "cache")
        unwanted = shutil.ignore_patterns("__pycache__", ".*")
        for name in ("onlineauto", "tests", "bench"):
            shutil.copytree(root / name, tree / name, ignore=unwanted)
        shutil.copy(root / "pyproject.toml", tree)
        package = tree / "onlineauto"
        sources = {path: path.read_text("utf-8") for path in sorted(package.rglob("*_kernels.py"))}
        names = {path: path.relative_to(package).as_posix() for path in sources}
        fitting = [
            path for path in sources if fnmatch(names[path], kernels) and find_tests(names[path], table)
        ]
        left = {path: list(range(count_mutants(sources[path]))) for path in fitting}
        while len(results) < mutants and any(left.values()):
            path = draw.choice([path for path in fitting if left[path]])
            found = mutant(sources[path], left[path].pop(draw.randrange(len(left[path]))))
            chosen = find_tests(names[path], table)
            if chosen not in pass_unchanged and run_tests(tree, chosen, {}) != "survived":
                raise SystemExit(f"tests that fail without a mutant: {' '.join(chosen)}")
            pass_unchanged.add(chosen)
            path.write_text(found.source, "utf-8")
            outcome = run_tests(tree, chosen, {"ONLINEAUTO_CACHE_DIR": str(cache)})
            path.write_text(sources[path], "utf-8")
            shutil.rmtree(cache, ignore_errors=True)
            change = f"{names[path]}:{found.line}: {found.before}  →  {found.after}"
            print(f"{outcome:<12} {change}", flush=True)
            results.append(Result(outcome, names[path], change))
    if not results:
        raise SystemExit(f"no kernels with tests of their own fit {kernels}")
    return results


def report(results: list[Result]) -> str:
    """Return the table of outcomes by folder, the survivors, and the score."""
    folders = Counter((Path(result.kernels).parent.as_posix(), result.outcome) for result in results)
    rows = [("kernels", [*OUTCOMES])]
    names = sorted({folder for folder, _ in folders})
    rows += [(name, [str(folders[name, outcome]) for outcome in OUTCOMES]) for name in names]
    lines = ["", *(f"{folder:<20}" + "".join(f"{cell:>14}" for cell in cells) for folder, cells in rows)]
    lines += ["", *(f"survived: {result.change}" for result in results if result.outcome == "survived")]
    counts = Counter(result.outcome for result in results)
    dead, counted = counts["killed"] + counts["timed out"], len(results) - counts["not compiled"]
    return "\n".join([*lines, f"score: {dead} of {counted} mutants killed"])


def main() -> None:
    """Mutate kernels of the package, and print what became of the mutants."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=20, help="how many changes to try")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--kernels", default="*", help="which kernels, such as 'estimators/*'")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    print(report(mutate(ROOT, mutants=given.mutants, seed=given.seed, kernels=given.kernels)))


if __name__ == "__main__":
    main()
