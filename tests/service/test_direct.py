"""Whole requests are answered without a task; in whatever pieces and forms they come, as uvicorn answers."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.service.http.direct.whole_request import head_of
from tests.service.serving import Service
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = b"POST /v1/rank HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("direct") / "loop") as made:
        yield made


def rank(event_id: str) -> bytes:
    body = {"event_id": event_id, "actions": {"a": {"x": 1}, "b": {"y": 1}}}
    return json.dumps(body).encode()


def request(body: bytes, *, path: str = "/v1/rank", more: bytes = b"") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()
    return head + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def answers(connection: socket.socket, count: int) -> list[tuple[int, Any]]:
    """Return the statuses and bodies of the next answers."""
    connection.settimeout(PATIENCE)
    data = b""
    found: list[tuple[int, Any]] = []
    while len(found) < count:
        head, separator, rest = data.partition(b"\r\n\r\n")
        size = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                size = int(line[15:])
        if not separator or len(rest) < size:
            more = connection.recv(65536)
            assert more, data
            data += more
            continue
        body = rest[:size].decode()
        found.append((int(head[9:12]), json.loads(body) if body.startswith("{") else body))
        data = rest[size:]
    assert not data
    return found


def connected(service: Service) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port))


def test_the_same_answer_as_by_uvicorn(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(request(rank("same")))
        ((status, direct),) = answers(connection, 1)
        chunked = b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
        body = rank("same")
        connection.sendall(HEAD + chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        ((again, by_uvicorn),) = answers(connection, 1)
    assert (status, again) == (200, 200)
    assert direct == by_uvicorn


def test_requests_in_one_piece_are_answered_in_order(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(b"".join(request(rank(f"line-{number}")) for number in range(20)))
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n")
        *found, last = answers(connection, 21)
    assert [(status, body["event_id"]) for status, body in found] == [(200, f"line-{n}") for n in range(20)]
    assert last == (200, "ok\n")


def test_a_request_behind_one_that_waits_for_the_log(service: Service) -> None:
    with connected(service) as connection:
        for number in range(20):
            connection.sendall(request(rank(f"next-{number}")))
            time.sleep(0.0005)
        found = answers(connection, 20)
    assert [body["event_id"] for _, body in found] == [f"next-{number}" for number in range(20)]


@pytest.mark.parametrize("pause", [0.0, 0.005])
def test_a_request_in_pieces(service: Service, pause: float) -> None:
    whole = request(rank(f"pieces-{pause}"))
    with connected(service) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(whole), 11):
            connection.sendall(whole[at : at + 11])
            time.sleep(pause)
        assert [status for status, _ in answers(connection, 1)] == [200]
        connection.sendall(request(rank(f"pieces-{pause}-next")))
        assert [status for status, _ in answers(connection, 1)] == [200]


def test_an_offer_of_http_2_is_ignored(service: Service) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIA\r\n"
    whole = request(rank("h2c"), more=offer)
    with connected(service) as connection:
        connection.sendall(whole[:-20])  # its body in a second piece, as Java sends it
        time.sleep(0.05)
        connection.sendall(whole[-20:])
        assert [status for status, _ in answers(connection, 1)] == [200]
        connection.sendall(request(rank("next")))
        assert [status for status, _ in answers(connection, 1)] == [200]


def test_a_client_that_will_send_no_more_is_answered(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(request(rank("half")))
        connection.shutdown(socket.SHUT_WR)
        assert [status for status, _ in answers(connection, 1)] == [200]
        assert connection.recv(100) == b""


def test_a_body_that_comes_late(service: Service) -> None:
    whole = request(rank("late"))
    with connected(service) as connection:
        connection.sendall(whole[:-20])
        time.sleep(1.3)  # uvicorn has it by now
        connection.sendall(whole[-20:])
        assert [status for status, _ in answers(connection, 1)] == [200]
        connection.sendall(request(rank("late-next")))
        assert [status for status, _ in answers(connection, 1)] == [200]


def test_a_body_that_drips_is_not_waited_for_for_ever(service: Service) -> None:
    with connected(service) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        connection.settimeout(0.3)
        for _ in range(100):
            connection.sendall(b" ")
            try:
                assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
                break
            except TimeoutError:
                continue
        else:
            pytest.fail("the body is still waited for")


def test_refusals_keep_the_connection(service: Service) -> None:
    with connected(service) as connection:
        for body, status in (
            (b"{}", 400),
            (b"[" * 500, 400),
            (rank("refused"), 200),
            (rank("refused").replace(b'"x"', b'"z"'), 409),
            (b" " * 70_000, 413),
        ):
            connection.sendall(request(body))
            ((found, answer),) = answers(connection, 1)
            assert found == status
            assert status == 200 or answer["error"]["message"]
        other = b"Origin: http://elsewhere\r\n"
        connection.sendall(request(rank("other"), more=other))
        assert answers(connection, 1)[0][0] == 403
        connection.sendall(request(rank("name")).replace(b"127.0.0.1", b"elsewhere"))
        assert answers(connection, 1)[0][0] == 403


def test_rewards_and_activations_of_both_kinds(service: Service) -> None:
    with connected(service) as connection:
        for path, body in (
            ("/v1/reward", b'{"event_id":"e1","reward":1}'),
            ("/v1/activate/e1", b""),
            ("/personalizer/v1.0/events/e1/reward", b'{"value":1}'),
            ("/personalizer/v1.0/events/a/b/c/activate", b""),
        ):
            connection.sendall(request(body, path=path))
            assert answers(connection, 1) == [(204, "")]
    text = httpx.get(f"{service.url}/metrics").text
    assert 'onlineauto_requests_total{endpoint="activate",status="204"} 2.0' in text


def test_a_connection_that_is_closed_while_it_waits(service: Service) -> None:
    for number in range(20):
        with connected(service) as connection:
            connection.sendall(request(rank(f"gone-{number}")))
    assert httpx.get(f"{service.url}/healthz").status_code == 200


def test_a_service_that_stops_answers_what_it_took(tmp_path: Path) -> None:
    with Service(tmp_path / "loop") as service, connected(service) as connection:
        connection.sendall(request(rank("last")))
        assert [status for status, _ in answers(connection, 1)] == [200]
        assert service.stop() == 0
        assert connection.recv(100) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"GET /v1/rank HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /v1/rank HTTP/1.0\r\nHost: a\r\n\r\n",
        b"POST /v1/rank HTTP/1.1\r\nHost: a\r\n",
        b"POST /v1/rank?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /v1/%72ank HTTP/1.1\r\nHost: a\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}",
        HEAD + b"Content-Length: +2\r\n\r\n{}",
        HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
        HEAD + b"Content-Length : 2\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\n folded\r\n\r\n{}",
        HEAD + b"Content-Length: 2\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"X: \x80\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_what_is_not_plain_is_left_to_uvicorn(data: bytes) -> None:
    assert head_of(data) is None


@given(st.binary(max_size=300), st.integers(0, 60), st.binary(max_size=5))
def test_whatever_comes_is_read_as_httptools_reads_it(tail: bytes, at: int, put: bytes) -> None:
    """Two readers of one connection that disagree on where a request ends would let one hide in another."""
    import httptools

    plain = request(rank("e"))
    data = plain[:at] + put + plain[at:] + tail
    head = head_of(data)
    if head is None or head.end > len(data):
        return

    class Seen:
        def __init__(self) -> None:
            self.body, self.url, self.headers, self.done = b"", b"", list[tuple[bytes, bytes]](), 0

        def on_url(self, url: bytes) -> None:
            self.url += url * (not self.done)

        def on_header(self, name: bytes, value: bytes) -> None:
            if not self.done:
                self.headers.append((name.lower(), value))

        def on_body(self, body: bytes) -> None:
            self.body += body * (not self.done)

        def on_message_complete(self) -> None:
            self.done += 1

    seen = Seen()
    httptools.HttpRequestParser(seen).feed_data(data[: head.end])
    assert seen.done == 1
    assert (seen.url.decode(), seen.body) == (head.path, data[head.begin : head.end])
    assert {name.decode(): value.decode().strip(" \t") for name, value in seen.headers} == head.headers
