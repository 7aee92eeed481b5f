"""Numba's private parts: every name of them that is used, all in one file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from onlineauto.jit.compiler import numba_private

PLACE = Path(numba_private.__file__)
OTHERS = sorted(set(PLACE.parent.parent.rglob("*.py")) - {PLACE})

PUBLIC = {"numba", "numba.extending"}
"""Modules whose names Numba documents."""
ANY_PLACE = {"_fields", "_replace", "_numba_type_"}
"""Private to look at, but documented: of named tuples, of values with a type of their own."""

MODULES = {
    "numba.core": {"cgutils", "sigutils"},
    "numba.core.compiler_lock": {"global_compiler_lock"},
    "numba.core.registry": {"CPUDispatcher", "cpu_target"},
    "numba.core.typing.templates": {"AttributeTemplate"},
}
"""What is imported from modules that Numba does not document."""
MEMBERS = {
    *("_compiler", "_compiling_counter", "_customize_flags"),  # of dispatchers
    *("_final_module", "_finalize_dynamic_globals", "_finalized", "_get_module_for_linking"),
    *("_linking_libraries", "_optimize_final_module"),  # of libraries of code
    "_getvalue",  # of structures
}
"""Private members of Numba's objects."""
SETTINGS = {"_nrt", "no_cfunc_wrapper"}
"""Settings of ``numba.jit`` that it does not document."""


def numba_imports(path: Path) -> Iterator[tuple[str, str]]:
    """Modules of Numba that a file imports from, and the names it takes; no name for whole modules."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names if each.name.partition(".")[0] == "numba")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
            yield from ((node.module or "", each.name) for each in node.names)


def private_members(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names of members that are read, set or overridden, and of what, if that is a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.value.id if isinstance(node.value, ast.Name) else ""
        elif isinstance(node, ast.ClassDef):
            assigned = [each for each in node.body if isinstance(each, ast.Assign)]
            names = [name for each in assigned for name in each.targets if isinstance(name, ast.Name)]
            yield from ((name.id, node.name) for name in names)
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            yield from ((method.name, node.name) for method in methods)


def private_names(path: Path, *, own: bool) -> set[str]:
    """Private members that a file uses; without `own`, those of other objects than its own."""
    tree = ast.parse(path.read_text("utf-8"))
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return {
        name
        for name, of in private_members(tree)
        if name.startswith("_")
        and not name.startswith("__")
        and name not in ANY_PLACE
        and (own or of not in {"self", "cls", *classes})
    }


def test_other_files_use_what_numba_documents() -> None:
    assert len(OTHERS) > 15
    for path in OTHERS:
        assert {module for module, _ in numba_imports(path)} <= PUBLIC, path.name
        assert private_names(path, own=False) == set(), path.name
        assert private_names(path, own=True) & MEMBERS == set(), path.name


def test_private_names_of_numba_are_listed() -> None:
    found: dict[str, set[str]] = {}
    for module, name in numba_imports(PLACE):
        if module not in PUBLIC:
            found.setdefault(module, set()).add(name)
    assert found == MODULES
    assert private_names(PLACE, own=True) == MEMBERS
    assert set(numba_private.PRIVATE_SETTINGS) == SETTINGS


def test_every_use_of_a_private_name_has_a_comment() -> None:
    """Each function and class has a comment, beside its docstring, that says why it has to be."""
    text = PLACE.read_text("utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    places = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for name in set(numba_private.__all__) - {"PRIVATE_SETTINGS", "AttributeTemplate"}:
        node = places[name]
        assert any(line.strip().startswith("# ") for line in lines[node.lineno : node.end_lineno]), name
