"""Print the lines and statements of each part of the package, the tests and the benches, against a commit.

    python -m tests.house.lines [main]

The goals of the whole package are in `GOALS`; the report never fails.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter
from typing import NamedTuple

from tests.house.code import ROOT

FOLDERS = ("onlineauto", "tests", "bench")
GOALS = {"onlineauto": (88_000, 56_000), "tests": (70_000, None), "bench": (10_000, None)}
"""Most lines and most statements of each folder."""


class Size(NamedTuple):
    """Lines and statements by part; a part is a folder of the package, or ``tests`` or ``bench``."""

    lines: Counter[str]
    statements: Counter[str]


def size_of(files: dict[str, str]) -> Size:
    """Return the size of Python files, given as text by path."""
    size = Size(Counter(), Counter())
    for path, text in files.items():
        folder, _, rest = path.partition("/")
        inner = rest.partition("/")[0].removesuffix(".py")
        parts = (folder, f"{folder}/{inner}") if folder == "onlineauto" else (folder,)
        statements = sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(text)))
        for part in parts:
            size.lines[part] += text.count("\n")
            size.statements[part] += statements
    return size


def files_of_tree() -> dict[str, str]:
    """Return the Python files as they are."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def files_of_commit(commit: str) -> dict[str, str]:
    """Return the Python files of a commit, none if there is no such commit."""
    done = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        return {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        return {
            member.name: file.read().decode()
            for member in archive
            if member.name.startswith(FOLDERS) and member.name.endswith(".py")
            if (file := archive.extractfile(member))
        }


def differences(new: Size, old: Size) -> list[str]:
    """Return the lines of the table, each part with its change."""
    rows = [f"{'':28}{'lines':>9}{'change':>9}{'statements':>12}{'change':>9}"]
    for part in sorted(new.lines.keys() | old.lines.keys()):
        cells = ""
        for now, before, width in ((new.lines, old.lines, 9), (new.statements, old.statements, 12)):
            change = f"{now[part] - before[part]:+,}" if before else ""
            cells += f"{now[part]:{width},}{change:>9}"
        most = [f"{goal:,}" for goal in GOALS.get(part, ()) if goal]
        rows.append(f"{part:28}{cells}" + (f"  goal: {' and '.join(most)}" if most else ""))
    return rows


if __name__ == "__main__":
    print(
        "\n".join(
            differences(size_of(files_of_tree()), size_of(files_of_commit((sys.argv[1:] or ["main"])[0])))
        )
    )
