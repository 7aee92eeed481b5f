"""Turn: what one caller at a time may do, while others are refused."""

from __future__ import annotations

from onlineauto.errors import InputError

__all__ = ["Turn"]


class Turn:
    """Lets one caller in at a time and refuses all others, in whatever thread they are; it can be copied.

    Parameters
    ----------
    name : str
        What is taken turns at, in messages.

    Examples
    --------
    >>> turn = Turn("events.txt")
    >>> with turn, turn:
    ...     pass
    Traceback (most recent call last):
    onlineauto.errors.InputError: events.txt: it is being read already; open it once for each reader
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._free = [name]

    def __enter__(self) -> None:
        try:
            self._free.pop()  # in one step: no two threads can
        except IndexError:
            raise InputError(
                f"{self._name}: it is being read already; open it once for each reader"
            ) from None

    def __exit__(self, *_: object) -> None:
        self._free.append(self._name)
