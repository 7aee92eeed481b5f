"""Mutants are valid code with one change; the command says which of them the tests notice."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutation.__main__ import ROOT, TESTS, find_tests, mutate, report
from tests.mutation.changes import count_mutants, mutant

pytestmark = pytest.mark.lane("ci")

SOURCE = '''"""Kernels."""
LEAST = 0 + 1


def total(values, out):
    """Return 1 if there is 0 + 1."""
    found = 5
    for value in values:
        short_loop()
        if value > 2 and value != found:
            found += value
    out[found - 3] = 1.0
    out.fill(found)
    return found
'''
CHANGES = {
    ("value > 2 and value != found", "value > 2 or value != found"),
    ("value > 2", "value >= 2"),
    ("value != found", "value == found"),
    ("found += value", "pass"),
    ("found - 3", "found + 3"),
    ("out[found - 3] = 1.0", "pass"),
    ("1.0", "0.0"),
    ("out.fill(found)", "pass"),
}


def test_each_change_is_made_once_and_alone() -> None:
    whole = ast.unparse(ast.parse(SOURCE))
    found = [mutant(SOURCE, number) for number in range(count_mutants(SOURCE))]
    assert len(found) == len(CHANGES)
    assert {(each.before, each.after) for each in found} == CHANGES
    for each in found:
        pairs = zip(whole.splitlines(), each.source.rstrip().splitlines(), strict=True)
        [(before, after)] = [pair for pair in pairs if pair[0] != pair[1]]
        assert each.before in before
        assert each.after in after
        assert each.before in SOURCE.splitlines()[each.line - 1]
        compile(each.source, "mutant", "exec")


def test_table_names_existing_tests() -> None:
    missing = [name for names in TESTS.values() for name in names if not (ROOT / "tests" / name).exists()]
    assert not missing
    kernels = [path.relative_to(ROOT / "onlineauto") for path in (ROOT / "onlineauto").rglob("*_kernels.py")]
    assert {path.parts[0] for path in kernels if not find_tests(path.as_posix(), TESTS)} == {"exact"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project of one function, whose tests notice one of its two mutants."""
    files = {
        "pyproject.toml": "",
        "onlineauto/__init__.py": "",
        "bench/__init__.py": "",
        "onlineauto/tiny/sum_kernels.py": "def total(a, b):\n    return a + b if a > b else a\n",
        "tests/tiny/test_sum.py": (
            "from onlineauto.tiny.sum_kernels import total\n\n"
            "def test_total():\n    assert total(2, 1) == 3\n"
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_mutants_are_killed_or_survive(project: Path) -> None:
    results = mutate(project, mutants=9, seed=1, table={"tiny": ("tiny/test_sum.py",)})
    place = "tiny/sum_kernels.py:2: "
    assert {(result.outcome, result.change) for result in results} == {
        ("killed", f"{place}a + b  →  a - b"),
        ("survived", f"{place}a > b  →  a >= b"),
    }
    assert report(results).endswith(f"survived: {place}a > b  →  a >= b\nscore: 1 of 2 mutants killed")


def test_tests_that_fail_without_a_mutant_are_reported(project: Path) -> None:
    (project / "tests/tiny/test_sum.py").write_text("def test_total():\n    assert False\n", "utf-8")
    with pytest.raises(SystemExit, match=r"^tests that fail without a mutant: tiny/test_sum\.py$"):
        mutate(project, mutants=1, seed=1, table={"tiny": ("tiny/test_sum.py",)})
