"""URLs of stores without passwords, for messages."""

from __future__ import annotations

import re
from typing import Final

_OF_USER: Final = re.compile(r"(://[^:/?#@]*):.*@", re.DOTALL)
_IN_QUERY: Final = re.compile(r"((?:^|[?&\s])(?:ssl)?password=)[^&\s]*", re.IGNORECASE)


def without_password(url: str) -> str:
    """Return a URL without its password; the URL need not be valid.

    >>> without_password("mysql://me:sec/r@t@host/db?password=other&x=1")
    'mysql://me:***@host/db?password=***&x=1'
    """
    return _IN_QUERY.sub(r"\1***", _OF_USER.sub(r"\1:***@", url))
