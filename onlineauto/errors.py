"""Every error that onlineauto raises on purpose.

* OnlineautoError
  + OptionError        an option that is unknown, out of range, or at odds with another
  + InputError         input that cannot be read or used; the message says where
    - ParseError       one malformed line, under ``--strict_parse``
    - EventTypeError   a value that is no event, or no source of events; a TypeError too
  + OutputError        a file that cannot be written; an OSError too
  + PackageError       a package that is not installed; a ModuleNotFoundError too
  + CompilerError      machine code is not there, and cannot be made
  + StoreError         the store of a study is damaged, of a later version, or not one
    - UnreachableError no server answers, or the file is locked: later it may work
"""

from __future__ import annotations

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
    "install_hint",
]


def install_hint(extra: str) -> str:
    """Return how to install the packages of an extra, for the message of an error.

    onlineauto is on no package index, so its extras are installed from a checkout.

    >>> install_hint("blocks")
    "run pip install '.[blocks]' in a checkout of onlineauto"
    """
    return f"run pip install '.[{extra}]' in a checkout of onlineauto"


class OnlineautoError(Exception):
    """Base of every error that onlineauto raises on purpose."""


class OptionError(OnlineautoError, ValueError):
    """An option is unknown, out of range, or at odds with another one."""


class InputError(OnlineautoError):
    """Input cannot be read or used; the message names the file and the line in it."""


class EventTypeError(InputError, TypeError):
    """A value is of no type that can be an event, or a source of events."""


class OutputError(OnlineautoError, OSError):
    """A file cannot be written; the message names it. An old file at that path is unchanged."""


class PackageError(OnlineautoError, ModuleNotFoundError):
    """A package is needed that is not installed; the message says which."""


class CompilerError(OnlineautoError):
    """Machine code is in no library and not on the disk, and it cannot be made."""


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


class StoreError(OnlineautoError):
    """The store of a study is damaged, of a later version, or not a store at all."""


class UnreachableError(StoreError):
    """No server answers, or the file is locked or cannot be opened; later it may work."""
