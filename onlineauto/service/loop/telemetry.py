"""OpenTelemetry: spans of ranks, rewards and learning, and the log records of the service.

Nothing happens, and nothing is imported, unless a variable of `ENDPOINTS` is set or the program has
configured OpenTelemetry itself, for example by ``opentelemetry-instrument``. Spans have no bodies, features
or ids. `JsonLines` formats the log records for a terminal or a file.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.errors import OptionError, install_hint
from onlineauto.formats.decisions.dsjson import stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.service.loop.front import Front

ENDPOINTS: Final = tuple(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT" for kind in ("", "TRACES_", "LOGS_"))
"""Standard variables of the environment, each of which turns OpenTelemetry on."""

_LOG = logging.getLogger("onlineauto")
_END_SECONDS: Final = 3.0
_PROVIDERS: Final = list[Any]()  # those of this module, which `end_telemetry` shuts down

LOOP: Final[ContextVar[str]] = ContextVar("LOOP", default="")
"""The name of the loop to which the present work belongs, unless it is the default."""
_PLAIN: Final = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON: its time, level, logger, message and extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line of JSON."""
        line: dict[str, Any] = {
            "time": stamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if loop := LOOP.get():
            line["loop"] = loop
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def record_spans(front: Front) -> None:
    """Record spans of `rank_all`, `reward` and `learn` of a front, if OpenTelemetry is configured."""
    if not _configured():
        return
    from opentelemetry.trace import get_tracer

    tracer = get_tracer("onlineauto")
    counts: dict[str, Callable[..., Mapping[str, int] | None]] = {
        "rank_all": lambda answers: {
            "onlineauto.decisions": len(answers),
            "onlineauto.rejected": sum(isinstance(answer, Exception) for answer in answers),
        },
        "reward": lambda _: {},
        "learn": lambda taken: {"onlineauto.records": taken} if taken else None,  # no span while idle
    }
    for method, count in counts.items():
        if hasattr(front, method):
            name = f"onlineauto.{method.removesuffix('_all')}"
            setattr(front, method, _traced(tracer, name, getattr(front, method), count))


def _configured() -> bool:
    """Return whether OpenTelemetry is in use; configure it by the environment if it is not configured."""
    env = os.environ
    wanted = [name for name in ENDPOINTS if env.get(name)]
    disabled = env.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if disabled or not (wanted or "opentelemetry.sdk.trace" in sys.modules):
        return False
    try:
        from opentelemetry import _logs, trace
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        what = wanted[0] if wanted else "OpenTelemetry"
        raise OptionError(f"{what} needs packages: {install_hint('otel')}") from error

    if wanted and not isinstance(trace.get_tracer_provider(), TracerProvider):
        if env.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp":
            spans = TracerProvider(shutdown_on_exit=False)
            _PROVIDERS.append(spans)
            spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            trace.set_tracer_provider(spans)
        if env.get("OTEL_LOGS_EXPORTER", "otlp") == "otlp":
            records = LoggerProvider(shutdown_on_exit=False)
            _PROVIDERS.append(records)
            records.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
            _logs.set_logger_provider(records)
    if isinstance(_logs.get_logger_provider(), LoggerProvider) and not any(
        isinstance(handler, LogHandler) for handler in _LOG.handlers
    ):
        _LOG.addHandler(LogHandler())
    return isinstance(trace.get_tracer_provider(), TracerProvider)


def end_telemetry() -> None:
    """Send the spans and log records that wait, for 3 seconds at most if the collector is away."""
    threads = [threading.Thread(target=provider.shutdown, daemon=True) for provider in _PROVIDERS]
    until = time.monotonic() + _END_SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0.0))
    _PROVIDERS.clear()


def _traced(
    tracer: Any, name: str, method: Callable[..., Any], count: Callable[..., Mapping[str, int] | None]
) -> Callable[..., Any]:
    """Return a method that records a span for each call, with attributes that `count` makes of the result."""

    @wraps(method)
    def call(*arguments: Any, **keywords: Any) -> Any:
        begin = time.time_ns()
        try:
            result = method(*arguments, **keywords)
        except Exception as error:
            failed = {"error.type": type(error).__name__}
            tracer.start_span(name, start_time=begin, attributes=failed).end()
            raise
        attributes = count(result)
        if attributes is not None:
            tracer.start_span(name, start_time=begin, attributes=attributes).end()
        return result

    return call


class LogHandler(logging.Handler):
    """Passes log records to OpenTelemetry."""

    def emit(self, record: logging.LogRecord) -> None:
        """Emit a record with its level, its message and the name of its event."""
        from opentelemetry._logs import SeverityNumber, get_logger

        number = min(max(record.levelno // 10, 1), 5) * 4 + 1  # DEBUG is 5, INFO 9, WARNING 13, ERROR 17
        get_logger(record.name).emit(
            timestamp=int(record.created * 1e9),
            severity_number=SeverityNumber(number),
            severity_text=record.levelname,
            body=record.getMessage(),
            attributes={"event": str(getattr(record, "event", ""))},
        )
