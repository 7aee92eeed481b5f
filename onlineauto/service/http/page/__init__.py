"""Pages of a server: one file each, with the style and the functions that all pages share."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from onlineauto.service.http.wire import Reply, content_type

_FOLDER: Final = Path(__file__).parent
LOOPS_PAGE: Final = _FOLDER / "loops.html"
_SHARED: Final = ("look.css", "parts.js")
_HEADERS: Final = (
    *content_type("text/html; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (
        b"content-security-policy",
        (
            b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
            b"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
)


@lru_cache
def page_of(path: Path) -> str:
    """Return the page of a file: ``{{look.css}}`` and ``{{parts.js}}`` are replaced by what pages share."""
    page = path.read_text("utf-8")
    for name in _SHARED:
        page = page.replace(f"{{{{{name}}}}}", (_FOLDER / name).read_text("utf-8"))
    return page


def page_reply(path: Path = _FOLDER / "service.html") -> Reply:
    """Return the answer with a page, which may connect to its own server only."""
    return Reply(200, page_of(path).encode(), _HEADERS)
