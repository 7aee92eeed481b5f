"""``format_of_lines``: recognises the format of a source by its first bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Literal

ENOUGH: Final = 1 << 16
"""Number of bytes that suffice to recognise the format."""

_OF_LOG: Final = re.compile(
    rb'"(?:EventId|Timestamp|_outcomes)"\s*:|"c"\s*:\s*{.*"[ap]"\s*:|"[ap]"\s*:.*"c"\s*:\s*{'
)
"""Members of a log's line. Other JSON may have them, too, but has its actions beside them."""


def format_of_lines(head: bytes) -> Literal["text", "json", "dsjson"]:
    r"""Return the format of a source that begins with these bytes.

    >>> format_of_lines(b"shared |u tom\n")
    'text'
    >>> format_of_lines(b'{"_label_cost": 0, "_label_probability": 1, "a": [1], "c": {"u": {"tom": 1}}}')
    'dsjson'
    >>> format_of_lines(b'\n{"_label": 1, "u": {"tom": 1}}')
    'json'
    """
    lines = map(bytes.strip, head.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    line = next((line for line in lines if line.startswith(b"{") or b"|" in line), b"")  # skip damaged lines
    if not line.startswith(b"{"):
        return "text"
    outer = _outer(line)
    return "dsjson" if _OF_LOG.search(outer) and b'"_multi"' not in outer else "json"


def _outer(line: bytes) -> bytes:
    """Return a JSON object without the content of nested objects and arrays; the line may be cut off."""
    result, depth, quoted, begin = bytearray(), 0, False, 0
    for token in re.finditer(rb'\\.|["{}\[\]]', line):
        sign, at = token[0], token.start()
        if sign == b'"':
            quoted = not quoted
        elif not quoted and len(sign) == 1:
            if sign in b"{[":
                if depth == 1:
                    result += line[begin : at + 1]
                depth += 1
            else:
                depth -= 1
                begin = at if depth == 1 else begin
    return bytes(result + line[begin:]) if depth <= 1 else bytes(result)
