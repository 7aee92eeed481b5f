"""``open_store``: the store that ``storage=`` describes. ``retry_call``: wait for an unreachable store."""

from __future__ import annotations

import logging
import random
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from onlineauto.errors import OptionError, UnreachableError, install_hint
from onlineauto.tune.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.tune.store.protocol import Store

_LOG: Final = logging.getLogger("onlineauto")
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 5.0
"""Seconds between two attempts to reach a store, at first and at most."""
_PASSWORD: Final = re.compile(r"(://[^:/?#@]*):.*@", re.DOTALL)
_T = TypeVar("_T")
_IN_QUERY: Final = re.compile(r"((?:^|[?&\s])(?:ssl)?password=)[^&\s]*", re.IGNORECASE)


def without_password(url: str) -> str:
    """Return a URL without its password; the URL need not be valid.

    >>> without_password("mysql://me:sec/r@t@host/db?password=other&x=1")
    'mysql://me:***@host/db?password=***&x=1'
    """
    return _IN_QUERY.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


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
        valid = ", ".join(f"{scheme_name}:…" for scheme_name in STORES) or "None, in memory"
        raise OptionError(f"storage = {without_password(storage)!r} is not a known store; valid are {valid}")
    return STORES[scheme](storage, name)


def open_existing(storage: str | Store, name: Any) -> Store:
    """Return the store of an existing study; a file of SQLite that does not exist is not created."""
    if (
        isinstance(name, str)
        and isinstance(storage, str)
        and storage.partition(":")[0].partition("+")[0] == "sqlite"
    ):
        with suppress(ImportError):  # open_store() raises an error that names the package
            from onlineauto.tune.store.connection import missing_file

            if (file := missing_file(storage)) is not None:
                raise OptionError(
                    f"there is no study {name!r} in {without_password(storage)}: there is no file {file}"
                )
    return open_store(storage, name)


def retry_call(call: Callable[[], _T], seconds: float) -> _T:
    """Return the result of a call; repeat it for up to `seconds` while its store is unreachable."""
    end = time.monotonic() + seconds
    wait = _FIRST_WAIT
    while True:
        try:
            return call()
        except UnreachableError as error:
            if time.monotonic() + wait > end:
                raise
            _LOG.warning("%s; trying again", error)
        time.sleep(wait * random.uniform(0.5, 1))
        wait = min(2 * wait, _LONGEST_WAIT)
