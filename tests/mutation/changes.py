"""Small changes of source code, one at a time, inside its functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

_PAIRS: list[tuple[Any, Any]] = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq)]
_PAIRS += [(ast.Add, ast.Sub), (ast.And, ast.Or)]
SWAPPED: dict[Any, Any] = dict(_PAIRS) | {two: one for one, two in _PAIRS}
"""Operators, and which other one takes the place of each."""


class Mutant(NamedTuple):
    """A source with one change: the line it is in, the code there before and after, and all of the code."""

    line: int
    before: str
    after: str
    source: str


class _Replacing(ast.NodeTransformer):
    """Puts one node in the place of another one."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _changed(node: ast.AST) -> ast.AST | None:
    """Return a replacement of a node, or None if there is none."""
    match node:
        case ast.Compare(ops=[one, *others]) if type(one) in SWAPPED:
            return ast.Compare(node.left, [SWAPPED[type(one)](), *others], node.comparators)
        case ast.BinOp(op=one) if type(one) in SWAPPED:
            return ast.BinOp(node.left, SWAPPED[type(one)](), node.right)
        case ast.BoolOp(op=either):
            return ast.BoolOp(SWAPPED[type(either)](), node.values)
        case ast.Constant(value=int() | float() as value) if value in (0, 1) and not isinstance(value, bool):
            return ast.Constant(type(value)(1 - value))
        case ast.AugAssign() | ast.Expr(value=ast.Call(args=[_, *_])) | ast.Assign(targets=[ast.Subscript()]):
            # What binds a name stays, for the rest would not compile; so does short_loop(), which only hints.
            return ast.Pass()
    return None


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each node of the functions that can be changed, with what can stand in its place."""
    for function in tree.body:
        for statement in function.body if isinstance(function, ast.FunctionDef) else ():
            for node in ast.walk(statement):
                changed = _changed(node)
                if changed is not None:
                    yield node, changed


def count_mutants(source: str) -> int:
    """Return the number of mutants of a source."""
    return sum(1 for _ in _places(ast.parse(source)))


def mutant(source: str, number: int) -> Mutant:
    """Return one of the mutants of a source, counted from 0; its code has no comments."""
    tree = ast.parse(source)
    old, new = list(_places(tree))[number]
    before, line = ast.unparse(old), old.lineno  # type: ignore[attr-defined]
    changed = ast.fix_missing_locations(_Replacing(old, new).visit(tree))
    return Mutant(line, before, ast.unparse(new), ast.unparse(changed) + "\n")
