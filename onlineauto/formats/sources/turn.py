"""Turn: lets one caller at a time do something and refuses the others."""

from __future__ import annotations

from onlineauto.errors import InputError


class Turn:
    """A context manager that admits one caller at a time, of any thread, and refuses others; can be copied.

    Parameters
    ----------
    name : str
        Name of the guarded source in messages.

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
            self._free.pop()  # atomic: only one thread succeeds
        except IndexError:
            raise InputError(
                f"{self._name}: it is being read already; open it once for each reader"
            ) from None

    def __exit__(self, *_: object) -> None:
        self._free.append(self._name)
