"""`Log` and `OneOf`: ways to search an option, set by ``tunable=`` in its declaration.

One declaration defines the steps of the streaming search (`neighbours`), the record of a live config's
settings (`write`) and the spaces of outer tuners (bounds and values).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    write: Callable[[Any, Any, Any], object]


@dataclass(frozen=True, slots=True)
class Log(_Written):
    """A positive number that is searched on a logarithmic scale.

    Attributes
    ----------
    low, high : float
        Bounds of the space of an outer tuner. The streaming search may step beyond them.
    factors : tuple of float
        A step multiplies the value by one of these, tried in this order.
    first : float
        The first value tried if the option is 0; 0 means that such an option is not searched.
    write : callable
        Called as ``write(record, value, default)``: writes a value into the record of a live config's
        settings; the default is the value of the command line.
    valid : callable
        Returns whether a value is valid for the option; set by the option's declaration. Invalid values are
        not tried.
    """

    low: float
    high: float
    factors: tuple[float, ...] = (4.0, 0.25)
    first: float = 0.0
    valid: Callable[[float], bool] = field(default=math.isfinite, compare=False, repr=False)

    def neighbours(self, value: float) -> Sequence[float]:
        """Return the values one step away from `value`, in the order in which they are tried.

        >>> Log(1e-3, 1, factors=(10.0, 0.1), first=0.5, write=print).neighbours(0.0)
        [0.5]
        """
        if value == 0.0:
            steps = [self.first] if self.first else []
        else:
            steps = [value * factor for factor in self.factors]
        return [each for each in steps if self.valid(each)]


@dataclass(frozen=True, slots=True)
class OneOf(_Written):
    """One of several words.

    Attributes
    ----------
    values : tuple of str
        The words to try, in this order.
    write : callable
        Called as ``write(record, value, default)``, like that of `Log`.
    """

    values: tuple[str, ...]

    def neighbours(self, value: str) -> Sequence[str]:
        """Return all other words.

        >>> OneOf(("mtr", "dr"), write=print).neighbours("dr")
        ['mtr']
        """
        return [each for each in self.values if each != value]


Tunable = Log | OneOf
"""How an option is searched."""
