"""``ClusterJob``: the protocol of jobs of a cluster, which has three methods."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, Final, Protocol

from onlineauto.cluster.policies.situation import Demand as Demand  # noqa: PLC0414 - jobs import it from here
from onlineauto.errors import OnlineautoError, OptionError

_LARGEST: Final = 1e100
"""Upper bound of amounts and units of work, so that no product of them overflows."""


_MOST_NODES: Final = 1_000_000
"""Maximum number of workers, and of servers, of a job."""


class ClusterJob(Protocol):
    """Work for a changing number of workers and, optionally, servers.

    Two members are optional. A method ``stop`` is called when the cluster ends before the job. If workers
    leave with a delay, a property ``resources_in_use`` returns the numbers of workers and servers that the
    job still occupies; their resources are not allocated to other jobs until then.
    """

    @property
    def demand(self) -> Demand:
        """The resources of one worker and of one server."""

    def progress(self) -> tuple[float, float]:
        """Return the done and the total units of work; the job ends when they are equal.

        Both are numbers from 0 to 1e100, of any type that `float` accepts; any other answer fails the job. If
        a job loses work, its next answer is smaller.

        Raises
        ------
        Exception
            The job failed; the message says why.
        """

    def resize(self, workers: int, servers: int) -> None:
        """Continue with these numbers of workers and servers; return at once. With 0 workers, pause."""


def check_demand(demand: Demand) -> Demand:
    """Return a demand, with amounts as floats and counts as ints."""
    try:
        demands = ("worker", demand.worker), ("server", demand.server)
        most = ("most_workers", demand.most_workers, 1), ("most_servers", demand.most_servers, 0)
    except AttributeError:
        raise OptionError(f"demand = {demand!r}: give a Demand") from None
    amounts: list[dict[str, float]] = []
    for kind, takes in demands:
        if not isinstance(takes, Mapping):
            raise OptionError(
                f"the demand of a {kind} is {takes!r}: give amounts by name, as in {{'CPU': 1}}"
            )
        numbers = {name: _number(amount) for name, amount in takes.items()}
        for name, amount in numbers.items():
            if amount is None:
                raise OptionError(
                    f"the demand of a {kind} has {name} = {takes[name]!r}: give a number, 0 or more"
                )
        amounts.append({name: amount for name, amount in numbers.items() if amount is not None})
    if not any(amounts[0].values()):
        raise OptionError(
            "the demand of a worker is empty, which would allow any number of workers: give it some CPU"
        )
    counts = [_count(name, count, least) for name, count, least in most]
    return Demand(amounts[0], amounts[1], counts[0], counts[1])


def check_progress(answer: Any) -> tuple[float, float]:
    """Return the answer of `ClusterJob.progress` as floats."""
    with suppress(TypeError, ValueError):
        done, total = map(_number, answer)
        if done is not None and total is not None:
            return done, total
    raise OnlineautoError(f"progress() returned {_text(answer)}: two numbers from 0 to 1e100 are needed")


def check_resources_in_use(answer: Any) -> tuple[int, int]:
    """Return the answer of `ClusterJob.resources_in_use` as ints."""
    with suppress(TypeError, ValueError):
        workers, servers = map(_number, answer)
        if workers is not None and servers is not None and workers % 1 == servers % 1 == 0:
            return int(workers), int(servers)
    raise OnlineautoError(f"resources_in_use is {_text(answer)}: two whole numbers, 0 or more, are needed")


def _number(value: Any) -> float | None:
    """Return a number as a float; None if it is negative, not finite, or not a number."""
    if isinstance(value, str | bytes | bytearray | bool):
        return None
    try:
        number = float(value)
    except Exception:  # float() of a foreign type may raise any error
        return None
    return number if isfinite(number) and 0 <= number < _LARGEST else None


def _count(name: str, value: Any, least: int) -> int:
    """Return a value as a whole number from `least` to 1,000,000."""
    number = _number(value)
    if number is None or number % 1 or not least <= number <= _MOST_NODES:
        raise OptionError(f"{name} = {value!r}: give a whole number from {least} to {_MOST_NODES:,}")
    return int(number)


def _text(answer: Any) -> str:
    """Return an answer as text, for a message."""
    try:
        text = repr(answer)
    except Exception:  # repr() of a foreign type may raise any error
        return f"an object of type {type(answer).__name__}"
    return text if len(text) <= 200 else text[:200] + "..."
