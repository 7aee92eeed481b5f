"""Counters: what a run has counted, for a model file to keep."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, ClassVar, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Count", "Counters"]

Count: TypeAlias = int | float | None
"""A number; None before anything was counted."""


class Counters:
    """An object that counts in attributes, all of them numbers.

    >>> class Events(Counters):
    ...     counted = ("events",)
    ...     events = 3
    >>> Events().counts()
    {'events': 3}
    """

    counted: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes."""

    def counts(self) -> dict[str, Count]:
        """What `recount` takes."""
        return {name: getattr(self, name) for name in self.counted}

    def recount(self, counts: Mapping[str, Count]) -> None:
        """Go on where another left off, each number as one of its kind."""
        for name in self.counted:
            kind = type(getattr(self, name))
            setattr(self, name, counts[name] if kind is NoneType else kind(counts[name]))
