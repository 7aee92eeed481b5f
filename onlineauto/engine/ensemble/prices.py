"""Prices of members of the ensemble: the work of each, in multiples of the champion's.

The unit of work is one weight that is touched for an event. Work is counted and not measured by a clock, so
that decisions are reproducible.

- The champion touches a weight for each feature and product of each action.
- A learnt action counts two more times, and reading the event counts 64.
- Products of the members that cross count like those of the champion.
- Matrices are added up row by row, so that eight entries of a matrix count as one weight. Its covariance is
  learnt by one event in four.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.automl.config import Interaction

TOGETHER, EACH = 8, 4
"""Number of matrix entries that count as one weight, and of events per update of the covariance."""

LEARNT, _EVENT = 2.0, 64.0
"""Additional count of a learnt action, and the work of reading an event."""


def price_of_config(sizes: dict[bytes, float], crossed: Iterable[Interaction], n_actions: float) -> float:
    """Return the work of a config from the sizes of its namespaces and its interactions.

    >>> price_of_config({b"a": 2.0, b"b": 3.0}, [(b"a", b"b")], 4.0)
    136.0
    """
    own = 1.0 + sum(sizes.values()) + sum(prod(sizes.get(name, 0.0) for name in names) for names in crossed)
    return _EVENT + own * (n_actions + LEARNT)
