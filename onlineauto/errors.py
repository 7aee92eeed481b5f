"""Every error that onlineauto raises on purpose.

* OnlineautoError
  + OptionError        an option that is unknown, out of range, or at odds with another
  + InputError         input that cannot be read or used; the message has the position
    - ParseError       one malformed line, under ``--strict_parse``
    - EventTypeError   a value that is not an event, or not a source of events; also a TypeError
  + OutputError        a file that cannot be written; also an OSError
  + PackageError       a package that is not installed; also a ModuleNotFoundError
  + CompilerError      machine code is missing, and cannot be compiled
  + WorkersError       workers have died again and again; also an OSError, so a later attempt may succeed
  + StoreError         the store of a study is damaged, of a later version, or not a store
    - UnreachableError no server answers, or the file is locked; a later attempt may succeed
"""

from __future__ import annotations

import warnings
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CompilerError",
    "EventTypeError",
    "InputError",
    "OnlineautoError",
    "OptionError",
    "OutputError",
    "PackageError",
    "ParseError",
    "StoreError",
    "UnreachableError",
    "WorkersError",
    "deprecated",
    "install_hint",
    "kind_of",
    "short_repr",
]

_SHOWN = 80
_P = ParamSpec("_P")
_R = TypeVar("_R")


def deprecated(*, since: str, removal: str, use: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator of a function, whose callers get a `DeprecationWarning` that says what to `use`.

    >>> @deprecated(since="1.2", removal="2.0", use="new")
    ... def old() -> int:
    ...     "Return one."
    ...     return 1
    >>> print(old.__doc__)
    Return one.
    <BLANKLINE>
    Deprecated since version 1.2, will be removed in 2.0: use new.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def warn(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            message = f"{function.__qualname__} is deprecated since version {since} and will be removed in "
            warnings.warn(f"{message}{removal}: use {use}", DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        note = f"Deprecated since version {since}, will be removed in {removal}: use {use}."
        warn.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n{note}"
        return warn

    return decorate


def install_hint(extra: str) -> str:
    """Return a sentence on how to install the packages of an extra, for an error message.

    onlineauto is not on a package index, so its extras are installed from a checkout.

    >>> install_hint("blocks")
    "run pip install '.[blocks]' in a checkout of onlineauto"
    """
    return f"run pip install '.[{extra}]' in a checkout of onlineauto"


def short_repr(value: object) -> str:
    """Return the text of a value for messages: its `repr`, truncated if it is long.

    >>> short_repr("tom"), len(short_repr(["tom"] * 1000)), short_repr(10**10000)
    ("'tom'", 80, 'a whole number of 33220 bits')
    """
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print whole numbers of thousands of digits
        text = f"a whole number of {value.bit_length()} bits" if isinstance(value, int) else kind_of(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def kind_of(value: object) -> str:
    """Return the name of a value's type with its article, for messages.

    >>> kind_of(object()), kind_of([])
    ('an object', 'a list')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


class OnlineautoError(Exception):
    """Base of every error that onlineauto raises on purpose."""


class OptionError(OnlineautoError, ValueError):
    """An option is unknown, out of range, or contradicts another one."""


class InputError(OnlineautoError):
    """Input cannot be read or used; the message names the file and the line in it."""


class EventTypeError(InputError, TypeError):
    """A value has a type that cannot be an event, or a source of events."""


class OutputError(OnlineautoError, OSError):
    """A file cannot be written; the message names the file. An existing file at that path is unchanged."""


class PackageError(OnlineautoError, ModuleNotFoundError):
    """A required package is not installed; the message names the package."""


class CompilerError(OnlineautoError):
    """Machine code is neither in a library nor on the disk, and cannot be compiled."""


class ParseError(InputError):
    """A line is malformed and ``--strict_parse`` makes that fatal.

    Parameters
    ----------
    message : str
        The whole message: ``FILE:LINE:COLUMN: what is wrong``.
    line : int
        1-based line number in the file.
    column : int
        1-based byte column in the line.
    """

    def __init__(self, message: str, *, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class WorkersError(OnlineautoError, OSError):
    """Workers have died again and again, or had no memory or disk; a later attempt may succeed."""


class StoreError(OnlineautoError):
    """The store of a study is damaged, of a later version, or not a store."""


class UnreachableError(StoreError):
    """No server answers, or the file is locked or cannot be opened; a later attempt may succeed."""
