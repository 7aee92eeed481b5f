"""``open_store``: return the store that ``storage=`` describes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError, install_hint
from onlineauto.tune.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.tune.store.protocol import Store

_OF_USER: Final = re.compile(r"(://[^:/?#@]*):.*@", re.DOTALL)
_IN_QUERY: Final = re.compile(r"((?:^|[?&\s])(?:ssl)?password=)[^&\s]*", re.IGNORECASE)


def without_password(url: str) -> str:
    """Return a URL without its password; the URL need not be valid.

    >>> without_password("mysql://me:sec/r@t@host/db?password=other&x=1")
    'mysql://me:***@host/db?password=***&x=1'
    """
    return _IN_QUERY.sub(r"\1***", _OF_USER.sub(r"\1:***@", url))


def _in_database(url: str, name: str) -> Store:
    """Open a study in SQLite or PostgreSQL."""
    try:
        from onlineauto.tune.store.sql_store import SqlStore
    except ImportError:
        raise OptionError(f"a store in a database needs SQLAlchemy: {install_hint('tune')}") from None
    return SqlStore(url, name)


STORES: dict[str, Callable[[str, str], Store]] = {
    "sqlite": _in_database,
    "postgresql": _in_database,
    "postgres": _in_database,
}
"""Stores by the scheme of their URLs; each is a function of a URL and the name of a study."""


def open_store(storage: str | Store | None, name: Any) -> Store:
    """Return the store of a study: in memory if `storage` is None, and at a URL if it is text."""
    if not isinstance(name, str) or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise OptionError(f"name = {name!r}: give the study a name, a text that UTF-8 can write")
    if storage is None:
        return MemoryStore()
    if not isinstance(storage, str):
        if not callable(getattr(storage, "claim", None)):
            raise OptionError(f"storage = {storage!r}: give a URL, a Store, or None")
        return storage
    scheme = storage.partition(":")[0].partition("+")[0]
    if scheme not in STORES:
        valid = ", ".join(f"{each}:…" for each in STORES) or "None, in memory"
        raise OptionError(f"storage = {without_password(storage)!r} is not a known store; valid are {valid}")
    return STORES[scheme](storage, name)
