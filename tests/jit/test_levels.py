"""Levels of processors: what is compiled for one is found by every processor of it, and by no lesser one."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from onlineauto.jit import cache, levels
from tests.processes import ROOT, python

V2 = levels._FLAGS["x86-64-v2"]
V3 = levels._FLAGS["x86-64-v3"]

SCRIPT = """
import sys
from onlineauto.jit import cache, entry_kernel, watch_compiling

cache._processor = lambda: sys.argv[1]
cache.runnable_levels = lambda: sys.argv[2:]

@entry_kernel
def successor(x):
    return x + 1

compiled = []
with watch_compiling(lambda *each: compiled.append(each)):
    assert successor(2) == 3
print(len(compiled) > 0)
"""


def forget() -> None:
    """Forget the directories that were found."""
    for each in vars(cache).values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()


@pytest.mark.parametrize(
    ("runnable", "found"), [(("x86-64-v3", "x86-64-v2"), True), (("x86-64-v2",), False), ((), False)]
)
def test_the_directory_of_a_level_is_searched_by_processors_of_it(
    runnable: tuple[str, ...], found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_processor", lambda: "another")
    monkeypatch.setattr(cache, "runnable_levels", lambda: runnable)
    with monkeypatch.context() as inner:
        inner.setenv("ONLINEAUTO_CACHE_DIR", str(tmp_path))
        for switch, value in levels.compiles_for("x86-64-v3").items():
            inner.setenv(switch, value)
        forget()
        cache.keep("symbol", b"code", '"q"')
        for switch in levels.compiles_for("x86-64-v3"):
            inner.delenv(switch)
        forget()
        assert cache.load_object("symbol") == ((b"code", '"q"') if found else None)
    forget()


@pytest.mark.ci
def test_another_processor_of_the_level_compiles_nothing(tmp_path: Path) -> None:
    mine = levels.runnable_levels()
    if not mine:
        pytest.skip("nothing is known of the levels of this processor")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def compiles(*words: str, **environment: str) -> str:
        environment |= {"ONLINEAUTO_KERNELS": "none", "ONLINEAUTO_CACHE_DIR": str(tmp_path)}
        return python(str(script), *words, code=0, PYTHONPATH=str(ROOT), **environment).stdout

    assert compiles("builder", *mine, **levels.compiles_for(mine[0])) == "True\n"
    assert compiles("another", *mine) == "False\n"
    assert compiles("lesser") == "True\n"


def test_what_is_compiled_for_a_level_has_none_of_the_features_beyond_it() -> None:
    script = "from onlineauto.jit.loading import processor; print(*processor(), sep=',')"
    for level in levels.levels():
        assert python("-c", script, code=0, **levels.compiles_for(level)).stdout == f"{level},\n"


def test_a_processor_with_the_features_of_this_one_has_a_directory_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directories = []
    for switches in ({}, {"NUMBA_CPU_NAME": "x86-64-v3"}, levels.compiles_for("x86-64-v3")):
        with monkeypatch.context() as inner:
            for switch, value in switches.items():
                inner.setenv(switch, value)
            forget()
            directories.append(cache.cache_directory())
    forget()
    assert len(set(directories)) == 3


@pytest.mark.parametrize(
    ("flags", "runnable"),
    [
        (V2 | V3, ("x86-64-v3", "x86-64-v2")),
        (V2, ("x86-64-v2",)),
        (V3, ()),
        (V2 | V3 - {"fma"}, ("x86-64-v2",)),
        (set(), ()),
    ],
)
def test_a_processor_runs_the_levels_whose_features_it_has(
    flags: set[str], runnable: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(levels, "_processor_flags", lambda: flags)
    levels.runnable_levels.cache_clear()
    assert levels.runnable_levels() == runnable
    levels.runnable_levels.cache_clear()
