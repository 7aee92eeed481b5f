"""Compiling in the background: once for all waiting callers, which can be interrupted."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.jit.scripts import KERNELS, compiled, finish, run, start
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lane("ci")

AT_ONCE = 2.0
"""Seconds within which a process ends that was told to, if the machine has nothing else to do."""
TRIES = 5
"""Times that are tried for one that ends at once: a machine is not busy each time."""

SHOWN = (
    KERNELS
    + """
with watch_compiling(lambda program, done, total: print(program, done, flush=True)):
    print(total(np.arange(4.0)))
"""
)


def test_of_several_processes_one_compiles(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SHOWN)
    processes = [start(script, tmp_path / "cache") for _ in range(4)]
    told = sorted(finish(each)[0] for each in processes)
    assert told == ["50.0\n"] * 3 + ["total 1\ntotal 2\ntotal 2\ntotal 3\n50.0\n"]
    assert len(compiled(tmp_path)) == 1


THREADS = (
    KERNELS
    + """
import threading

@entry_kernel
def other(x):
    return cubed(x) + 1.0

@entry_kernel
def third(x):
    return squared(x) - 1.0

heard, results, together = [], [], threading.Barrier(12)

def call(i):
    together.wait()
    results.append([lambda: total(np.arange(4.0)), lambda: other(2.0), lambda: third(3.0)][i % 3]())

with watch_compiling(lambda program, done, whole: heard.append(program) if done == whole else None):
    threads = [threading.Thread(target=call, args=(i,)) for i in range(12)]
    for each in threads: each.start()
    for each in threads: each.join()
print(sorted(results) == [8.0] * 4 + [9.0] * 4 + [50.0] * 4, sorted(heard))
"""
)


def test_of_several_threads_one_compiles(tmp_path: Path) -> None:
    assert run(THREADS, tmp_path) == ("True ['other', 'third', 'total']\n", "")
    assert run(THREADS, tmp_path) == ("True []\n", ""), "and all load what is there"


FORKS = (
    KERNELS
    + """
import os, threading, warnings
warnings.simplefilter("ignore")

@entry_kernel
def other(x):
    return cubed(x) + 1.0

def in_child(check):
    child = os.fork()
    if not child:
        os._exit(0 if check() else 1)
    return os.waitpid(child, 0)[1] == 0

known = total(np.arange(4.0))
print(in_child(lambda: total(np.arange(4.0)) == known))
print(in_child(lambda: other(2.0) == 9.0))

begun = threading.Event()
with watch_compiling(lambda *_: begun.set()):
    waits = threading.Thread(target=lambda: total(np.arange(4)))
    waits.start()
    begun.wait()
    print(in_child(lambda: total(np.arange(4)) == 50 and other(np.float32(2)) == 9.0))
    waits.join()
print(total(np.arange(4)))
"""
)


def test_children_of_a_fork_call_and_compile(tmp_path: Path) -> None:
    assert run(FORKS, tmp_path)[0].split() == ["True", "True", "True", "50.0"]


SLOW = (
    KERNELS
    + """
import os, signal, threading, time

@entry_kernel
def large(x):
    total = 0.0
"""
    + "".join(
        f"    for i{i} in range(int(x)):\n        total += cubed(x + {i}.0) / (i{i} + 1.0)\n"
        for i in range(150)
    )
    + """
    return total
"""
)
"""A kernel that takes LLVM some seconds."""


def test_an_interrupted_call_ends_at_once_and_python_continues(tmp_path: Path) -> None:
    text = (
        SLOW
        + """
signals = []

def interrupt():
    signals.append("interrupt")
    os.kill(os.getpid(), signal.SIGINT)

def begins(program, done, whole):
    if program == "large" and not signals:
        signals.append("begun")
        threading.Timer(0.2, interrupt).start()
    if program == "large" and done == whole:
        signals.append("compiled")

with watch_compiling(begins):
    try:
        large(2.0)
    except KeyboardInterrupt:
        print(*signals)
print(total(np.arange(4.0)))
print(large(2.0) > 0, large(2.0) == large.py_func(2.0))
"""
    )
    assert run(text, tmp_path)[0].splitlines() == ["begun interrupt", "50.0", "True True"]


COMMAND = """
import sys
from onlineauto.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
EVENT = "shared |a x\n0:-1:0.5 |b y\n|b z\n\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("verb", ["learn", "warmup"])
def test_the_command_line_ends_at_once_while_it_compiles(
    verb: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    (tmp_path / "s.txt").write_text(EVENT)
    script = tmp_path / "script.py"
    script.write_text(COMMAND)
    words = ["-d", str(tmp_path / "s.txt"), "--cb_explore_adf"] if verb == "learn" else [verb]
    by_itself = verb == "learn" or number is signal.SIGINT  # the system ends the others, for shells with 143
    for at in range(TRIES):
        cache = tmp_path / f"cache {at}"
        with start(script, cache, *words) as process:
            assert process.stderr is not None
            until(lambda: list(cache.rglob(".*.lock")))  # noqa: B023
            time.sleep(2.0)
            began = time.perf_counter()
            process.send_signal(number)
            process.wait(PATIENCE)
            seconds = time.perf_counter() - began
            err = process.stderr.read()
        assert process.returncode == (code if by_itself else -number), err
        assert "Traceback" not in err
        if seconds < AT_ONCE:
            return
    pytest.fail(f"{TRIES} times it took more than {AT_ONCE} s, the last time {seconds:.3f} s")
