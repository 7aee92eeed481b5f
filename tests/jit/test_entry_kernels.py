"""Entry kernels: what Python of the package calls is one, and no other kernel is a program on the disk."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

import numpy as np
import pytest

import onlineauto
from onlineauto.explorers import EXPLORERS
from onlineauto.jit.code import Code, Kernel, code_for
from onlineauto.jit.fingerprint import fingerprint_of
from onlineauto.jit.packing import Packed
from onlineauto.workspace.workspace import Workspace
from tests.engine.test_native_search import crossed_stream
from tests.jit.scripts import compiled
from tests.processes import python


@cache
def modules() -> list[Any]:
    """Return all modules, but for those whose extra is not installed."""
    found = []
    for each in pkgutil.walk_packages(onlineauto.__path__, "onlineauto."):
        try:
            if not each.name.endswith("__main__"):
                found.append(importlib.import_module(each.name))
        except ModuleNotFoundError as error:
            if str(error.name).startswith("onlineauto"):
                raise
    return found


def kernels() -> list[Kernel]:
    found = {
        id(each): each for module in modules() for each in vars(module).values() if isinstance(each, Kernel)
    }
    made: list[Any] = [each.kernel() for each in EXPLORERS.values()]
    return [*found.values(), *made]


def function_of(kernel: Kernel) -> FunctionType:
    return cast("FunctionType", kernel.py_func)


def is_entry(kernel: Kernel) -> bool:
    return inspect.getsource(kernel.py_func).strip().startswith("@entry_kernel\n")


def called_by_python(module: Any) -> Iterator[tuple[str, Kernel]]:
    """Kernels that functions and methods of a module name, and the names of these."""
    for value in vars(module).values():
        if getattr(value, "__module__", "") != module.__name__ or isinstance(value, Kernel):
            continue
        for each in vars(value).values() if isinstance(value, type) else [value]:
            function = inspect.unwrap(getattr(each, "fget", None) or getattr(each, "__func__", None) or each)
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                for name in names_in(function.__code__):
                    kernel = function.__globals__.get(name)
                    if isinstance(kernel, Kernel):
                        yield function.__qualname__, kernel


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from names_in(each)


def test_kernels_called_by_python_are_entry_kernels() -> None:
    called = [(module.__name__, *each) for module in modules() for each in called_by_python(module)]
    assert len(called) > 40
    wrong = [(where, who, each.py_func.__name__) for where, who, each in called if not is_entry(each)]
    assert wrong == []


def test_every_kernel_of_the_package_has_a_fingerprint() -> None:
    every = kernels()
    assert len(every) > 300
    digests = {fingerprint_of(function_of(each)) for each in every if is_entry(each)}
    assert len(digests) == sum(map(is_entry, every))
    for each in every:
        fingerprint_of(function_of(each))


def named(kernel: Kernel) -> str:
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}".replace(".", "_")


@pytest.mark.slow
def test_after_warming_up_only_entry_kernels_are_on_the_disk(tmp_path: Path) -> None:
    python("-m", "onlineauto", "warmup", ONLINEAUTO_KERNELS="none", ONLINEAUTO_CACHE_DIR=str(tmp_path))
    entries = {named(each) for each in kernels() if is_entry(each)}
    programs = [path.stem.rsplit("_", 2)[0] for path in compiled(tmp_path)]
    assert len(programs) > 20
    assert set(programs) <= entries


@pytest.mark.parametrize("exact", [False, True])
def test_no_machine_code_is_requested_after_the_first_events(
    exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def asked(function: FunctionType, packed: Packed) -> Code:
        found.append(function.__qualname__)
        return code_for(function, packed)

    monkeypatch.setattr("onlineauto.jit.code.code_for", asked)
    for kernel in kernels():
        monkeypatch.setattr(kernel, "_codes", {})
    easy: dict[str, Any] = {"automl_significance_level": 0.9, "lease": 200} if exact else {}
    workspace = Workspace(cb_explore_adf=True, automl=3, bit_precision=14, l1=1e-9, vw_exact=exact, **easy)
    workspace.fit(crossed_stream(2).encode())
    assert len(found) > 5
    found.clear()
    workspace.fit(crossed_stream(5000).encode())
    copies = copy.deepcopy(workspace), pickle.loads(pickle.dumps(workspace))  # noqa: S301
    for each in (workspace, *copies):
        each.fit(crossed_stream(50, seed=2).encode())
    assert workspace.searching.changes, "the champion has changed"
    assert found == []
    for each in copies:
        assert np.array_equal(each.weights, workspace.weights)
        assert not np.shares_memory(each.learner.model.table, workspace.learner.model.table)
