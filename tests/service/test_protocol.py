"""HTTP/1.1 and connections: valid requests in any pieces are answered, and others delay no client."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import resource
import socket
import subprocess
import sys
import time
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from onlineauto.service.http.endpoint import Endpoint, Request, RequestBatch, RequestGuard, Router
from onlineauto.service.http.http_protocol import (
    ConnectionLimits,
    Connections,
    HttpProtocol,
    most_connections,
)
from onlineauto.service.http.tokens import Tokens, add_token
from onlineauto.service.http.wire import Reply
from onlineauto.service.options import Limits
from tests.service.in_process import InProcessClient
from tests.service.serving import Service
from tests.waiting import PATIENCE, until

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
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def status(connection: socket.socket, data: bytes) -> int:
    """Send a request, and return the status of its answer."""
    connection.sendall(data)
    return answers(connection, 1)[0][0]


def is_closed(connection: socket.socket) -> bool:
    """Return whether a connection is closed before its timeout."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_a_chunked_body_has_the_same_answer(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(request(rank("same")))
        ((first, plain),) = answers(connection, 1)
        chunked = b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
        body = rank("same")
        connection.sendall(HEAD + chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        ((again, chunked_answer),) = answers(connection, 1)
    assert (first, again) == (200, 200)
    assert plain == chunked_answer


def test_requests_in_one_piece_are_answered_in_order(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(b"".join(request(rank(f"line-{number}")) for number in range(20)))
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n")
        *found, last = answers(connection, 21)
    assert [(code, body["event_id"]) for code, body in found] == [(200, f"line-{n}") for n in range(20)]
    assert last == (200, "ok\n")


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIA\r\n"
LARGE = request(rank("large") + b" " * 20_000)


@pytest.mark.parametrize(
    ("pieces", "pause", "count"),
    {
        "small": (in_pieces(request(rank("small")), 11), 0.0, 1),
        "small, one by one": (in_pieces(request(rank("slow")), 11), 0.005, 1),
        # Java offers HTTP/2, and sends the body in a second piece.
        "offer of HTTP/2": (in_pieces(request(rank("h2c"), more=OFFER), 200), 0.05, 1),
        "late body": (in_pieces(request(rank("late")), 100), 1.3, 1),
        "ends within heads": ([LARGE[:40], LARGE[40:] + LARGE[:40], LARGE[40:]], 0.05, 2),
        "while an answer waits for the log": ([request(rank(f"{n}")) for n in range(20)], 0.0005, 20),
    }.values(),
)
def test_requests_in_pieces_are_answered_in_order(
    service: Service, pieces: list[bytes], pause: float, count: int
) -> None:
    with connected(service) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        statuses, bodies = zip(*answers(connection, count), strict=True)
        assert statuses == (200,) * count
        assert count < 20 or [body["event_id"] for body in bodies] == [f"{n}" for n in range(20)]
        assert status(connection, request(rank("next"))) == 200


def test_a_repeated_head_has_the_same_answer_in_any_pieces(service: Service) -> None:
    with connected(service) as connection:
        for number in range(3):  # the second one is not parsed
            assert status(connection, request(rank(f"head-{number}"))) == 200
        cut = len(request(rank("head-3"))) - 5
        for data in (request(rank("head-3")), request(rank("head-4"))):
            connection.sendall(data[:cut])
            assert status(connection, data[cut:]) == 200
        connection.sendall(request(rank("head-5")) + request(rank("head-6")))
        found = answers(connection, 2)
        assert [body["event_id"] for _, body in found] == ["head-5", "head-6"]
        assert status(connection, request(b"{" + rank("head-7")[1:-1] + b" ")) == 400
        assert status(connection, request(rank("head-8"))) == 200


def test_a_repeated_head_needs_a_token_that_still_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onlineauto.service.http.tokens._LOOK", 0.0)
    path = tmp_path / "tokens"
    authorization = f"Authorization: Bearer {add_token(path, ['rank'])}\r\n".encode()
    done: list[tuple[str, int, float]] = []
    parsed: list[bytes] = []
    wire = Wire()

    class Protocol(HttpProtocol):
        def _feed(self, data: bytes) -> None:
            parsed.append(data)
            super()._feed(data)

    async def answer(request: Request) -> Reply:
        return Reply.text(request.body.decode())

    async def main() -> None:
        guard = RequestGuard(Tokens(path), lambda *counted: done.append(counted))
        batch = RequestBatch(nullcontext)
        endpoint = Endpoint(guard, answer, name="rank", scope="rank", body_bytes=5, batch=batch)
        protocol = Protocol(Router({"/v1/rank": {"POST": endpoint}}, Connections(), nullcontext))
        protocol.connection_made(wire)
        for body in (b"one", b"two", b"six"):
            if body == b"six":
                path.write_text("")
            protocol.data_received(request(body, more=authorization))
            await asyncio.sleep(0.01)

    asyncio.run(main())
    assert [status for _, status, _ in done] == [200, 200, 401]
    assert b"two" in wire.written
    assert len(parsed) == 2  # "two" has the head of "one"


def test_a_service_without_follow_does_not_load_what_only_clients_need() -> None:
    code = "import sys, onlineauto.service.http.server; sys.exit('httpx' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_half_closed_connection_is_answered(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(request(rank("half")))
        connection.shutdown(socket.SHUT_WR)
        assert answers(connection, 1)[0][0] == 200
        assert is_closed(connection)


@pytest.mark.ci
def test_a_body_in_single_bytes_times_out(service: Service) -> None:
    with connected(service) as connection:
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
        for body, expected in (
            (b"{}", 400),
            (b"[" * 500, 400),
            (rank("refused"), 200),
            (rank("refused").replace(b'"x"', b'"z"'), 409),
            (b" " * 70_000, 413),
        ):
            connection.sendall(request(body))
            ((found, answer),) = answers(connection, 1)
            assert found == expected
            assert found == 200 or answer["error"]["message"]
        assert status(connection, request(rank("other"), more=b"Origin: http://elsewhere\r\n")) == 403
        assert status(connection, request(rank("name")).replace(b"127.0.0.1", b"elsewhere")) == 403


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


def test_a_service_answers_accepted_requests_before_it_stops(tmp_path: Path) -> None:
    with Service(tmp_path / "loop") as service, connected(service) as connection:
        assert status(connection, request(rank("last"))) == 200
        assert service.stop() == 0
        assert is_closed(connection)


@pytest.mark.parametrize(
    "data",
    [
        HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}",
        HEAD + b"Content-Length: +2\r\n\r\n{}",
        HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
        HEAD + b"Content-Length : 2\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\n{}",
        b"POST /v1/rank\r\nHost: a\r\n\r\n",
        b"NOT-A-METHOD / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT elsewhere:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_a_request_whose_end_is_unclear_closes_the_connection(service: Service, data: bytes) -> None:
    """Two readers of one connection that disagree on where a request ends would let one hide in another."""
    with connected(service) as connection:
        connection.sendall(data + request(rank("hidden")))
        answer = b""
        with suppress(ConnectionResetError):
            while more := connection.recv(65536):
                answer += more
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_negative_content_length_is_named(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(HEAD + b"Content-Length: -2\r\n\r\n")
        ((status, body),) = answers(connection, 1)
    message = "the request is not HTTP: Invalid character in Content-Length"
    assert (status, body["error"]["message"]) == (400, message)


def test_equivalent_forms_of_a_request_are_accepted(service: Service) -> None:
    body = rank("forms")
    with connected(service) as connection:
        for head in (
            b"POST /v1/rank?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n",
            b"POST /v1/%72ank HTTP/1.1\r\nHost: 127.0.0.1\r\n",
            b"POST http://127.0.0.1/v1/rank HTTP/1.1\r\nHost: 127.0.0.1\r\n",
            HEAD + b"X: \x80\r\n",
            HEAD + b"Connection: upgrade\r\nUpgrade: websocket\r\n",
        ):
            assert status(connection, head + b"Content-Length: %d\r\n\r\n" % len(body) + body) == 200, head


def test_a_client_that_expects_to_continue(service: Service) -> None:
    body = rank("expects")
    with connected(service) as connection:
        connection.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert status(connection, body) == 200
        assert status(connection, HEAD + b"Expect: 100-continue\r\nContent-Length: 99999\r\n\r\n") == 413
        assert is_closed(connection)  # whether the body follows is not known


@pytest.mark.parametrize(
    "more", [b"HTTP/1.0\r\nHost: 127.0.0.1\r\n", b"HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"]
)
def test_the_last_request_of_a_client_closes_the_connection(service: Service, more: bytes) -> None:
    with connected(service) as connection:
        connection.sendall(b"GET /healthz " + more + b"\r\n")
        assert answers(connection, 1) == [(200, "ok\n")]
        assert is_closed(connection)


def test_a_client_of_http_1_0_keeps_its_connection_if_it_asks(service: Service) -> None:
    def answer_to(line: bytes) -> bytes:
        connection.sendall(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n" + line + b"\r\n")
        answer = b""
        while not answer.endswith(b"\r\n\r\nok\n"):
            answer += connection.recv(1000)
        return answer

    with connected(service) as connection:
        for _ in range(2):
            answer = answer_to(b"Connection: Keep-Alive\r\n")
            assert b"\r\nconnection: keep-alive\r\n" in answer
        assert b"\r\nconnection: close\r\n" in answer_to(b"")
        assert is_closed(connection)
    with connected(service) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"connection:" not in connection.recv(1000)  # the default of HTTP/1.1


def test_head_requests_are_answered_without_a_body(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = connection.recv(1000)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b"content-length: 3\r\n\r\n")
        connection.sendall(b"HEAD /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(1000).endswith(b"connection: close\r\n\r\n")


def test_a_refused_request_is_answered_before_its_body(service: Service) -> None:
    with connected(service) as connection:
        assert status(connection, HEAD + b"Origin: http://elsewhere\r\nContent-Length: 40\r\n\r\n") == 403
        assert status(connection, b"x" * 40 + request(rank("after"))) == 200
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            connection.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
        assert answers(connection, 1)[0][0] == 413
        assert status(connection, b"0\r\n\r\n" + request(rank("after-chunks"))) == 200


def test_events_are_sent_until_the_client_leaves(service: Service) -> None:
    with httpx.stream("GET", f"{service.url}/v1/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        first = next(answer.iter_lines())
    assert json.loads(first.removeprefix("data: "))["ready"]


@pytest.mark.parametrize(("more", "after"), [(b"", [400]), (b"Connection: close\r\n", [])])
def test_requests_before_an_unreadable_one_are_answered(
    service: Service, more: bytes, after: list[int]
) -> None:
    with connected(service) as connection:
        connection.sendall(request(rank(f"before-{len(after)}"), more=more) + b"\0\r\n\r\n")
        assert [code for code, _ in answers(connection, 1 + len(after))] == [200, *after]
        assert is_closed(connection)


def test_many_offers_of_http_2_at_once(service: Service) -> None:
    offer = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    with connected(service) as connection:
        connection.sendall(offer * 1500)
        assert answers(connection, 1500) == [(200, "ok\n")] * 1500


def test_an_offer_of_http_2_has_the_limits_of_other_requests() -> None:
    offer = b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"
    for more, expected in ((b"Host: a\r\n" * 2, 400), (b"a: b\r\n" * 101, 431)):
        head = offer + more + b"\r\n"
        wire = on_wire(partial(lambda data, protocol, _: protocol.data_received(data), head))
        assert wire.written.startswith(b"HTTP/1.1 %d " % expected)


def test_an_offer_of_another_protocol_with_http_1_0_closes_the_connection(service: Service) -> None:
    with connected(service) as connection:
        more = b"Host: 127.0.0.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\nExpect: 100-continue\r\n"
        connection.sendall(b"GET /healthz HTTP/1.0\r\n" + more + b"\r\n")
        assert answers(connection, 1) == [(200, "ok\n")]
        assert is_closed(connection)


class Wire(asyncio.Transport):
    """The server's end of a connection, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.unsent, self.is_closed = b"", 0, False

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def pause_reading(self) -> None:
        """Ignore this, since a test decides what is received."""

    resume_reading = pause_reading

    def get_write_buffer_size(self) -> int:
        return self.unsent


class NoEndpoints(Router):
    """An application without endpoints."""

    def __init__(self) -> None:
        super().__init__({}, Connections(), nullcontext)

    def find(self, method: bytes, target: bytes) -> tuple[Reply, dict[str, str]]:
        if target == b"/broken":
            raise LookupError(method, target)
        return Reply(404), {}


def on_wire(use: Callable[[HttpProtocol, Wire], None]) -> Wire:
    """Call a function with a new connection, and return what it was written to."""

    async def main() -> Wire:
        wire = Wire()
        protocol = HttpProtocol(NoEndpoints())
        protocol.connection_made(wire)
        use(protocol, wire)
        return wire

    return asyncio.run(main())


@pytest.mark.parametrize("begin", [b"0\r\n", b"0\r\na: ", b"1;"])
def test_trailers_without_end_are_not_read(begin: bytes) -> None:
    def use(protocol: HttpProtocol, wire: Wire) -> None:
        protocol.data_received(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + begin)
        assert wire.written.startswith(b"HTTP/1.1 404 ")
        line = b"a: b\r\n" if begin == b"0\r\n" else b"xxxxxx"
        for _ in range(3000):
            protocol.data_received(line)

    wire = on_wire(use)
    assert wire.is_closed
    assert wire.written.count(b"HTTP/1.1 ") == 1  # there is no second answer


def test_a_long_target_is_refused_in_one_piece_too() -> None:
    wire = on_wire(
        lambda protocol, _: protocol.data_received(b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n")
    )
    assert wire.written.startswith(b"HTTP/1.1 431 ")


def test_an_unexpected_error_has_status_500(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wire = on_wire(lambda protocol, _: protocol.data_received(b"GET /broken HTTP/1.1\r\n\r\n"))
    assert wire.written.startswith(b"HTTP/1.1 500 ")
    assert "LookupError" in caplog.text


def test_empty_lines_do_not_keep_a_connection() -> None:
    def use(protocol: HttpProtocol, wire: Wire) -> None:
        protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
        since = protocol.since = protocol.since - 11.0
        protocol.data_received(b"\r\n")
        assert protocol.since == since
        assert protocol.waits_for(since + 11.0, ConnectionLimits()) == "idle"
        assert not wire.is_closed

    on_wire(use)


def test_a_slow_client_times_out_only_when_it_stops_reading() -> None:
    def use(protocol: HttpProtocol, wire: Wire) -> None:
        limits = ConnectionLimits()
        wire.unsent = 10_000_000
        protocol.pause_writing()
        now = asyncio.get_running_loop().time()
        for _ in range(10):
            now, wire.unsent = now + 20.0, wire.unsent - 500_000
            assert protocol.waits_for(now, limits) == ""
        assert protocol.waits_for(now + 29.0, limits) == ""
        wire.unsent -= 100  # too few
        assert protocol.waits_for(now + 31.0, limits) == "answer"
        protocol.resume_writing()
        assert protocol.waits_for(protocol.since + 5.0, limits) == ""  # then it is idle

    on_wire(use)


def test_a_rejected_body_that_comes_late_has_no_second_answer() -> None:
    def use(protocol: HttpProtocol, wire: Wire) -> None:
        protocol.data_received(HEAD + b"Content-Length: 40\r\n\r\n")
        protocol.drop(408, "body did not come in time")
        assert wire.is_closed

    assert on_wire(use).written.count(b"HTTP/1.1 ") == 1


UPLOADS = (("PUT", "/v1/model"), ("PUT", "/personalizer/v1.0/model"), ("POST", "/v1/records/x/0"))
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("size", [1, 100, 1000, 1 << 20])
@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\na: " + b"b" * 20_000,
        b"GET /" + b"a" * 20_000,
        b"GET / HTTP/1.1\r\n" + b"a" * 20_000,
        b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\na: " + b"b" * 20_000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n",
        CHUNKED + b"5\r\nhello\r\n0\r\n" + b"a: b\r\n" * 102,
        CHUNKED + b"5\r\nhello\r\n0\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
        CHUNKED + b"4000\r\n" + b"h" * 0x4000 + b"\r\n0\r\na: " + b"b" * 20_000,
        CHUNKED + b"5;" + b"a" * 20_000,
        CHUNKED + b"0" * 20_000,
    ],
)
def test_heads_and_trailers_beyond_the_limit_end_a_connection_in_any_pieces(data: bytes, size: int) -> None:
    def use(protocol: HttpProtocol, wire: Wire) -> None:
        for begin in range(0, len(data), size):
            protocol.data_received(data[begin : begin + size])
        assert wire.is_closed

    written = on_wire(use).written
    statuses = [int(answer[:3]) for answer in written.split(b"HTTP/1.1 ")[1:]]
    assert statuses[-1] == 431 or data.startswith(HEAD)  # there is no endpoint: 404 may be the answer
    assert len(statuses) == 1 + data.count(b"\r\n\r\nGET")


def test_trailers_beyond_the_limit_are_rejected(service: Service) -> None:
    body = rank("trailers")
    line = b"a: b\r\n"
    for trailers, expected in (
        (line * 100, 200),
        (line * 101, 431),
        (line * 20_000, 431),
        (b"a: " + b"b" * 20_000 + b"\r\n", 431),
    ):
        with connected(service) as connection:
            data = CHUNKED + b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, trailers)
            assert status(connection, data) == expected


@pytest.mark.parametrize(
    ("method", "path", "more", "expected"),
    [
        ("POST", "/v1/rank", b"Content-Length: " + b"0" * 5000 + b"2\r\n", 400),
        ("GET", "/healthz", b"Content-Length: " + b"0" * 5000 + b"2\r\n", 400),
        ("GET", "/healthz", b"Content-Length: " + b"9" * 5000 + b"\r\n", 400),
        ("POST", "/v1/records/x/" + "9" * 5000, b"Content-Length: 2\r\n", 400),
        ("POST", "/v1/records/x/" + "9" * 19, b"Content-Length: 2\r\n", 409),
        ("POST", "/v1/rank?" + "9" * 5000, b"Content-Length: 2\r\n", 400),
        ("GET", "/healthz?x=" + "9" * 5000, b"", 200),
        ("GET", "/" + "9" * 5000, b"", 404),
        ("POST", "/v1/activate/" + "9" * 5000, b"Content-Length: 0\r\n", 400),
        ("GET", "/healthz", b"Host: 127.0.0.1:" + b"9" * 5000 + b"\r\n", 200),
        ("GET", "/healthz", b"Origin: http://127.0.0.1:" + b"9" * 5000 + b"\r\n", 403),
        ("GET", "/healthz", b"Range: bytes=0-" + b"9" * 5000 + b"\r\n", 200),
        ("POST", "/v1/rank", b"Content-Encoding: gzip\r\nContent-Length: 2\r\n", 415),
        ("PUT", "/v1/model", b"Content-Encoding: br\r\nContent-Length: 2\r\n", 415),
        ("POST", "/v1/rank", b"Content-Encoding: Identity\r\nContent-Length: 2\r\n", 400),
        ("POST", "/v1/rank", b"Transfer-Encoding: gzip, chunked\r\n", 400),
        ("POST", "/v1/rank", b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 400),
        ("POST", "/v1/rank", b"Transfer-Encoding: chunked, chunked\r\n", 400),
    ],
)
def test_long_numbers_and_compressed_bodies_are_client_errors(
    service: Service, method: str, path: str, more: bytes, expected: int
) -> None:
    host = b"" if more.startswith(b"Host") else b"Host: 127.0.0.1\r\n"
    body = b"{}" if b"Length" in more and b": 0\r\n" not in more else b""
    body = b"2\r\n{}\r\n0\r\n\r\n" if b"Transfer" in more else body
    with connected(service) as connection:
        line = f"{method} {path} HTTP/1.1\r\n".encode()
        assert status(connection, line + host + more + b"\r\n" + body) == expected


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/rank", b'{"actions":{"a":{"x":%s}}}'),
        ("/v1/rank", b'{"actions":{"a":{"n":{"x":%s}}}}'),
        ("/v1/rank", b'{"actions":{"a":{"n":{"x":[%s,1,2]}}},"context":{"_text":%s}}'),
        ("/v1/rank", b'{"actions":{"a":{"x":-%s.5e-%s}}}'),
        ("/v1/reward", b'{"event_id":"e","reward":%s}'),
        ("/v1/reward", b'{"event_id":"e","reward":1e%s}'),
        ("/v1/reward", b'{"event_id":%s,"reward":1}'),
        ("/v1/metric", b'{"event_id":"e","metric":"m","value":%s}'),
        ("/v1/rank:batch", b'{"decisions":[{"actions":{"a":{"_multi":%s}}}]}'),
        ("/v1/evaluate", b'{"policies":["--cb_explore_adf --automl %s"]}'),
        ("/v1/models/canary", b'{"name":"m","share":%s}'),
        ("/personalizer/v1.0/events/e/reward", b'{"value":%s}'),
    ],
)
def test_numbers_of_5000_digits_in_bodies_are_client_errors(service: Service, path: str, body: bytes) -> None:
    with connected(service) as connection:
        assert status(connection, request(body.replace(b"%s", b"9" * 5000), path=path)) < 500


def test_actions_in_the_format_of_personalizer_are_rejected(service: Service) -> None:
    actions = [{"id": "a", "features": [{"x": 1}]}, {"id": "b"}]
    one = {"actions": actions}
    for path, body in (("/v1/rank", one), ("/v1/rank/slots", {**one, "slots": [{"id": "top"}]})):
        answer = httpx.post(service.url + path, json=body)
        assert answer.status_code == 400
        assert "/personalizer/v1.0/rank" in answer.json()["error"]["message"]
    (row,) = httpx.post(f"{service.url}/v1/rank:batch", json={"decisions": [one]}).json()["decisions"]
    assert row["status"] == 400


def test_a_closed_connection_frees_its_body_without_the_collector() -> None:
    ended: list[weakref.ref[Any]] = []

    def use(protocol: HttpProtocol, _: Wire) -> None:
        ended.append(weakref.ref(protocol))
        protocol.data_received(HEAD + b"Content-Length: 100\r\n\r\nhalf")
        protocol.connection_lost(None)

    gc.collect()
    gc.disable()
    try:
        on_wire(use)
        assert ended[0]() is None
    finally:
        gc.enable()


def test_bodies_are_freed_with_their_answers(serve: Callable[..., InProcessClient]) -> None:
    limits, size = Limits(body_bytes=1 << 19), 1 << 22
    client = serve(limits=limits)
    host, port = "127.0.0.1", client.base_url.port
    assert port is not None
    rejected = [b"\0" * size, b"{" * size]
    batch = b'{"decisions":[' + b",".join([b'{"actions":{"a":{}}}'] * 300) + b"]}"
    requests = [
        *[(method, path, {}, body) for method, path in UPLOADS for body in rejected],
        ("PUT", "/v1/model", {"Origin": "http://elsewhere"}, rejected[0]),
        ("PUT", "/v1/model", {"Content-Encoding": "gzip"}, rejected[0]),
        ("PUT", "/v1/nothing", {}, rejected[0]),
        ("POST", "/v1/rank", {}, rejected[0]),
        ("POST", "/v1/rank", {}, rejected[0][:500_000]),
        ("POST", "/v1/rank:batch", {}, batch + b" " * (size - len(batch))),
    ]
    client.get("/healthz")
    gc.collect()
    tracemalloc.start()
    gc.disable()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for method, path, headers, body in requests:
            for is_chunked in (False, True):
                content = iter([body[:1000], body[1000:]]) if is_chunked else body
                connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
                with suppress(ConnectionError):  # the answer may come before the body
                    connection.request(method, path, content, headers, encode_chunked=is_chunked)
                    assert 400 <= connection.getresponse().status < 500
                connection.close()
        with socket.create_connection((host, port)) as left:  # in the middle of a body
            left.sendall(b"PUT /v1/model HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000000\r\n\r\n")
            left.sendall(rejected[0])
        del content
        until(lambda: len(client.app.connections) <= 1)
        assert tracemalloc.get_traced_memory()[0] - before < size // 4
    finally:
        gc.enable()
        tracemalloc.stop()


RANK = {"context": {"u": {"a": 1}}, "actions": {"a": {"x": {"one": 1}}, "b": {"x": {"two": 1}}}}


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
def test_two_thousand_idle_connections_do_not_delay_other_clients(tmp_path: Path, kind: str) -> None:
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


def test_a_connection_beyond_the_limit_closes_the_longest_waiting_one() -> None:
    class Fake(HttpProtocol):
        is_waiting = True

        def __init__(self, *, waiting: bool) -> None:
            self.is_waiting, self.dropped, self.since = waiting, list[int](), 0.0

        def waits_for(self, now: float, limits: ConnectionLimits) -> str:
            return "idle" if self.is_waiting and now - self.since > limits.header_seconds else ""

        def drop(self, status: int, message: str) -> None:
            del message
            self.dropped.append(status)

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


def test_the_connection_limit_reserves_file_descriptors() -> None:
    code = (
        "import resource, sys; from onlineauto.service.http.http_protocol import most_connections; "
        "print(most_connections(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    for limit, most in ((1024, 640), (256, 64)):
        command = ["bash", "-c", f'ulimit -n {limit}; exec "$@"', "bash", sys.executable, "-c", code]
        out = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        assert out.split() == [str(most), str(limit)]
    assert most_connections(10) == 10
