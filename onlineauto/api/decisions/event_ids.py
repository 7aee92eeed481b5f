"""``EventIds``: ids of decisions that are unique across models and processes."""

from __future__ import annotations

import os
import secrets
from typing import ClassVar


class EventIds:
    """Generates ids: a random prefix and a count. Each copy and each process has a separate prefix.

    Examples
    --------
    >>> ids = EventIds()
    >>> one, other = next(ids), next(ids)
    >>> one[-2:], other[-2:], one[:-2] == other[:-2]
    ('-0', '-1', True)
    """

    __slots__ = ("_begun", "_count", "_prefix")

    forks: ClassVar[int] = 0
    """Number of forks between the first process and this one."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._prefix, self._count, self._begun = secrets.token_hex(6), 0, EventIds.forks

    def __next__(self) -> str:
        """Return the next id."""
        if self._begun != EventIds.forks:
            self._begin()
        count = self._count
        self._count = count + 1
        return f"{self._prefix}-{count}"

    def __reduce__(self) -> tuple[type[EventIds], tuple[()]]:
        """Return the constructor call for a copy, which starts with a new prefix."""
        return EventIds, ()


def _count_fork() -> None:
    EventIds.forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)
