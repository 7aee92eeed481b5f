"""``EventIds``: ids of decisions that no other model and no other process gives."""

from __future__ import annotations

import os
import secrets

__all__ = ["EventIds"]


class EventIds:
    """Gives ids: a random prefix and a count. Each copy, and each process, has a prefix of its own.

    Examples
    --------
    >>> ids = EventIds()
    >>> one, other = next(ids), next(ids)
    >>> one[-2:], other[-2:], one[:-2] == other[:-2]
    ('-0', '-1', True)
    """

    __slots__ = ("_count", "_prefix", "_process")

    def __init__(self) -> None:
        self._prefix, self._count, self._process = secrets.token_hex(6), 0, os.getpid()

    def __next__(self) -> str:
        """Return the next id."""
        if os.getpid() != self._process:
            self.__init__()  # type: ignore[misc]  # begins anew in the child of a fork
        count = self._count
        self._count = count + 1
        return f"{self._prefix}-{count}"

    def __reduce__(self) -> tuple[type[EventIds], tuple[()]]:
        """Return the recipe of a copy, which begins anew."""
        return EventIds, ()
