"""OpenTelemetry: spans of a loop, its log records, and no cost without it."""

from __future__ import annotations

import gzip
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import Raw

from onlineauto.errors import OptionError
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Loop
from onlineauto.service.loop.telemetry import ENDPOINTS, LogHandler
from onlineauto.service.ranking import RankRequest
from onlineauto.workspace.options import REGISTRY
from tests.service.serving import Service


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """In-memory exporters of spans and of log records, behind providers that the program has configured."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import _logs, trace
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, records = InMemorySpanExporter(), InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: tracers)
    monkeypatch.setattr(trace, "get_tracer", tracers.get_tracer)
    monkeypatch.setattr(_logs, "get_logger_provider", lambda: loggers)
    monkeypatch.setattr(_logs, "get_logger", loggers.get_logger)
    yield spans, records
    log = logging.getLogger("onlineauto")
    for handler in [each for each in log.handlers if isinstance(each, LogHandler)]:
        log.removeHandler(handler)


def rank_request(event_id: str) -> RankRequest:
    return RankRequest(
        event_id, [{"user": Raw(b'"ann"')}], ["a", "b"], [[{"x": Raw(b"1")}], [{"y": Raw(b"1")}]]
    )


def test_ranks_rewards_and_learning_have_spans_and_warnings_are_exported(
    tmp_path: Path, exported: tuple[Any, Any]
) -> None:
    spans, records = exported
    loop = Loop(tmp_path, REGISTRY.parse("--cb_explore_adf"))
    loop.rank(rank_request("e1"), ignore_completion)
    loop.reward("e1", 1.0, ignore_completion)
    with pytest.raises(Exception, match="finite"):
        loop.reward("e1", float("inf"), ignore_completion)
    loop.leave()
    while loop.learn():
        pass
    loop.close()
    logging.getLogger("onlineauto.service").warning("a test", extra={"event": "tested"})
    found = [(span.name, dict(span.attributes)) for span in spans.get_finished_spans()]
    assert found[0] == ("onlineauto.rank", {"onlineauto.decisions": 1, "onlineauto.rejected": 0})
    assert found[1] == ("onlineauto.reward", {})
    assert found[2] == ("onlineauto.reward", {"error.type": "RefusedError"})
    learning = [attributes for name, attributes in found if name == "onlineauto.learn"]
    assert sum(each["onlineauto.records"] for each in learning) >= 2
    last = records.get_finished_logs()[-1].log_record
    assert (last.body, last.severity_text, last.attributes["event"]) == ("a test", "WARNING", "tested")


class Collector(BaseHTTPRequestHandler):
    """Keeps what is posted to it, as a collector that speaks OTLP over HTTP does."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.posted.append((self.path, self.headers["Content-Type"], body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.mark.ci
def test_a_service_sends_spans_and_warnings_to_a_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    logs = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        posted: list[tuple[str, str, bytes]] = []
        collector.posted = posted  # type: ignore[attr-defined]
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        monkeypatch.setenv(ENDPOINTS[0], f"http://127.0.0.1:{collector.server_port}")
        with Service(tmp_path / "loop") as service, httpx.Client(base_url=service.url) as client:
            body = {"event_id": "e1", "actions": {"a": {"x": 1}, "b": {"y": 1}}}
            assert client.post("/v1/rank", json=body).status_code == 200
            assert client.post("/v1/reward", json={"event_id": "e1", "reward": 1.0}).status_code == 204
            assert service.stop() == 0  # what waits in batches is sent before the end
        collector.shutdown()
    assert {kind for _, kind, _ in posted} == {"application/x-protobuf"}
    spans, records = set(), []
    for path, _, posted_body in posted:
        sent = (traces.ExportTraceServiceRequest if path == "/v1/traces" else logs.ExportLogsServiceRequest)()
        sent.ParseFromString(posted_body)
        if path == "/v1/traces":
            scopes = [scope for resource_span in sent.resource_spans for scope in resource_span.scope_spans]
            spans |= {span.name for scope in scopes for span in scope.spans}
        else:
            assert path == "/v1/logs"
            records += [one for resource_log in sent.resource_logs for one in resource_log.scope_logs]
    assert {"onlineauto.rank", "onlineauto.reward", "onlineauto.learn"} <= spans
    assert "serving" in str(records)


@pytest.mark.ci
def test_a_collector_that_is_away_does_not_delay_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as silent:  # accepts connections, and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen(50)
        for port in (silent.getsockname()[1], 9):
            monkeypatch.setenv(ENDPOINTS[0], f"http://127.0.0.1:{port}")
            with Service(tmp_path / f"loop{port}") as service:
                body = {"actions": {"a": {"x": 1}, "b": {"y": 1}}}
                assert httpx.post(f"{service.url}/v1/rank", json=body).status_code == 200
                begin = time.monotonic()
                assert service.stop() == 0
                assert time.monotonic() - begin < 9.0  # `docker stop` kills after 10 seconds


def test_without_configuration_nothing_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from onlineauto.service.loop.loop import Loop; "
        "from onlineauto.workspace.options import REGISTRY; "
        f"loop = Loop({str(tmp_path)!r}, REGISTRY.parse('--cb_explore_adf')); "
        "assert 'rank_all' not in vars(loop); loop.close(); "
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINTS[0], "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(OptionError, match=r"OTEL_EXPORTER_OTLP_ENDPOINT .*\.\[otel\]"):
        Loop(tmp_path, REGISTRY.parse("--cb_explore_adf"))
