"""Replace enumerations by plain ints in a kernel's function, before Numba sees it.

Numba gives a member of an `IntEnum` a separate type. Before release 0.68 such a member cannot index an array,
and it cannot be unified with an int. A named tuple of ints has neither limit, and its fields are constants
like the members.
"""

from __future__ import annotations

from collections import namedtuple
from enum import EnumType, IntEnum
from functools import cache, update_wrapper
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def without_enumerations(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a function in which the `IntEnum` classes that it names are tuples of ints."""
    assert isinstance(function, FunctionType)
    names = function.__code__.co_names
    plain = {name: _plain(value) for name, value in function.__globals__.items() if name in names}
    cells = tuple(CellType(_plain(cell.cell_contents)) for cell in function.__closure__ or ())
    made = FunctionType(
        function.__code__, function.__globals__ | plain, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return update_wrapper(made, function)


def _plain(value: Any) -> Any:
    """Return a value without enumerations: a member as its int, an `IntEnum` class as a tuple of ints."""
    if isinstance(value, IntEnum):
        return int(value)
    return _tuple_of(value) if isinstance(value, EnumType) and issubclass(value, IntEnum) else value


@cache
def _tuple_of(members: type[IntEnum]) -> Any:
    """Return a named tuple of the ints of all members; one object for each enumeration."""
    named = dict(members.__members__)
    kind: Any = namedtuple(members.__name__, named)  # type: ignore[misc]  # noqa: PYI024
    return kind(*map(int, named.values()))
