"""Parts that verbs about studies share: trainables of this folder, a good end, and names."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_TERMINATED: Final = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived. Like Ctrl-C, it is never taken for the error of a trial or of a job."""


@contextmanager
def ending_well() -> Iterator[None]:
    """Let modules of this folder be found, and jobs be given back if this process is terminated.

    Raises
    ------
    SystemExit
        With code 143, once the body has ended because of SIGTERM.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    except Terminated:
        raise SystemExit(_TERMINATED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def only_name(url: str) -> str:
    """Return the name of the one study of a store.

    Raises
    ------
    OptionError
        If it has none, or several.
    """
    from onlineauto.tune.store.sql_store import names_of_studies

    names = names_of_studies(url)
    if len(names) != 1:
        some = ", ".join(names) or "none"
        raise OptionError(f"--name is needed, as the store has not one study but these: {some}")
    return names[0]


def _leave(number: int, frame: FrameType | None) -> None:
    """Interrupt what the main thread does."""
    del number, frame
    raise Terminated
