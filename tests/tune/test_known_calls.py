"""Scripts for Optuna and Ray Tune: two changed lines, which have the original beside them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = ("16_from_optuna.py", "17_from_ray_tune.py")


def original(script: str) -> str:
    """Return the script before the change."""
    text = (EXAMPLES / script).read_text("utf-8")
    return re.sub(r"^( *).*?  # was: (.*)$", r"\1\2", text, flags=re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS)
def test_two_lines_of_forty_are_changed(script: str) -> None:
    ours, theirs = (EXAMPLES / script).read_text("utf-8").splitlines(), original(script).splitlines()
    assert sum(one != other for one, other in zip(ours, theirs, strict=True)) == 2
    assert 40 <= len(ours) <= 45
    modules = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(ast.parse("\n".join(theirs)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert not any(name.startswith("onlineauto") for name in modules)


def test_the_original_for_optuna_runs_and_finds_the_same(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    pytest.importorskip("pandas")
    script = tmp_path / "script.py"
    script.write_text(original(SCRIPTS[0]), "utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "best model: network" in done.stdout
    assert "pruned: True" in done.stdout
