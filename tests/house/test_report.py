"""The report for readers: it finds what it looks for."""

from __future__ import annotations

import ast

from tests.house.__main__ import lines_of_code, report


def test_every_rule_reads_the_whole_package() -> None:
    found = report()
    assert len(found) == 7
    twice = next(finds for title, finds in found.items() if "class names" in title)
    assert any(each.startswith("AutoMLRegressor: api/regressor.py") for each in twice)


def test_a_docstring_is_no_code() -> None:
    (function,) = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    x = 1\n    return x\n').body
    assert isinstance(function, ast.FunctionDef)
    assert lines_of_code(function) == 3
