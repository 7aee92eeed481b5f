"""Files that are replaced atomically, and the parts of killed writers."""

from __future__ import annotations

import fcntl
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onlineauto.formats.sources import replaced_file
from onlineauto.formats.sources.replaced_file import replacing

pytestmark = pytest.mark.lane("sampled")

WRITER = """
import sys
from onlineauto.formats.sources.replaced_file import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"theirs")
    file.flush()
    print("there", flush=True)
    sys.stdin.read()
"""


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


@contextmanager
def writer(target: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that writes a file until its standard input ends."""
    words = [sys.executable, "-c", WRITER, str(target)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield process


def write(target: Path, data: bytes) -> None:
    with replacing(target) as file:
        file.write(data)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_writer_removes_parts_of_a_killed_writer(tmp_path: Path, number: signal.Signals) -> None:
    target = tmp_path / "m.model"
    for _ in range(2):
        with writer(target) as process:
            process.send_signal(number)
        assert process.returncode == -number
    left = names(tmp_path)
    assert len(left) == 1  # the second one has removed what the first one left
    assert left[0].startswith(".m.model.")
    assert left[0].endswith(".part")
    write(tmp_path / "m", b"")
    write(tmp_path / "m.model.2", b"")
    assert left[0] in names(tmp_path)  # which are other files
    write(target, b"ours")
    assert names(tmp_path) == ["m", "m.model", "m.model.2"]
    assert target.read_bytes() == b"ours"


def test_parts_of_a_running_writer_are_not_removed(tmp_path: Path) -> None:
    target = tmp_path / "m.model"
    with writer(target) as process:
        (part,) = names(tmp_path)
        write(target, b"ours")
        assert names(tmp_path) == [part, "m.model"]
        assert target.read_bytes() == b"ours"
        process.communicate()
    assert process.returncode == 0
    assert names(tmp_path) == ["m.model"]
    assert target.read_bytes() == b"theirs"


def test_other_files_and_parts_of_other_hosts_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "m.model"
    monkeypatch.setattr(platform, "node", lambda: "elsewhere")
    with writer(target) as process:
        process.kill()
    (here,) = names(tmp_path)
    others = [here.replace(".part", ".parts"), here.replace("-", ""), ".m.model.part", ".m.model.x.part"]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    write(target, b"ours")
    assert names(tmp_path) == sorted([here, *others, "m.model"])
    monkeypatch.undo()
    write(target, b"ours")
    assert names(tmp_path) == sorted([*others, "m.model"])


def test_a_part_removed_before_it_is_locked_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, times = replaced_file._lock, 0

    def late(descriptor: int) -> bool | None:
        """Lock when others have looked at the part: one has removed it, one holds it."""
        nonlocal times
        times += 1
        if times == 1:
            for part in tmp_path.iterdir():
                part.unlink()
        return False if times == 2 else lock(descriptor)

    monkeypatch.setattr(replaced_file, "_lock", late)
    write(tmp_path / "m.model", b"ours")
    assert times == 3
    assert (tmp_path / "m.model").read_bytes() == b"ours"


@pytest.mark.parametrize("has_locks", [True, False])
def test_no_part_is_removed_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_locks: bool
) -> None:
    target = tmp_path / "m.model"
    with writer(target) as process:
        process.kill()
    (part,) = names(tmp_path)

    def none(descriptor: int, how: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(replaced_file, "_HAS_LOCKS", has_locks)
    monkeypatch.setattr(fcntl, "flock", none)
    write(target, b"ours")
    assert names(tmp_path) == [part, "m.model"]


def test_an_error_leaves_only_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "m.model"
    write(target, b"ours")
    target.chmod(0o640)
    with pytest.raises(TypeError, match="bytes-like"), replacing(target) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    with pytest.raises(OSError, match=r"cannot write .*m\.model: No space left on device"), replacing(target):
        raise OSError(28, "No space left on device")
    assert names(tmp_path) == ["m.model"]
    write(target, b"again")
    assert target.read_bytes() == b"again"
    assert target.stat().st_mode & 0o777 == 0o640
    os.umask(mask := os.umask(0o027))
    write(tmp_path / "new", b"")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask


def test_parts_of_a_killed_conversion_are_removed_later(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "onlineauto", "convert", "-", "events.blocks", "--quiet"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdin is not None
        while not names(tmp_path):
            process.stdin.write(b"1 |a x\n")
            process.stdin.flush()
        process.terminate()
    assert process.returncode == -signal.SIGTERM
    assert len(names(tmp_path)) == 1
    subprocess.run(words, input=b"1 |a x\n", cwd=tmp_path, check=True)
    assert names(tmp_path) == ["events.blocks"]
