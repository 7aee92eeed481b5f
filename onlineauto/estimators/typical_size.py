"""``TypicalSize``: the typical size of numbers of one kind, for programs that have them one by one."""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec

from onlineauto.estimators.typical_size_kernels import BEYOND, ORDINARY, RUINED, SMALLEST, STATE, judge

__all__ = ["BEYOND", "ORDINARY", "RUINED", "TypicalSize"]

_judge = cast("Any", judge).py_func
_LARGEST = 128 - SMALLEST + 1


class TypicalSize(msgspec.Struct):
    """The typical size of some numbers; see `onlineauto.estimators.typical_size_kernels`.

    >>> size = TypicalSize()
    >>> [size.judge(number) == BEYOND for number in (1.0, 3.0, -2.0, 1e9, 2.0)]
    [False, False, False, True, False]
    """

    state: list[int] = msgspec.field(default_factory=lambda: [0] * STATE)

    def judge(self, number: float, *, before: float = 0.0) -> int:
        """Return whether a number is `ORDINARY`, `BEYOND` all before, or has `RUINED` them; count it.

        `before` is a number of typical size to assume if none was counted yet; 0 if there is none.
        """
        if number == 0.0:
            return ORDINARY
        verdict: int = _judge([self.state], 0, _size(number), _size(before) if before else 0)
        return verdict


def _size(number: float) -> int:
    return min(max(math.frexp(number)[1] - SMALLEST + 1, 1), _LARGEST)
