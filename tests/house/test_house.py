"""Rules of the house without exceptions; `python -m tests.house` reports what needs a reader's judgement."""

from __future__ import annotations

import ast
import os
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.code import (
    FILES,
    KERNEL_FILES,
    KERNELS,
    PACKAGE,
    ROOT,
    Function,
    decorators,
    functions,
    named,
    parsed,
)

pytestmark = pytest.mark.lane("quick")

MEMBER_FILES = sorted((PACKAGE / "engine" / "ensemble" / "members").glob("[a-z]*.py"))
EXPLORER_FILES = sorted((PACKAGE / "explorers" / "kinds").glob("[a-z]*.py"))
"""Files that make a kernel when they are asked for it."""
IN_PYTHON = {
    "make_evidence",
    "make_scale",
    "stored_evidence",
    "_powers_by_steps",
    "_word_at",
    "bitmap_size",
    "insert",
    "level",
    "name_of",
    "times_taken",
    "_make_add",
    "make_pair_loop",
    "make_triple_loop",
}
"""Functions in kernel files that only Python calls: to make constants or kernels, to know sizes or levels.

`insert` fills a table without machine code.
"""


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


def test_package_has_layers() -> None:
    assert len(FILES) > 40


def test_numba_is_imported_only_by_jit() -> None:
    outside = [path for path in FILES if Path(named(path)).parts[0] != "jit"]
    assert not [named(path) for path in outside if "numba" in imported(parsed(path))]


def identifiers(tree: ast.Module) -> set[str]:
    """Return the names that code uses: of variables, parameters, attributes and keywords."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            found.add(node.arg)
    return found


def test_only_one_package_uses_the_word_exact() -> None:
    """Elsewhere an oddity of Vowpal Wabbit has a name; these files choose the mode, or make its options."""
    modes = {"workspace/options.py", "workspace/option_types.py"}
    choose = modes | {"cli/warmup.py"}
    outside = [path for path in FILES if not named(path).startswith("exact/") and named(path) not in choose]
    assert not [
        named(path) for path in outside if identifiers(parsed(path)) & {"exact", "_exact", "vw_exact"}
    ]


def test_only_the_command_line_prints() -> None:
    prints = [
        f"{named(path)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(parsed(path))
        if Path(named(path)).parts[0] != "cli"
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert not prints


def exported(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def documented(tree: ast.Module) -> set[str]:
    """Names that have a docstring, or come from another module; constants have theirs on the next line.

    What a package imports on first use it imports for type checkers, too.
    """
    names: set[str] = set()
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, Function | ast.ClassDef) and ast.get_docstring(node):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.If):
            imports = (each for each in node.body if isinstance(each, ast.ImportFrom))
            names |= {alias.asname or alias.name for each in imports for alias in each.names}
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


def test_public_names_are_documented() -> None:
    assert not [named(path) for path in FILES if not ast.get_docstring(parsed(path))]
    lazy = {"Block", "Evaluation", "Event", "Predictor", "Run", "Workspace", "__version__", "convert", "read"}
    bare = {
        named(path): set(exported(parsed(path))) - documented(parsed(path)) - lazy_here
        for path in FILES
        for lazy_here in [lazy if path == PACKAGE / "__init__.py" else set()]
    }
    assert not {path: names for path, names in bare.items() if names}


def test_kernels_are_compiled() -> None:
    plain = [
        f"{named(path)} {node.name}"
        for path in KERNEL_FILES
        for node in parsed(path).body
        if isinstance(node, Function)
        and node.name not in IN_PYTHON
        and (not decorators(node) or not KERNELS.issuperset(decorators(node)))
    ]
    assert not plain


def test_compiled_functions_live_in_kernel_files() -> None:
    elsewhere = [
        f"{named(path)} {node.name}"
        for path in FILES
        if path.parent != PACKAGE / "jit" and path not in (*KERNEL_FILES, *EXPLORER_FILES, *MEMBER_FILES)
        for node in functions(path)
        if not KERNELS.isdisjoint(decorators(node))
    ]
    assert not elsewhere


INEXACT = [
    *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "logaddexp", "power", "float_power", "pow"),
    *("sin", "cos", "tan", "arctan", "arctan2", "sinh", "cosh", "tanh", "cbrt", "hypot"),
]


def rounds_by_processor(node: ast.AST) -> bool:
    """Return whether the last bits of a value may depend on the processor that NumPy computes it with."""
    inexact = [f"np.{name}" for name in INEXACT]
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and ast.unparse(each.func) in inexact:
            return True
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Pow) and "np." in ast.unparse(each):
            return True
    return False


def test_constants_of_kernels_are_the_same_on_every_processor() -> None:
    """Otherwise the package's bitcode is for some processors only, and results differ in their last bits."""
    assert rounds_by_processor(ast.parse("1.6 ** -np.arange(4.0)"))
    assert rounds_by_processor(ast.parse("X - np.log1p(X)"))
    assert not [
        f"{named(path)}:{node.lineno}"
        for path in KERNEL_FILES
        for node in parsed(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and rounds_by_processor(node)
    ]


def place_of_module(name: str) -> Path:
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"


def test_modules_of_options_import_only_the_standard_library() -> None:
    """The modules that declare options, and all modules of ours that they import."""
    seen: set[str] = set()
    declare = [*PACKAGE.glob("*/options.py"), *PACKAGE.glob("engine/options/*.py")]
    waiting = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in declare}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        file = place_of_module(name)
        packages = {".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1)}
        modules = modules_without_type_checking(parsed(file)) | packages
        internal = {module for module in modules if module.partition(".")[0] == "onlineauto"}
        others = {module.partition(".")[0] for module in modules - internal}
        assert others <= sys.stdlib_module_names, name
        waiting |= internal - seen


HEAVY = {"llvmlite", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "river", "scipy", "vowpalwabbit"}


def loaded_by(code: str) -> set[str]:
    """Heavy packages that a fresh interpreter without a library of kernels has loaded after `code`."""
    report = f"import sys; print(*{HEAVY} & {{name for name, module in sys.modules.items() if module}})"
    run = [sys.executable, "-c", f"import contextlib, io\n{code}\n{report}"]
    environment = os.environ | {"ONLINEAUTO_KERNELS": "none"}
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return set(done.stdout.split())


def test_import_is_light() -> None:
    assert not loaded_by("import onlineauto")
    assert loaded_by("import numpy") == {"numpy"}  # so this way of looking does see them


def test_interop_is_an_attribute_after_an_import_of_the_package() -> None:
    assert not loaded_by("import onlineauto; assert 'read_vw_model' in onlineauto.interop.__all__")


@pytest.mark.parametrize("words", [["--help"], ["learn", "--help"], ["--version"]])
def test_help_is_light(words: list[str]) -> None:
    code = f"""
from onlineauto.cli.main import main
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
    main({words!r})
assert out.getvalue()"""
    assert not loaded_by(code)


def test_a_run_loads_what_is_required_and_nothing_else() -> None:
    """Without a library, kernels on the disk are linked by `onlineauto.jit.loading`, or else by LLVM.

    Numba imports scipy for its version, where it is installed; so here it seems not to be.
    """
    code = """
import sys
sys.modules.update(scipy=None, river=None)
from onlineauto import Workspace
event = b"shared |a x\\n0:-1:0.5 |b y\\n|b z\\n\\n"
Workspace(cb_explore_adf=True, automl=2, lease=1, bit_precision=8).fit(2500 * event)"""
    loaded_by(code)  # Numba looks for SciPy where it has to compile, which is over then
    linked = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    assert loaded_by(code) == {"numpy", "llvmlite"} - ({"llvmlite"} if linked else set())


EXTRAS_IN_USE = (
    "blocks",
    "coba",
    "configspace",
    "frames",
    "inspect",
    "kafka",
    "openfeature",
    "optuna",
    "otel",
    "parquet",
    "plot",
    "progress",
    "ray",
    "river",
    "service",
    "sklearn",
    "tune",
    "zstd",
    "xgboost",
)
"""Extras that the package imports where it is asked to."""


def modules_of(requirements: list[str]) -> set[str]:
    """Top-level modules of what is required: named as the project is, or as the part before its first dot."""
    names = {
        "scikit-learn": "sklearn",
        "prometheus-client": "prometheus_client",
        "confluent-kafka": "confluent_kafka",
        "openfeature-sdk": "openfeature",
        "opentelemetry-": "opentelemetry.",
    }
    renamed = [
        next((requirement.replace(*each) for each in names.items() if each[0] in requirement), requirement)
        for requirement in requirements
    ]
    return {re.split(r"[^\w]", requirement, maxsplit=1)[0] for requirement in renamed}


def test_required_packages_are_the_imported_ones() -> None:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = written["project"]["optional-dependencies"]
    required = written["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"] + extras["compiler"]
    declared = modules_of(required) | {"llvmlite"}  # which Numba brings
    optional = set().union(*(modules_of(extras[name]) for name in EXTRAS_IN_USE))
    brought = {*sys.stdlib_module_names, "compression", "_typeshed"}  # by later Pythons, and by type checkers
    used = set().union(*(imported(parsed(path)) for path in FILES)) - brought - {"onlineauto"}
    assert used == (declared | optional)


@pytest.mark.parametrize("folder", ["records", "ensemble"])
def test_records_have_at_most_16_fields(folder: str) -> None:
    """A record of more than 16 fields is several records."""
    large = {
        f"{named(path)}: {node.name}"
        for path in sorted((PACKAGE / "engine" / folder).rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and sum(isinstance(each, ast.AnnAssign) for each in node.body) > 16
    }
    assert not large
