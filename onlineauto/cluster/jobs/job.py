"""``Job``: what a cluster needs of anything that it gives workers to: three methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Protocol

from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.tune.workers.resources import is_amount

if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import Thread

__all__ = ["Demand", "Job", "check_demand", "check_stopped"]


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

        Raises
        ------
        Exception
            The job failed; the message says why.
        """

    def resize(self, workers: int, servers: int) -> None:
        """Go on with so many workers and servers; return at once. With none, wait."""


def check_demand(demand: Demand) -> Demand:
    """Return a demand.

    Raises
    ------
    OptionError
        An amount is negative or no number, a worker takes nothing, or there are to be no workers.
    """
    for what, takes in (("worker", demand.worker), ("server", demand.server)):
        for name, amount in takes.items():
            if not is_amount(amount) or amount == inf:
                raise OptionError(f"a {what} takes {name} = {amount!r}: give a number, 0 or more")
    if not any(demand.worker.values()):
        raise OptionError("a worker takes nothing, so there could be any number: give it some CPU")
    if demand.most_workers < 1:
        raise OptionError(f"most_workers = {demand.most_workers}: give 1 or more")
    return demand


def check_stopped(thread: Thread | None) -> None:
    """Refuse to go on with a job that was stopped, if what it did then has not ended yet.

    Raises
    ------
    OnlineautoError
        The thread is alive.
    """
    if thread is not None and thread.is_alive():
        raise OnlineautoError("it was stopped, and what it did then has not ended yet: try again later")
