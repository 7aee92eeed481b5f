"""Fingerprints: the same for the same kernels, another one for anything that changes machine code."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from onlineauto.explorers import EXPLORERS
from onlineauto.jit import Sealed, fingerprint, local_array
from onlineauto.jit.fingerprint import fingerprint_of, kernels_of
from tests.processes import python

pytestmark = pytest.mark.lane("quick")

INNER = """
import numpy as np
from onlineauto.jit import inline_kernel, kernel, local_array

STEP = 3
TABLE = np.array([1, 2])
room = local_array(4, np.int64)

@inline_kernel
def stepped(x):
    return x + STEP

def made(n):
    @kernel
    def closed(x):
        return x * n
    return closed

three = made(3)
"""
OUTER = """
from inner import TABLE, room, stepped, three
from onlineauto.jit import entry_kernel
import math

@entry_kernel
def outer(x):
    room()[0] = TABLE[0]
    return stepped(three(x)) + math.sqrt(2.0)
"""


@pytest.fixture(autouse=True)
def _own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fingerprint._file_digest.cache_clear()
    yield
    fingerprint._file_digest.cache_clear()
    sys.modules.pop("inner", None)


def loaded(name: str, text: str, folder: Path) -> Any:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102 - no file of bytecode may be stale
    return module


def digest(folder: Path, *, inner: str = INNER, outer: str = OUTER) -> str:
    folder.mkdir(exist_ok=True)
    fingerprint._file_digest.cache_clear()
    loaded("inner", inner, folder)
    return fingerprint_of(loaded("outer", outer, folder).outer.py_func)


def test_a_fingerprint_depends_neither_on_folders_nor_on_calls(tmp_path: Path) -> None:
    first = digest(tmp_path / "one")
    sys.modules["inner"].stepped(1)
    assert fingerprint_of(sys.modules.pop("outer").outer.py_func) == first
    assert digest(tmp_path / "two") == first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x + STEP", "x - STEP"),
        ("STEP = 3", "STEP = 4"),
        ("made(3)", "made(4)"),
        ("np.array([1, 2])", "np.array([1, 3])"),
        ("np.array([1, 2])", "np.array([1, 2], np.int32)"),
        ("local_array(4, np.int64)", "local_array(5, np.int64)"),
        ("local_array(4, np.int64)", "local_array(4, np.int32)"),
    ],
)
def test_an_edit_of_a_called_kernel_changes_the_fingerprint(before: str, after: str, tmp_path: Path) -> None:
    assert before in INNER
    assert digest(tmp_path, inner=INNER.replace(before, after)) != digest(tmp_path)


def test_an_edit_of_the_kernel_changes_the_fingerprint(tmp_path: Path) -> None:
    assert digest(tmp_path, outer=OUTER.replace("sqrt", "cbrt")) != digest(tmp_path)


def test_swapped_values_change_the_fingerprint(tmp_path: Path) -> None:
    """No file says so if they come from one without kernels."""
    outer = OUTER.replace("inner import ", "inner import HIGH, LOW, four, ").replace(
        "math.sqrt", "HIGH - LOW * "
    )
    inner = INNER + "HIGH, LOW, four = 2, 1, made(4)\n"
    one = digest(tmp_path, inner=inner, outer=outer)
    module: Any = sys.modules["outer"]
    for names in (("HIGH", "LOW"), ("three", "four")):
        before, after = (getattr(module, name) for name in names)
        vars(module).update(zip(names, (after, before), strict=True))
        assert fingerprint_of(module.outer.py_func) != one
        vars(module).update(zip(names, (before, after), strict=True))
        assert fingerprint_of(module.outer.py_func) == one


@pytest.mark.parametrize(
    "other",
    [
        "def f(x): return x + 2",
        "def f(x): return x - 1",
        "def f(x, y=1): return x + 1",
        "def f(x): return len(x)",
        "def f(x): return (lambda: x + 1)()",
    ],
)
def test_kernels_without_a_file_differ_by_their_bytecode(other: str) -> None:
    def made(text: str) -> Any:
        exec(text, found := {"__name__": "shell"})  # noqa: S102 - as a shell does
        return found["f"]

    text = "def f(x): return x + 1"
    assert fingerprint_of(made(other)) != fingerprint_of(made(text)) == fingerprint_of(made(text))


def test_default_values_change_the_fingerprint() -> None:
    def made(value: float) -> Any:
        def f(x: float, y: float = value) -> float:
            return x + y

        return f

    assert fingerprint_of(made(1.0)) != fingerprint_of(made(2.0)) == fingerprint_of(made(2.0))


def coloured(red: int) -> Any:
    return IntEnum("Colour", {"RED": red})


class Other(NamedTuple):
    one: int
    other: float = 1.0


class Pair(NamedTuple):
    one: int
    other: float


VALUES: list[Any] = [
    *(0, 1, -1, 1.0, -0.0, 0.0, True, False, None, "1", b"1", (1,), (1, 1), (), ((1,), 1), (1, (1,))),
    *(np.int64(1), np.int32(1), np.float32(1), np.float64(1), np.bool_(True), np.uint8(1)),
    *(
        np.zeros(2),
        np.zeros(3),
        np.zeros((2, 1)),
        np.zeros((2, 2)),
        np.zeros((2, 2), order="F"),
        np.zeros(2, np.float32),
        np.array([0, -0.0]),
    ),
    *(np.dtype(np.int64), np.dtype([("a", np.int64)]), np.dtype([("b", np.int64)])),
    *(coloured(1), coloured(2), coloured(1).RED, coloured(2).RED, Other),
    *(np.int64, Pair, float, np, len, local_array(2, np.int8), local_array(2, np.uint8)),
]


def closed_over(value: Any) -> Any:
    def outer(x: Any) -> Any:
        return x, value

    return outer


def test_every_named_value_changes_the_fingerprint() -> None:
    digests = [fingerprint_of(closed_over(value)) for value in VALUES]
    alike = [
        (one, other)
        for i, one in enumerate(VALUES)
        for j, other in enumerate(VALUES[:i])
        if digests[i] == digests[j]
    ]
    assert alike == []


@pytest.mark.parametrize(
    "value",
    [[1], {1: 2}, {1}, object(), Sealed(Pair(1, 2.0)), iter(()), fingerprint, random, (1, [2])],
    ids=lambda value: type(value).__name__,
)
def test_values_of_other_kinds_are_rejected(value: Any) -> None:
    with pytest.raises(TypeError, match="on which machine code cannot depend"):
        fingerprint_of(closed_over(value))


def test_kernels_are_counted_once(tmp_path: Path) -> None:
    digest(tmp_path)
    assert kernels_of(sys.modules.pop("outer").outer.py_func) == 3


PACKAGE = """
from onlineauto.engine.loop.run_kernels import run_events
from onlineauto.explorers import EXPLORERS
from onlineauto.jit.fingerprint import fingerprint_of

kernels = [run_events, *(EXPLORERS[name].kernel() for name in sorted(EXPLORERS))]
print([fingerprint_of(each.py_func) for each in kernels])
"""


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    digests = {python("-c", PACKAGE, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")}
    assert len(digests) == 1
    assert len(set(digests.pop()[1:-2].split(", "))) == len(EXPLORERS) + 1
