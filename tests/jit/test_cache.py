"""The kernel cache: the next process loads kernels, and damaged files are compiled again."""

from __future__ import annotations

import signal
import stat
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from onlineauto.jit import cache
from tests.jit.scripts import KERNELS, compiled, finish, run, start
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.lane("ci")

SHOWN = (
    KERNELS
    + """
heard = []
with watch_compiling(lambda *told: heard.append(told)):
    results = total(np.arange(4.0)), total(np.arange(4.0, dtype=np.float32))
print(*results, len(heard), "numba" in sys.modules)
"""
)
SILENT = KERNELS + "print(total(np.arange(4.0)), total(np.arange(4.0, dtype=np.float32)))"
COLD, WARM = "50.0 50.0 8 True\n", "50.0 50.0 0 False\n"


def test_the_next_process_loads_compiled_kernels(tmp_path: Path) -> None:
    assert run(SHOWN, tmp_path) == (COLD, "")
    assert run(SHOWN, tmp_path) == (WARM, "")
    names = [path.stem.rpartition("_total_")[0] for path in compiled(tmp_path)]
    assert names == ["__main__"] * 2


def test_a_warm_command_line_loads_neither_openssl_nor_metadata(tmp_path: Path) -> None:
    loads = "import onlineauto.cli.learn, onlineauto.cli.outputs\n"
    modules = "print(*{'_hashlib', 'importlib.metadata', 'numba'} & set(sys.modules))"
    text = f"{loads}{SILENT}\n{modules}"
    run(text, tmp_path)
    assert run(text, tmp_path)[0] == "50.0 50.0\n\n"  # each takes 3 MB or more


@pytest.mark.parametrize("package", ["numba", "llvmlite", "onlineauto"])
def test_the_version_of_a_package_is_in_the_name_of_its_metadata(package: str) -> None:
    assert version(package) in cache._metadata_folder(package)


def test_versions_are_those_of_the_metadata_where_no_folder_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_metadata_folder", lambda _: "")
    assert cache._compiler() == [version("numba"), version("llvmlite")]
    (tmp_path / "numba").mkdir()  # a folder of this name is no compiler
    (tmp_path / "llvmlite").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert cache._compiler() == []


def test_each_kernel_is_reported_once_and_each_complete_program(
    tmp_path: Path,
) -> None:
    text = KERNELS + "with watch_compiling(lambda *told: print(*told)): total(np.arange(4.0))"
    out, _ = run(text, tmp_path)
    assert out.splitlines() == [f"total {done} 3" for done in (1, 2, 2, 3)]


def test_compiling_is_logged_once_and_a_warm_process_logs_nothing(tmp_path: Path) -> None:
    assert run(SILENT, tmp_path)[1] == (
        "compiling kernels, once (ONLINEAUTO_KERNELS is set): usually about 70 CPU seconds; they are kept in "
        f"{tmp_path / 'cache'}; `onlineauto warmup` compiles them all ahead of time\n"
    )
    assert run(SILENT, tmp_path) == ("50.0 50.0\n", "")


@pytest.mark.parametrize("watched", [False, True])
def test_a_cache_that_cannot_be_written_is_reported_before_compiling(watched: bool, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the directory would be")
    text = "w = watch_compiling(lambda *_: print('compiling', file=sys.stderr)); w.__enter__()\n" * watched
    out, err = run(KERNELS + text + SILENT[len(KERNELS) :], tmp_path)
    assert out == "50.0 50.0\n"
    first, *rest = err.splitlines()
    assert first.startswith("kernels are compiled for this run only: ")
    assert first.endswith(" cannot be written (Not a directory)")
    assert rest == (
        ["compiling"] * 8
        if watched
        else ["compiling kernels (ONLINEAUTO_KERNELS is set): usually about 70 CPU seconds"]
    ), "each is said once"


def test_cached_kernels_are_loaded_without_writing(tmp_path: Path) -> None:
    run(SHOWN, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")}
    for path in (tmp_path / "cache", *before):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert run(SHOWN, tmp_path) == (WARM, "")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")} == before


def test_cached_kernels_are_readable_by_all_users(tmp_path: Path) -> None:
    run(SILENT, tmp_path)
    assert {stat.S_IMODE(path.stat().st_mode) for path in compiled(tmp_path)} == {0o644}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_full_disk_is_reported_before_compiling(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
    out, err = run(limit + SILENT, tmp_path)
    assert out == "50.0 50.0\n"
    first, second = err.splitlines()
    assert first.endswith(" cannot be written (File too large)")
    assert second == "compiling kernels (ONLINEAUTO_KERNELS is set): usually about 70 CPU seconds"
    assert compiled(tmp_path) == []


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "truncated": lambda code: code[: len(code) // 2],
    "without its end": lambda code: code[:-1],
    "only a head": lambda code: code.partition(b"\n")[0],
    "a flipped bit": lambda code: code[:-99] + bytes([code[-99] ^ 1]) + code[-98:],
    "no JSON": lambda code: b"{" + code,
    "another head": lambda code: b"[]\n" + code.partition(b"\n")[2],
    "other bytes": lambda code: bytes(range(256)) * (len(code) // 256),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_not_loaded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_directories", lambda: [tmp_path])
    monkeypatch.setattr(cache, "cache_directory", lambda: tmp_path)
    code = bytes(range(256)) * 9
    cache.keep("some", code, '["n"]')
    assert cache.load_object("some") == (code, '["n"]')
    path = tmp_path / "some.o"
    path.write_bytes(DAMAGES[name](path.read_bytes()))
    assert cache.load_object("some") is None
    cache.keep("some", code, '["n"]')
    assert cache.load_object("some") == (code, '["n"]')
    assert list(tmp_path.iterdir()) == [path]


def test_a_truncated_file_is_compiled_again(tmp_path: Path) -> None:
    run(SHOWN, tmp_path)
    path, other = compiled(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert run(SHOWN, tmp_path) == (COLD.replace("8", "4"), "")
    assert path.read_bytes() == whole, "the same machine code once more"
    assert compiled(tmp_path) == [path, other]


KILLED = (
    KERNELS
    + """
import os, signal, time
import onlineauto.jit.compiler.compile

def killed(cache, seconds):
    child = os.fork()
    if not child:
        os.environ["ONLINEAUTO_CACHE_DIR"] = cache
        total(np.arange(4.0))
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

begin = time.perf_counter()
child = os.fork()
if not child:
    os.environ["ONLINEAUTO_CACHE_DIR"] = sys.argv[1] + "-measured"
    total(np.arange(4.0))
    os._exit(0)
os.waitpid(child, 0)
seconds = time.perf_counter() - begin
for i in range(int(sys.argv[2])):
    killed(f"{sys.argv[1]}-{i % 4}", seconds * 1.2 * (i * 0.618 % 1))
"""
)


@pytest.mark.parametrize("times", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_processes_leave_the_next_one_well(times: int, tmp_path: Path) -> None:
    """So many are killed while they compile, each in a cache of others that were killed."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    finish(start(script, tmp_path / "none", str(tmp_path / "cache"), str(times)))
    whole = [path for path in compiled(tmp_path) if cache_entry(path)]
    assert compiled(tmp_path) == whole, "a file of the cache is whole"
    for i in range(4):
        out, err = run(SHOWN, tmp_path, cache=f"cache-{i}")
        assert (out.split()[:2], err) == (["50.0", "50.0"], "")
    assert run(SHOWN, tmp_path, cache="cache-0") == (WARM, "")


def cache_entry(path: Path) -> tuple[bytes, str] | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "_directories", lambda: [path.parent])
        return cache.load_object(path.stem)


AT_ONCE = 2.0
"""Seconds within which a process ends that was told to, if the machine has nothing else to do."""
TRIES = 5
"""Times that are tried for one that ends at once: a machine is not busy each time."""

REPORTED = (
    KERNELS
    + """
with watch_compiling(lambda program, done, total: print(program, done, flush=True)):
    print(total(np.arange(4.0)))
"""
)


def test_of_several_processes_one_compiles(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(REPORTED)
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
