"""Counters: the numbers of a run that a model file stores."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from onlineauto.state.stored import MOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

Count: TypeAlias = int | float | None
"""A number; None before anything was counted."""


class Counters:
    """Base of objects whose attributes named in `counted` are stored in a model file.

    >>> class Events(Counters):
    ...     counted = ("events",)
    ...     events = 3
    >>> Events().counts()
    {'events': 3}
    """

    counted: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that are stored."""

    def counts(self) -> dict[str, Count]:
        """Return the numbers by name, for `recount`."""
        return {name: getattr(self, name) for name in self.counted}

    def recount(self, counts: Mapping[str, Count]) -> None:
        """Restore the numbers, each converted to the type of its current value."""
        for name in self.counted:
            setattr(self, name, _of_kind(type(getattr(self, name)), name, counts.get(name, "nothing")))


def _of_kind(kind: type[Any], name: str, value: object) -> Any:
    """Return a number converted to `kind`; with the type of None, any number or None is returned as is."""
    if kind is NoneType and value is None:
        return None
    if isinstance(value, bool):
        fits = kind is bool
    elif isinstance(value, int):
        fits = kind is not bool and abs(value) <= MOST
    else:
        fits = isinstance(value, float | np.floating) and issubclass(kind, float | np.floating)
    if not fits:
        raise ValueError(f"{name} is {value!r}, not of the type {kind.__name__}")
    with np.errstate(over="ignore"):
        return value if kind is NoneType else kind(value)


def total(start: float, terms: NDArray[np.floating[Any]]) -> float:
    """Return `start` plus all terms, added one by one as doubles, which is independent of block sizes.

    >>> total(1.0, np.array([0.5, 2.0]))
    3.5
    """
    return float(np.cumsum(np.concatenate(([start], terms)))[-1])
