"""Language models that are threads of this process: one that answers, and others that do not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

USAGE = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}


def completion(text: str) -> dict[str, Any]:
    """Return the answer of a model in OpenAI's format."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": "upstream",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": USAGE,
    }


class LanguageModel(ThreadingHTTPServer):
    """A model; `answer` returns the text of an answer to a body, and `fault` is how it fails."""

    daemon_threads = True

    def __init__(
        self,
        answer: Callable[[dict[str, Any]], str] = lambda _: "an answer",
        *,
        fault: str = "",
        usage: Any = USAGE,
        wait: str = "",
        events: bytes = b"",
    ) -> None:
        self.answer, self.fault = answer, fault
        self.usage, self.wait, self.events = usage, wait, events  # `events` replaces a stream
        self.bodies: list[dict[str, Any]] = []
        self.heads: list[dict[str, str]] = []
        self.goes_on = threading.Event()  # set to end what hangs
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.goes_on.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: LanguageModel

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass

    def do_POST(self) -> None:
        model = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model.bodies.append(body | {"path": self.path})
        model.heads.append({name.lower(): value for name, value in self.headers.items()})
        if model.fault == "hangs":
            model.goes_on.wait(30)
            self.close_connection = True
        elif model.fault.isdigit():
            self._send(int(model.fault), b'{"error": {"message": "no"}}')
        elif model.fault == "nonsense":
            self._send(200, b"<html>hello</html>")
        elif body.get("stream") and model.events:
            self._send(200, model.events, "text/event-stream")
        elif body.get("stream"):
            self._stream(model.answer(body), asked="stream_options" in body)
        else:
            answer = completion(model.answer(body)) | {"usage": model.usage}
            self._send(200, json.dumps(answer).encode())

    def _send(self, status: int, content: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if self.server.wait:
            self.send_header("retry-after", self.server.wait)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, text: str, *, asked: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        words = text.split(" ")
        if self.server.fault == "endless":
            words = words * 1_000_000
        for index, word in enumerate(words):
            if self.server.fault == "breaks" and index == 1:
                return
            delta = {"content": word if index == 0 else f" {word}"}
            ends = "stop" if index == len(words) - 1 else None
            choice = {"index": 0, "delta": delta, "finish_reason": ends}
            event = {"id": "c1", "model": "upstream", "choices": [choice]}
            try:
                self.wfile.write(b"data: %b\n\n" % json.dumps(event).encode())
                self.wfile.flush()
            except OSError:  # the client has left
                self.server.goes_on.set()
                return
        if asked:
            self.wfile.write(b"data: %b\n\n" % json.dumps({"choices": [], "usage": USAGE}).encode())
        self.wfile.write(b"data: [DONE]\n\n")
        if self.server.fault == "lingers":
            self.wfile.flush()
            self.server.goes_on.wait(30)
