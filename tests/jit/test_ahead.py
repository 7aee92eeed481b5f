"""Programs compiled ahead by other processes: which programs, how many processes, and killed processes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.engine.search.drift import make_window
from onlineauto.estimators.adaptive_window_kernels import clear, rises
from onlineauto.features.hash_kernels import murmur3
from onlineauto.jit import ahead, entry_kernel, prepare
from onlineauto.jit.code import Kernel
from onlineauto.jit.fingerprint import symbol_of
from onlineauto.jit.packing import Packed, pack
from tests.jit.scripts import compiled, finish, start
from tests.waiting import until

pytestmark = pytest.mark.lane("ci")


BANDIT = "shared |u a:1 b\n0:-1:0.5 |z c\n|z d\n\nshared |u a:2 e\n|z c\n0:0:0.5 |z d\n\n"
SLOTS = "ccb shared |a x\nccb action |b y\nccb action |b z\nccb slot 0:-1:0.5 |\nccb slot |\n\n"
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "the README's": (BANDIT, {"cb_explore_adf": True, "live_configs": 4, "epsilon": 0.1}),
    "drawing": (BANDIT, {"cb_explore_adf": True, "live_configs": 2, "cb_sample": True}),
    "champion": (BANDIT, {"cb_explore_adf": True, "live_configs": 2, "predict_with": "champion"}),
    "policies": (BANDIT, {"cb_explore_adf": True, "bag": 2}),
    "exact": (BANDIT, {"cb_explore_adf": True, "live_configs": 2, "vw_exact": True}),
    "slots": (SLOTS, {"ccb_explore_adf": True}),
    "lines": ("1 |a x:1\n0 |a y |b z\n", {"live_configs": 2}),
    "predicting": ("1 |a x:1\n0 |a y |b z\n", {"testonly": True}),
}

READERS = {"formats", "text_kernels", "hash_kernels", "name_events"}
"""Parts of names of programs that run before the loop and are not planned."""


@pytest.mark.parametrize("mode", MODES)
def test_a_plan_lists_what_a_block_needs(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, options = MODES[mode]
    asked, code = dict[tuple[str, str], bool](), Kernel.code
    whole = False

    def noted(self: Kernel, packed: Packed) -> Any:
        asked[f"{self.py_func.__module__}.{self.py_func.__qualname__}", packed.name] = whole
        return code(self, packed)

    monkeypatch.setattr(Kernel, "code", noted)
    workspace = Workspace(hash_bits=8, **options)
    workspace._runner.prepare()
    planned, whole = set(asked), True
    workspace.fit(text.encode())
    needed = {each for each, late in asked.items() if late}
    first = {name for name, _ in needed - planned}
    assert planned <= needed
    assert all(set(name.split(".")) & READERS for name in first), first
    assert any("run_events" in name for name, _ in planned)


class Owner:
    """Has three programs of the package, and one that is not."""

    def prepare(self) -> None:
        """Ask for them."""
        window = make_window()
        prepare(rises, window, np.zeros(0))
        prepare(clear, window)
        prepare(murmur3, np.zeros(4, np.uint8), 0, 4, np.uint32(0))
        prepare(own, 1.0)


@entry_kernel
def own(x: float) -> float:
    return x


class Missing:
    """The processes that would be started, on a machine of four cores where nothing is compiled."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.started: list[tuple[int, list[str]]] = []
        patch.setattr(ahead, "_run", self._run)
        patch.setattr(ahead, "_exists", lambda _: False)
        patch.setattr(ahead, "can_keep", lambda: True)
        patch.setattr(ahead, "LEAST", 0)
        patch.setattr(threading, "Thread", Immediately)
        for each in (rises, clear, murmur3):
            patch.setattr(each, "_codes", {})
        patch.setenv("ONLINEAUTO_COMPILE_PROCESSES", "4")

    def _run(self, n: int, programs: list[Any]) -> None:
        self.started.append((n, [name.partition(":")[2] for _, name, _ in programs]))
        for symbol, name, kinds in programs:
            kernel = resolve_name(name).py_func
            assert symbol_of(kernel, Packed(tuple(map(ahead.kind_of, kinds)))) == symbol

    def begin(self, owner: Owner) -> list[tuple[int, list[str]]]:
        """Plan the owner's programs, compile one, and return the processes with their programs."""
        self.started = []
        ahead.plan(owner)
        ahead.begin()
        return self.started


class Immediately:
    """A thread that runs in its caller's."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...], *, daemon: bool) -> None:
        assert daemon
        self.start = lambda: target(*args)


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Missing:
    return Missing(monkeypatch)


def test_a_process_starts_for_each_further_program_of_the_package_the_largest_first(missing: Missing) -> None:
    assert missing.begin(Owner()) == [(2, ["rises", "murmur3", "clear"])]


def test_there_are_not_more_processes_than_asked_for(
    missing: Missing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLINEAUTO_COMPILE_PROCESSES", "2")
    assert [n for n, _ in missing.begin(Owner())] == [1]
    monkeypatch.setenv("ONLINEAUTO_COMPILE_PROCESSES", "1")
    assert missing.begin(Owner()) == []


def test_a_plan_starts_processes_once(missing: Missing) -> None:
    owner = Owner()
    assert len(missing.begin(owner)) == 1
    ahead.begin()
    assert len(missing.started) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_exists", lambda _: True),
        ("can_keep", lambda: False),
        ("LEAST", 1000),
        ("processes", lambda: 1),
    ],
)
def test_no_process_starts_if_it_would_be_useless(
    name: str, value: Any, missing: Missing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, name, value)
    assert missing.begin(Owner()) == []


def test_a_plan_ends_with_its_owner(missing: Missing) -> None:
    ahead.plan(Owner())
    gc.collect()
    ahead.begin()
    assert missing.started == []


def test_only_an_interpreter_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.delenv("ONLINEAUTO_COMPILE_PROCESSES", raising=False)
    for executable, n in (("/usr/bin/python3.12", ahead.MOST), ("/usr/sbin/uwsgi", 1), ("", 1)):
        monkeypatch.setattr(sys, "executable", executable)
        assert ahead.processes() == n
    monkeypatch.setattr(sys, "executable", "/opt/python")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert ahead.processes() == 1


SCRIPT = """
import os, sys, time
import numpy as np
from pathlib import Path
from onlineauto.estimators.adaptive_window_kernels import clear, rises
from onlineauto.engine.search.drift import make_window
from onlineauto.features.hash_kernels import murmur3
from onlineauto.jit import ahead, cache_directory, compiling_processes, prepare, watch_compiling
from onlineauto.work.process import running_processes

print("imported", flush=True)
window, text = make_window(), np.zeros(4, np.uint8)

class Owner:
    def prepare(self):
        prepare(murmur3, text, 0, 4, np.uint32(0))
        prepare(clear, window)
        prepare(rises, window, np.zeros(0))

def until(holds):
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)

def workers():
    return running_processes(ahead._WORKER)

def files():
    return sorted(path.name.split("_kernels_")[1].split("_")[0] for path in cache_directory().glob("*.o"))

ahead.LEAST, owner = 0, Owner()
ahead.plan(owner)
os.environ["ONLINEAUTO_COMPILE_PROCESSES"] = "2"
"""
RESULT = "print(rises(window, np.zeros(0)), murmur3(text, 0, 4, np.uint32(0)))\n"
WAITING = """
progress = []
with watch_compiling(lambda *each: progress.append(each)):
    ahead.begin()
    until(lambda: files() == ["clear", "murmur3", "rises"])
    until(lambda: not workers())
print(sorted({name for name, done, total in progress if done == total}), "numba" in sys.modules)
"""


def script(text: str, folder: Path) -> subprocess.Popen[str]:
    path = folder / "script.py"
    path.write_text(SCRIPT + text)
    return start(path, folder / "cache")


def test_another_process_compiles_and_reports_what_this_one_loads(tmp_path: Path) -> None:
    out, err = finish(script(WAITING + RESULT, tmp_path))
    programs = "['clear', 'murmur3', 'rises'] False"
    assert out.splitlines() == ["imported", programs, "False 593689054"]
    assert err == ""


def test_processes_of_one_cache_are_started_by_one_process(tmp_path: Path) -> None:
    text = "with kernel_lock('ahead'):\n    ahead.begin()\n    time.sleep(1)\n    print(files(), workers())\n"
    out, _ = finish(script("from onlineauto.jit.cache import kernel_lock\n" + text, tmp_path))
    assert out.splitlines()[1:] == ["[] []"]


KILLED = """
killed = []

def kill(*progress):
    if not killed and workers():
        killed.extend(workers())
        os.kill(killed[0], 9)

with watch_compiling(kill):
    ahead.begin()
    until(lambda: killed and not workers())
print(len(files()) < 3)
"""


def test_a_killed_process_leaves_its_programs_to_this_one(tmp_path: Path) -> None:
    out, err = finish(script(KILLED + RESULT, tmp_path))
    assert out.splitlines() == ["imported", "True", "False 593689054"]
    assert "Traceback" not in err


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    text = "ahead.begin()\nuntil(workers)\nprint(*workers(), flush=True)\ntime.sleep(100)\n"
    with script(text, tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        worker = Path(f"/proc/{int(process.stdout.readline())}/stat")
        process.kill()
        until(lambda: not worker.exists() or " Z " in worker.read_text())
    assert len(compiled(tmp_path)) < 3


def test_a_process_does_not_compile_sources_that_have_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    window, _ = pack((make_window(),))
    kinds = [ahead.plain_kind(each) for each in window.kinds]
    monkeypatch.setattr("onlineauto.jit.code.compile_program", lambda *_: pytest.fail("compiled"))
    clear_name = "onlineauto.estimators.adaptive_window_kernels:clear"
    ahead.compile_listed(Silent(), [("another_symbol", clear_name, kinds)])  # type: ignore[arg-type]


class Silent:
    """A parent that no message may reach."""

    def send(self, message: object) -> None:
        pytest.fail(f"sent {message}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no os.fork")
def test_a_fork_inherits_neither_processes_nor_locks(tmp_path: Path) -> None:
    text = """
from onlineauto.jit import cache
ahead.begin()
until(workers)
child = os.fork()
if child == 0:
    os._exit(compiling_processes() - 1 + len(cache._handles))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
until(lambda: not workers())
"""
    out, err = finish(script(text, tmp_path))
    assert (out.splitlines(), err) == (["imported", "0"], "")


@pytest.mark.parametrize(("asked", "processes"), [("3", 3), ("1", 1), ("0", 0), ("-5", 1), ("abc", 1)])
def test_the_number_of_processes_is_asked_for(
    asked: str, processes: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ONLINEAUTO_COMPILE_PROCESSES", asked)
    assert ahead.processes() == processes
    assert (f"{asked!r}, not a number" in caplog.text) == (not asked.isdecimal())
