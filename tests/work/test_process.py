"""Worker processes: messages, deaths, and parents that fork or are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onlineauto.errors import WorkersError
from onlineauto.work.crew import Crew, WorkerLost
from onlineauto.work.process import Process, has_ended, running_processes, wait_for_processes
from tests.waiting import until

pytestmark = pytest.mark.ci
ECHO = "tests.work.targets:echo"


def test_messages_are_plain_values_and_bytes() -> None:
    process = Process(ECHO, "a", 1.5)
    assert process.receive() == ["a", 1.5]
    message = ["begin", {"a": [1, None]}, bytes(1 << 20)]
    process.send(*message)
    assert process.receive() == message
    process.close()
    assert process.pid not in running_processes(ECHO)


def test_a_killed_process_is_reported_by_receive_and_not_by_send() -> None:
    process = Process(ECHO)
    process.receive()
    os.kill(process.pid, signal.SIGKILL)
    assert wait_for_processes([process], 60) == [process]
    process.send("begin")
    with pytest.raises(WorkerLost, match=r"^killed by SIGKILL$"):
        process.receive()
    process.kill()


def test_repeated_deaths_of_workers_end_a_crew() -> None:
    crew: Crew[Process, int] = Crew(
        lambda: Process("tests.work.targets:failing", is_quiet=True), wait_for_processes, most_deaths=2
    )

    def lose(job: int) -> WorkerLost:
        crew.resize(1)
        crew.begin(crew.idle[0], job, "begin")
        [(_, lost, message)] = crew.wait()
        assert (lost, len(crew)) == (job, 0)
        assert isinstance(message, WorkerLost)
        return message

    for job in range(2):
        crew.count_death(lose(job))
    last = lose(2)
    with pytest.raises(WorkersError, match="died 3 times in a row; the last one was ended with code 3"):
        crew.count_death(last)


SCRIPT = """
import sys, time
from onlineauto.work.process import Process
process = Process("tests.work.targets:busy")
process.receive()
print(process.pid, flush=True)
time.sleep(100)
"""


def test_a_busy_process_ends_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = Path(f"/proc/{int(parent.stdout.readline())}/stat")
        parent.kill()
    until(lambda: not worker.exists() or " Z " in worker.read_text())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no os.fork")
def test_a_child_of_a_fork_does_not_keep_processes_alive() -> None:
    process = Process(ECHO)
    process.receive()
    child = os.fork()
    if child == 0:
        time.sleep(100)
        os._exit(0)
    try:
        process.connection.close()  # as the death of this process would
        until(lambda: has_ended(process.pid))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        process.kill()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files cannot be counted")
def test_processes_leave_no_open_files() -> None:
    Process(ECHO).close()  # modules that are imported late
    before = open_files()
    for end in (Process.close, Process.kill):
        processes = [Process(ECHO) for _ in range(2)]
        for process in processes:
            process.receive()
            end(process)
    assert open_files() <= before  # files of earlier tests may be closed meanwhile


def open_files() -> set[Path]:
    return {path for path in Path("/proc/self/fd").iterdir() if path.exists()}
