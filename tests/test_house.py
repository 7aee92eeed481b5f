"""The rules of the house that a program can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from onlineauto.jit.cache import kernel_sources

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "onlineauto"
FILES = sorted(PACKAGE.rglob("*.py"))
FORBIDDEN = {"utils", "util", "helpers", "helper", "common", "misc"}

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
each_kernel_file = pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.name.endswith("_kernels.py")],
    ids=lambda path: path.relative_to(PACKAGE).as_posix(),
)
AT_IMPORT = {"_powers_by_steps", "_word_at", "name_of"}
"""Functions in kernel files that make a constant when the module is imported."""

KERNELS = {"entry_kernel", "inline_kernel", "kernel"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported(tree: ast.AST) -> set[str]:
    """Top-level packages that a piece of code imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


def modules_without_type_checking(tree: ast.Module) -> set[str]:
    """Full names of modules that importing this one imports."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_there_is_a_house() -> None:
    assert len(FILES) > 40


@each_file
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 500


@each_file
def test_functions_are_short(path: Path) -> None:
    limit = 120 if path.name.endswith("_kernels.py") else 80
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < limit, node.name


@each_file
def test_names_of_files_say_what_is_in_them(path: Path) -> None:
    words = {word for part in path.relative_to(PACKAGE).with_suffix("").parts for word in part.split("_")}
    assert not words & FORBIDDEN


@each_file
def test_numba_is_imported_only_by_jit(path: Path) -> None:
    if path.relative_to(PACKAGE).parts[0] != "jit":
        assert "numba" not in imported(parsed(path))


@each_file
def test_only_the_command_line_prints(path: Path) -> None:
    if path.relative_to(PACKAGE).parts[0] == "cli":
        return
    calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    assert not [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


def exported(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def documented(tree: ast.Module) -> set[str]:
    """Names that have a docstring, or come from another module; constants have theirs on the next line."""
    names: set[str] = set()
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, Function | ast.ClassDef) and ast.get_docstring(node):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {
                name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
    return names


@each_file
def test_public_names_are_documented(path: Path) -> None:
    tree = parsed(path)
    assert ast.get_docstring(tree), "the module has no docstring"
    lazy = (
        {"Block", "Evaluation", "Event", "Workspace", "__version__", "convert", "read"}
        if path == PACKAGE / "__init__.py"
        else set()
    )
    assert set(exported(tree)) - documented(tree) - lazy == set()


@each_kernel_file
def test_kernels_are_compiled(path: Path) -> None:
    for node in parsed(path).body:
        if isinstance(node, Function):
            decorators = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
            if node.name in AT_IMPORT:
                continue
            names = [each.id for each in decorators if isinstance(each, ast.Name)]
            assert len(names) == 1, node.name
            assert names[0] in KERNELS, node.name


@each_file
def test_compiled_functions_live_in_kernel_files(path: Path) -> None:
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function) and node.decorator_list and path.parent != PACKAGE / "jit":
            names = [each.id for each in node.decorator_list if isinstance(each, ast.Name)]
            assert KERNELS.isdisjoint(names) or path.name.endswith("_kernels.py"), node.name


def place_of_module(name: str) -> Path:
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"


@pytest.mark.parametrize("path", kernel_sources(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_compiled_code_depends_on_files_that_the_cache_is_stamped_with(path: Path) -> None:
    modules = modules_without_type_checking(parsed(path))
    ours = {place_of_module(name) for name in modules if name.partition(".")[0] == "onlineauto"}
    assert ours <= set(kernel_sources())


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("options.py")), ids=lambda path: path.parent.name)
def test_modules_of_options_import_only_the_standard_library(path: Path) -> None:
    """Theirs, and that of all modules of ours that they import."""
    seen: set[str] = set()
    waiting = {".".join(path.relative_to(ROOT).with_suffix("").parts)}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        file = place_of_module(name)
        packages = {".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1)}
        modules = modules_without_type_checking(parsed(file)) | packages
        ours = {module for module in modules if module.partition(".")[0] == "onlineauto"}
        others = {module.partition(".")[0] for module in modules - ours}
        assert others <= sys.stdlib_module_names, name
        waiting |= ours - seen


def loaded_by(code: str) -> set[str]:
    """Heavy packages that a fresh interpreter has loaded after `code`."""
    report = "import sys; print(*sorted({'numba', 'numpy', 'scipy', 'llvmlite'} & set(sys.modules)))"
    run = [sys.executable, "-c", f"import contextlib, io\n{code}\n{report}"]
    return set(subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split())


def test_import_is_light() -> None:
    assert loaded_by("import onlineauto") == set()
    assert loaded_by("import numpy") == {"numpy"}  # so this way of looking does see them


@pytest.mark.parametrize("words", [["--help"], ["learn", "--help"], ["--version"]])
def test_help_is_light(words: list[str]) -> None:
    code = f"""
from onlineauto.cli.main import main
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
    main({words!r})
assert out.getvalue()"""
    assert loaded_by(code) == set()
