"""Pipes that are still being written: each event is learnt and predicted as soon as it is complete."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import call
from pathlib import Path
from typing import IO

import pytest

from onlineauto.cli.learn import _Interrupt

pytestmark = [pytest.mark.lane("ci"), pytest.mark.skipif(os.name == "nt", reason="named pipes are POSIX")]

EVENT = b"shared |s a b:%d\n0:%d:0.5 |x one\n|x two\n|x three\n\n"
N_WARM, N_TIMED = 100, 60
MOST = 0.05
"""Seconds from the last byte of an event to its prediction."""


def seconds_per_event(
    into: IO[bytes], out: IO[bytes], write: Callable[[IO[bytes], bytes], None]
) -> list[float]:
    """Write events, each after the last one was predicted; seconds from an event's last byte."""
    seconds = []
    for i in range(N_WARM + N_TIMED):
        write(into, EVENT % (i % 7, -(i % 2)))
        begin = time.perf_counter()
        assert out.readline().count(b":") == 3
        seconds.append(time.perf_counter() - begin)
        assert out.readline() == b"\n"
    return seconds[N_WARM:]


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]:
    """Run a bandit in a process, with its pipes for output and for errors; its input is a pipe as well."""
    command = [sys.executable, "-m", "onlineauto", "--cb_explore_adf", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        yield process, process.stdout, process.stderr


def at_once(into: IO[bytes], event: bytes) -> None:
    into.write(event)


def byte_by_byte(into: IO[bytes], event: bytes) -> None:
    for i in range(len(event)):
        into.write(event[i : i + 1])


def in_two_parts(into: IO[bytes], event: bytes) -> None:
    into.write(event[:-1])
    time.sleep(0.002)
    into.write(event[-1:])


@pytest.mark.parametrize("write", [at_once, byte_by_byte, in_two_parts])
@pytest.mark.parametrize("search", [[], ["--automl", "4"]], ids=["plain", "automl"])
@pytest.mark.parametrize("named", [False, True], ids=["stdin", "named"])
def test_each_event_is_learnt_within_50_ms(
    tmp_path: Path, write: Callable[[IO[bytes], bytes], None], search: list[str], named: bool
) -> None:
    path = tmp_path / "events"
    os.mkfifo(path)
    flags = ["--quiet", "-p", "stdout", "-d", str(path) if named else "-", *search]
    least = [float("inf")] * N_TIMED  # the machine may have been busy with something else, at other events
    for _ in range(5):
        with started(*flags) as (process, out, _):
            assert process.stdin is not None
            with path.open("wb", buffering=0) if named else process.stdin as into:
                seconds = seconds_per_event(into, out, write)
        assert process.returncode == 0
        least = list(map(min, least, seconds))
        if max(least) < MOST:
            return
    pytest.fail(f"event {least.index(max(least))} never took less than {max(least):.3f} s")


def test_a_second_pipe_is_opened_at_its_first_read(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    os.mkfifo(first)
    os.mkfifo(second)
    with started("--quiet", "-p", "stdout", "-d", str(first), "-d", str(second)) as (process, out, _):
        for path in (first, second):
            with path.open("wb", buffering=0) as pipe:
                pipe.write(EVENT % (1, -1))
                assert out.readline().count(b":") == 3
                assert out.readline() == b"\n"
        assert out.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize("other", ["pipe", "file"])
def test_an_interrupt_while_waiting_for_the_first_leaves_the_second_alone(tmp_path: Path, other: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    os.mkfifo(first)
    os.mkfifo(second) if other == "pipe" else second.write_bytes(EVENT % (1, -1))
    words = "-p", "stdout", "-d", str(first), "-d", str(second)
    with started(*words) as (process, out, err), first.open("wb", buffering=0) as pipe:
        pipe.write(EVENT % (1, -1))
        assert out.readline().count(b":") == 3
        process.send_signal(signal.SIGINT)
        assert b"number of examples = 1\n" in err.read()
    assert process.returncode == 130


def test_a_signal_just_before_a_wait_ends_the_wait() -> None:
    send = partial(ctypes.CDLL(None)["raise"], int(signal.SIGTERM))
    with _Interrupt() as interrupt:
        # No line of Python runs between the signal and the wait, and so no handler.
        _, (ready, _, _) = map(call, (send, partial(select.select, [interrupt.pipe], [], [], 5)))
        assert ready == [interrupt.pipe]
        assert interrupt.requested


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere opening a pipe waits for who writes to it")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_for_a_pipe_without_a_writer(tmp_path: Path, number: int) -> None:
    os.mkfifo(tmp_path / "pipe")
    with started("-d", str(tmp_path / "pipe")) as (process, _, err):
        while b"average  since" not in err.readline():
            pass
        time.sleep(0.2)
        process.send_signal(number)
        assert b"number of examples = 0\n" in err.read()
    assert process.returncode == 128 + number
