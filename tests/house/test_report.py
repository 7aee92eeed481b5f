"""The report for readers: it finds what it looks for."""

from __future__ import annotations

import ast

from tests.house.__main__ import lines_of_code, report
from tests.house.lines import differences, size_of


def test_every_rule_reads_the_whole_package() -> None:
    found = report()
    assert len(found) == 8
    twice = next(finds for title, finds in found.items() if "class names" in title)
    assert any(each.startswith("AutoMLRegressor: api/regressor.py") for each in twice)


def test_docstrings_do_not_count_as_code() -> None:
    (function,) = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    x = 1\n    return x\n').body
    assert isinstance(function, ast.FunctionDef)
    assert lines_of_code(function) == 3


def test_sizes_are_counted_by_part_and_compared() -> None:
    old = size_of({"onlineauto/api/one.py": "x = 1\n", "tests/test_one.py": "x = 1\n"})
    new = size_of({"onlineauto/api/one.py": "x = 1\nif x:\n    x = 2\n", "onlineauto/coba.py": "y = 1\n"})
    assert new.statements == {"onlineauto": 4, "onlineauto/api": 3, "onlineauto/coba": 1}
    rows = [line.split()[:5] for line in differences(new, old)[1:]]
    assert rows[1] == ["onlineauto/api", "3", "+2", "3", "+2"]
    assert rows[3] == ["tests", "0", "-1", "0", "-1"]
