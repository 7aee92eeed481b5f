"""The conformance suite of priorities."""

from __future__ import annotations

from itertools import combinations, product
from math import isfinite
from typing import TYPE_CHECKING

from onlineauto.automl.config import Config, ConfigKind, possible_interactions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.automl.priorities import Priority

_COUNTS = (
    {b"a": 1, b"b": 1, b"user": 1},
    {b"a": 5, b"b": 4, b"user": 3},
    {b"a": 2**24 + 1, b"b": 2**40, b"user": 7},
)


def check_priority(priority: Priority) -> None:
    """Check a priority against the requirements of the search.

    The priority of a config is a finite number. It depends on the arguments alone. It reads only the counts
    of namespaces in the config.

    Parameters
    ----------
    priority : Priority
        The priority, registered or not.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the config.

    Examples
    --------
    >>> from onlineauto.automl.priorities import NoPriority
    >>> check_priority(NoPriority())
    """
    for config, counts in product(_configs(), _COUNTS):
        named = {name: counts[name] for interaction in config.elements for name in interaction}
        where = f"{type(priority).__name__}.of, {config}, counts {counts}"
        try:
            value, again = priority.of(config, named.__getitem__), priority.of(config, named.__getitem__)
        except KeyError as error:
            raise AssertionError(f"asks for {error}, which is not in the config: {where}") from error
        if not isfinite(value):
            raise AssertionError(f"not a finite number: {value}; {where}")
        if value != again:
            raise AssertionError(f"the same arguments give {value} and {again}: {where}")


def _configs() -> Iterator[Config]:
    interactions = (*possible_interactions((b"a", b"b", b"user"), 2), (b"a", b"b", b"user"))
    for size, kind in product(range(4), ConfigKind):
        for elements in combinations(interactions, size):
            yield Config.of(elements, kind)
