"""``path_at``: the path of a field in a request, for errors that have a position in its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]')
_MOST: Final = 200


def path_at(context: bytes, position: int, ids: Sequence[str]) -> str:
    """Return the path of the field at a position in the text of a request, as its sender knows the field.

    >>> text = b'{"user":{"age":1},"_multi":[{"_tag":"a"},{"_tag":"b","prices":[1,1e50]}]}'
    >>> path_at(text, text.index(b"1}"), ["a", "b"]), path_at(text, text.index(b"1e50"), ["a", "b"])
    ('context.user.age', "action 'b'.prices[1]")
    """
    path: list[str | int] = []
    last = b'""'
    for match in _TOKEN.finditer(context, 0, max(position, 0)):
        token = match[0]
        if token in (b"{", b"["):
            path.append("" if token == b"{" else 0)
        elif token in (b"}", b"]"):
            path.pop()
        elif token == b",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else ""
        elif token == b":":
            path[-1] = msgspec.json.decode(last, type=str)
        else:
            last = token
    begin = "context"
    if len(path) > 1 and path[0] == "_multi" and isinstance(path[1], int):
        begin, path = f"action {ids[path[1]]!r}", path[2:]
    steps = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in path if each != "")
    where = begin + "".join(steps)
    return where if len(where) <= _MOST else f"{where[: _MOST - 3]}..."
