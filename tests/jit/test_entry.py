"""Kernels on the disk: loaded by the next process, which imports nothing that only compiling needs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from onlineauto.jit import cache_directory, entry, is_warm, note_warm, notice, watch_compiling
from onlineauto.jit.inner import Inner

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]

KERNELS = """
import numpy as np
from onlineauto.jit import entry_kernel, kernel

@kernel
def squared(x):
    return x * x

@kernel
def cubed(x):
    return x * squared(x)

@entry_kernel
def total(column):
    sum_ = 0.0
    for x in column:
        sum_ += squared(x) + cubed(x)
    return sum_
"""
SCRIPT = (
    KERNELS
    + """
import sys
from onlineauto.jit import watch_compiling

compiled = []
with watch_compiling(lambda *numbers: compiled.append(numbers)):
    results = total(np.arange(4.0)), total(np.arange(4.0, dtype=np.float32))
heavy = {"numba.np.linalg", "numba.np.arrayobj", "numba.np.random.generator_methods", "numba.cpython.unicode"}
print(*results, len(compiled), len(heavy & set(sys.modules)))
"""
)


def done(script: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ONLINEAUTO_CACHE_DIR": str(cache)}
    process = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )
    assert process.returncode == 0, process.stderr
    return process


def run(script: Path, cache: Path) -> list[float]:
    return [float(word) for word in done(script, cache).stdout.split()]


def test_the_next_process_loads_what_one_has_compiled(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert run(script, tmp_path / "cache") == [50.0, 50.0, 4, 4]
    assert run(script, tmp_path / "cache") == [50.0, 50.0, 0, 0]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Kernels that have never been compiled."""
    monkeypatch.setattr(entry, "_DIRECTORY", tmp_path / "cache")
    path = tmp_path / "fresh.py"
    path.write_text(KERNELS)
    spec = importlib.util.spec_from_file_location("fresh", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fresh", module)
    spec.loader.exec_module(module)
    return module


def test_each_kernel_that_is_compiled_is_counted_once(fresh: Any) -> None:
    before, seen = Inner.made, list[tuple[int, int]]()
    with watch_compiling(lambda number, total: seen.append((number, total))):
        assert fresh.total(np.array([1.0, 2.0])) == 14
        assert fresh.total(np.array([3.0])) == 36
    assert seen == [(1, before), (2, before)]


def test_nobody_listens_afterwards(fresh: Any) -> None:
    seen: list[int] = []
    with watch_compiling(lambda number, _: seen.append(number)):
        pass
    with pytest.raises(ZeroDivisionError), watch_compiling(lambda number, _: seen.append(number)):
        raise ZeroDivisionError
    assert fresh.total(np.array([2.0])) == 12
    assert seen == []
    assert Inner.listeners == []


SILENT = (
    KERNELS
    + """
total(np.arange(4.0)), total(np.arange(4.0, dtype=np.float32))
"""
)


def test_who_sees_nothing_of_compiling_is_told_once_and_a_warm_process_says_nothing(tmp_path: Path) -> None:
    script, cache = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(SILENT)
    said = done(script, cache).stderr
    assert said == (
        f"compiling kernels, which takes up to three minutes, once: they are kept in {cache}; "
        "`onlineauto warmup` compiles them ahead of time\n"
    )
    assert done(script, cache).stderr == ""
    script.write_text(SCRIPT)
    assert done(script, tmp_path / "other").stderr == "", "who watches sees it"


@pytest.mark.parametrize("warm", [False, True])
def test_compiling_is_announced_through_the_logger_unless_all_was_warmed_up(
    fresh: Any, warm: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notice, "is_warm", lambda: warm)
    notice.announce_compiling.cache_clear()
    for kind in (np.float64, np.float32, np.int64):
        assert fresh.total(np.array([2.0]).astype(kind)) == 12
    told = [(record.name, record.levelname, record.msg.split(",")[0]) for record in caplog.records]
    assert told == [("onlineauto", "WARNING", "compiling kernels")] * (not warm)


def test_what_is_compiled_lies_in_a_directory_of_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLINEAUTO_CACHE_DIR", str(tmp_path))
    cache_directory.cache_clear()
    ours = cache_directory()
    assert ours.parent == tmp_path
    note_warm()
    assert not is_warm(), "there is no such directory yet"
    ours.mkdir()
    note_warm("text")
    assert is_warm("text")
    assert not is_warm("json")
    assert not is_warm()
    note_warm()
    assert is_warm()
    assert is_warm("json")
    monkeypatch.setenv("NUMBA_OPT", "1")
    cache_directory.cache_clear()
    assert cache_directory() != ours
    assert not is_warm()
    monkeypatch.undo()
    cache_directory.cache_clear()


def test_a_directory_that_cannot_be_written_is_done_without(
    fresh: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file where the directory would be")
    assert fresh.total(np.array([2.0])) == 12
    assert "for this run only" in caplog.text


def test_what_lies_on_the_disk_is_loaded_without_writing(tmp_path: Path) -> None:
    script, cache = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(SCRIPT)
    run(script, cache)
    for path in (cache, *cache.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert run(script, cache) == [50.0, 50.0, 0, 0]
