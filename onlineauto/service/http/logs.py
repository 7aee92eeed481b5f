"""``JsonLines``: log records as lines of JSON. They have no bodies, no features and no tokens."""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec

from onlineauto.formats.decisions.dsjson import stamp

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
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()
