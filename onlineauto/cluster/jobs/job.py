"""``Job``: what a cluster needs of anything that it gives workers to: three methods."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Protocol

from onlineauto.errors import OnlineautoError, OptionError

if TYPE_CHECKING:
    from threading import Thread

_LARGEST: Final = 1e100
"""Amounts and units of work are smaller, so that no product of them overflows."""


_MOST_NODES: Final = 1_000_000
"""The most workers, and servers, of a job."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Name what a job takes of the cluster.

    Attributes
    ----------
    worker, server : mapping
        What one worker, and one server, takes of each resource, by name. A job without servers has none.
    most_workers, most_servers : int
        More than that it cannot use.
    """

    worker: Mapping[str, float] = field(default_factory=lambda: {"CPU": 1.0})
    server: Mapping[str, float] = field(default_factory=dict)
    most_workers: int = 16
    most_servers: int = 16


class Job(Protocol):
    """Work that workers, and maybe servers, do; more or fewer of them while it goes on.

    Three methods are all. A job that has a method ``stop`` is stopped by it when the cluster ends before the
    job does. If workers that are taken from it leave only after a while, a property ``held`` says how many
    workers and servers it still has; nobody else is given theirs before.
    """

    @property
    def demand(self) -> Demand:
        """The resources of one worker and of one server."""

    def progress(self) -> tuple[float, float]:
        """Return units of work that are done, and that there are; it is over when these are the same.

        Both are numbers from 0 to 1e100, of any type that `float` takes; another answer fails the job. A job
        may lose work: its next answer is smaller then.

        Raises
        ------
        Exception
            The job failed; the message says why.
        """

    def resize(self, workers: int, servers: int) -> None:
        """Go on with so many workers and servers; return at once. With none, wait."""


def check_demand(demand: Demand) -> Demand:
    """Return a demand, with amounts as floats and counts as ints.

    Raises
    ------
    OptionError
        An amount is negative or no number, a worker takes nothing, or there are to be no workers.
    """
    try:
        given = ("worker", demand.worker), ("server", demand.server)
        most = ("most_workers", demand.most_workers, 1), ("most_servers", demand.most_servers, 0)
    except AttributeError:
        raise OptionError(f"demand = {demand!r}: give a Demand") from None
    amounts: list[dict[str, float]] = []
    for what, takes in given:
        if not isinstance(takes, Mapping):
            raise OptionError(f"a {what} takes {takes!r}: give amounts by name, as in {{'CPU': 1}}")
        found = {name: _number(amount) for name, amount in takes.items()}
        for name, amount in found.items():
            if amount is None:
                raise OptionError(f"a {what} takes {name} = {takes[name]!r}: give a number, 0 or more")
        amounts.append({name: amount for name, amount in found.items() if amount is not None})
    if not any(amounts[0].values()):
        raise OptionError("a worker takes nothing, so there could be any number: give it some CPU")
    counts = [_count(name, count, least) for name, count, least in most]
    return Demand(amounts[0], amounts[1], counts[0], counts[1])


def check_progress(answer: Any) -> tuple[float, float]:
    """Return the answer of `Job.progress` as floats.

    Raises
    ------
    OnlineautoError
        The answer is not two numbers from 0 to 1e100.

    >>> from fractions import Fraction
    >>> check_progress([Fraction(1, 2), 3])
    (0.5, 3.0)
    """
    with suppress(TypeError, ValueError):
        done, total = map(_number, answer)
        if done is not None and total is not None:
            return done, total
    raise OnlineautoError(f"progress() returned {_shown(answer)}: two numbers from 0 to 1e100 are needed")


def check_held(answer: Any) -> tuple[int, int]:
    """Return the answer of `Job.held` as ints.

    Raises
    ------
    OnlineautoError
        The answer is not two whole numbers, 0 or more.
    """
    with suppress(TypeError, ValueError):
        workers, servers = map(_number, answer)
        if workers is not None and servers is not None and workers % 1 == servers % 1 == 0:
            return int(workers), int(servers)
    raise OnlineautoError(f"held is {_shown(answer)}: two whole numbers, 0 or more, are needed")


def _number(value: Any) -> float | None:
    """Return a number as a float, None if it is negative, not finite, or no number."""
    if isinstance(value, str | bytes | bytearray | bool):
        return None
    try:
        found = float(value)
    except Exception:  # the type of the value is a stranger's
        return None
    return found if isfinite(found) and 0 <= found < _LARGEST else None


def _count(name: str, value: Any, least: int) -> int:
    """Return a whole number that is large enough, and no larger than makes sense.

    Raises
    ------
    OptionError
        The value is not one.
    """
    found = _number(value)
    if found is None or found % 1 or not least <= found <= _MOST_NODES:
        raise OptionError(f"{name} = {value!r}: give a whole number from {least} to {_MOST_NODES:,}")
    return int(found)


def _shown(answer: Any) -> str:
    """Return an answer as text, for a message."""
    try:
        text = repr(answer)
    except Exception:  # the type of the answer is a stranger's
        return f"an object of type {type(answer).__name__}"
    return text if len(text) <= 200 else text[:200] + "..."


def check_stopped(thread: Thread | None) -> None:
    """Refuse to go on with a job that was stopped, if what it did then has not ended yet.

    Raises
    ------
    OnlineautoError
        The thread is alive.
    """
    if thread is not None and thread.is_alive():
        raise OnlineautoError("it was stopped, and what it did then has not ended yet: try again later")
