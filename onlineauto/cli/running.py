"""Shared parts of verbs about studies: imports from this folder, termination, and names of studies."""

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
    """SIGTERM arrived. Like Ctrl-C, it is never treated as the error of a trial or of a job."""


@contextmanager
def return_jobs_on_exit() -> Iterator[None]:
    """Return jobs to the study if this process is terminated; let modules of this folder be imported."""
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
    """Return the name of the only study in a store."""
    from onlineauto.tune.store.sql_store import names_of_studies

    names = names_of_studies(url)
    if len(names) != 1:
        some = ", ".join(names) or "none"
        raise OptionError(f"name a study of the store with --name; it has: {some}")
    return names[0]


def _leave(number: int, frame: FrameType | None) -> None:
    """Interrupt the main thread."""
    del number, frame
    raise Terminated
