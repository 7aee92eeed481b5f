"""``progress_bar``: the progress of learning from a source, on a terminal and in a notebook."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.errors import OptionError, install_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Bar(NamedTuple):
    """A progress bar: the function that advances it, and whether it is displayed."""

    advance: Callable[[int], object]
    shown: bool


@contextmanager
def progress_bar(*, show: bool | None, total: int | None, unit: str) -> Iterator[Bar]:
    """Display a bar with an estimate of the remaining time, and the total time at the end."""
    make = _maker(show)
    if make is None:
        yield Bar(_ignore, shown=False)
        return
    bar = make(total=total, unit=unit if unit == "B" else f" {unit}", unit_scale=True)

    def advance(n: int) -> None:
        with suppress(OSError):  # a terminal that was closed must not end the run
            bar.update(n)

    try:
        yield Bar(advance, shown=True)
    finally:
        with suppress(OSError):
            bar.close()


def _maker(show: bool | None) -> Any:
    """Return the class of the bar; None for no bar."""
    if show is False or (show is None and not _is_watched()):
        return None
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        if show is None:
            return None
        raise OptionError(f"a progress bar needs a package: {install_hint('progress')}") from None
    return tqdm


def _is_watched() -> bool:
    """Return whether standard error is a terminal, or this is a notebook."""
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())


def _ignore(_: int) -> None:
    """Ignore the progress."""
