"""Connections that are idle, slow or too many, and large heads, keep no one else from an answer."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
import pytest

from onlineauto.service.http.protocol.connections import ConnectionLimits, Connections, most_connections
from tests.service.serving import Service
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RANK = {"context": {"u": {"a": 1}}, "actions": {"a": {"x": {"one": 1}}, "b": {"x": {"two": 1}}}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("connections") / "loop") as made:
        yield made


def connected(service: Service) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def status_after(service: Service, *parts: bytes, pause: float = 0.0) -> int:
    """Return the status of the answer to a request that is sent in parts; 0 if the connection is closed."""
    with connected(service) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            answer = connection.recv(4096)
        except ConnectionError:
            return 0
    return int(answer[9:12]) if answer else 0


def is_cut(connection: socket.socket) -> bool:
    """Return whether a connection is closed while up to 30 MB are sent."""
    try:
        for _ in range(300):
            connection.sendall(b"x" * 100_000)
            time.sleep(0.001)
    except ConnectionError:
        return True
    return False


def is_closed(connection: socket.socket) -> bool:
    """Return whether a connection is closed before its timeout."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_two_hosts_are_refused_by_both_readers(service: Service) -> None:
    body = json.dumps(RANK).encode()
    head = b"POST /v1/rank HTTP/1.1\r\nHost: 127.0.0.1\r\n%bContent-Length: %d\r\n\r\n"
    assert status_after(service, head % (b"", len(body)) + body) == 200
    assert status_after(service, head % (b"Host: 127.0.0.1\r\n", len(body)) + body) == 400
    assert status_after(service, head % (b"host: elsewhere\r\n", len(body)) + body) == 400
    assert status_after(service, b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n") == 400


@pytest.mark.parametrize("line", [b"POST /v1/rank HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\n"])
def test_large_heads_are_refused_before_they_are_kept(service: Service, line: bytes) -> None:
    begin, end = line + b"Host: 127.0.0.1\r\n", b"Content-Length: 0\r\n\r\n"
    many = b"".join(b"X-%d: 1\r\n" % number for number in range(200))
    assert status_after(service, begin + many + end) == 431
    assert status_after(service, begin + b"X: " + b"x" * 40_000 + b"\r\n" + end) == 431
    with connected(service) as connection:  # one header without end
        connection.sendall(begin + b"X: ")
        assert is_cut(connection)
    assert httpx.get(f"{service.url}/healthz").status_code == 200


@pytest.mark.ci
def test_slow_heads_and_idle_connections_are_closed(service: Service) -> None:
    slow, idle = connected(service), connected(service)
    end = time.monotonic() + PATIENCE
    slow.sendall(b"POST /v1/rank HTTP/1.1\r\n")
    slow.settimeout(0.5)
    answer = b""
    while not answer and time.monotonic() < end:
        try:
            slow.sendall(b"X")
            answer = slow.recv(100)
        except TimeoutError:
            continue
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert is_closed(idle)
    text = httpx.get(f"{service.url}/metrics").text
    assert 'onlineauto_connections_closed_total{reason="head"}' in text
    assert 'onlineauto_connections_closed_total{reason="idle"}' in text
    slow.close()
    idle.close()


OPEN_MANY = """
import socket, sys, time
port, count, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
begin = {"idle": b"", "head": b"POST /v1/rank HTTP/1.1\\r\\nHost: a",
         "body": b"POST /v1/rank HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Length: 500\\r\\n\\r\\n{"}[kind]
made = []
for _ in range(count):
    try:
        made.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        made[-1].sendall(begin)
    except OSError:
        pass
print(len(made), flush=True)
sys.stdin.read()
"""


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["idle", "head", "body"])
def test_two_thousand_waiting_connections_leave_answers_to_others(tmp_path: Path, kind: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    service = Service(tmp_path / "loop", "--snapshot_every", "0.2")
    with ExitStack() as stack:
        # the limit of 1,024 files is the service's; `Popen` of the clients has the machine's own
        service.prefix = ["bash", "-c", 'ulimit -n 1024; exec "$@"', "bash"]
        stack.enter_context(service)
        crowd = subprocess.Popen(
            [
                *("bash", "-c", f'ulimit -n {min(hard, 8192)}; exec "$@"', "bash"),
                *(sys.executable, "-c", OPEN_MANY, str(service.port), "2000", kind),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        stack.callback(crowd.kill)
        assert crowd.stdout is not None
        begin = time.monotonic()
        for number in range(10):  # while they come
            assert httpx.get(f"{service.url}/healthz", timeout=PATIENCE).text == "ok\n"
            answer = httpx.post(f"{service.url}/v1/rank", json={**RANK, "event_id": f"a{number}"})
            assert answer.status_code == 200, answer.text
        assert int(crowd.stdout.readline()) > 1000
        for number in range(10):  # and while they are there
            assert httpx.get(f"{service.url}/healthz").text == "ok\n"
            answer = httpx.post(f"{service.url}/v1/rank", json={**RANK, "event_id": f"b{number}"})
            assert answer.status_code == 200, answer.text
            reward = httpx.post(f"{service.url}/v1/reward", json={"event_id": f"b{number}", "reward": 1})
            assert reward.status_code == 204
        assert time.monotonic() - begin < PATIENCE
        until(lambda: httpx.get(f"{service.url}/v1/status").json()["learnt"] >= 10)
        status = httpx.get(f"{service.url}/v1/status").json()
        assert (status["ready"], status["learning"], status["error"]) == (True, True, "")
        assert '"connection_closed"' in service.log.read_text()
        crowd.kill()
        crowd.communicate()


def test_one_more_closes_the_connection_that_waits_longest() -> None:
    class Fake:
        since = 0.0

        def __init__(self, *, waiting: bool) -> None:
            self.is_waiting, self.dropped = waiting, list[int]()

        def waits_for(self, now: float, limits: ConnectionLimits) -> str:
            return "idle" if self.is_waiting and now - self.since > limits.header_seconds else ""

        def drop(self, status: int, message: str) -> None:
            del message
            self.dropped.append(status)

        def shutdown(self) -> None:
            raise AssertionError

    connections = Connections(ConnectionLimits(most=2))
    answered, idle, late, last = (Fake(waiting=each) for each in (False, True, True, True))
    for each in (answered, idle, late):
        connections.add(each)
    assert (answered.dropped, idle.dropped, late.dropped) == ([], [0], [])
    late.is_waiting = False
    connections.add(last)
    assert last.dropped == [503]
    late.is_waiting = True
    connections.sweep(100.0)
    assert late.dropped == [0]
    assert len(connections) == 1


def test_descriptors_are_left_for_everything_else() -> None:
    code = (
        "import resource, sys; from onlineauto.service.http.protocol.connections import most_connections; "
        "print(most_connections(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    for limit, most in ((1024, 640), (256, 64)):
        command = ["bash", "-c", f'ulimit -n {limit}; exec "$@"', "bash", sys.executable, "-c", code]
        out = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        assert out.split() == [str(most), str(limit)]
    assert most_connections(10) == 10
