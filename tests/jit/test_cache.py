"""The kernel cache: the next process loads kernels, and damaged files are compiled again."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING

import pytest

from onlineauto.jit import cache
from tests.jit.scripts import KERNELS, compiled, finish, run, start

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def killed(tmp_path: Path, times: int) -> None:
    """Kill so many processes while they compile, each in a cache of others that were killed."""
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


def test_a_killed_process_leaves_the_next_one_well(tmp_path: Path) -> None:
    killed(tmp_path, 8)


@pytest.mark.slow
def test_many_killed_processes_leave_the_next_one_well(tmp_path: Path) -> None:
    killed(tmp_path, 100)
