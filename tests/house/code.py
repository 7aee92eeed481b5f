"""The package's files as syntax trees."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "onlineauto"
FILES = sorted(PACKAGE.rglob("*.py"))
TEST_FILES = sorted(path for name in ("tests", "bench") for path in (ROOT / name).rglob("*.py"))
KERNEL_FILES = [path for path in FILES if path.name.endswith("_kernels.py")]
KERNELS = {"entry_kernel", "inline_kernel", "kernel"}
"""Decorators that compile a function."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


def named(path: Path) -> str:
    """Return a file's path inside the package, or inside the repository for tests and benches."""
    return path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).as_posix()


def functions(path: Path) -> list[Function]:
    """Return all functions of a file, nested ones and methods included."""
    return [node for node in ast.walk(parsed(path)) if isinstance(node, Function)]


def decorators(node: Function) -> list[str]:
    """Return the names of a function's decorators, without their arguments."""
    called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return [each.id for each in called if isinstance(each, ast.Name)]
