"""Prices of members of the ensemble: the work that each takes, in multiples of the champion's.

Work is counted in weights that are touched for an event, and not measured by a clock: what is decided must be
the same each time. The champion touches a weight for each feature and product of each action; one that is
learnt counts twice more, and to read the event counts as 64. Products of the members that cross count alike.
Of a matrix whole rows are added up at once, so that eight of its entries count as one weight; its covariance
is learnt by one event in four.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.automl.config import Interaction

TOGETHER, EACH = 8, 4
"""Entries of a matrix that count as one weight; events of which its covariance learns one."""

LEARNT, _EVENT = 2.0, 64.0
"""What an action that is learnt counts more; what to read an event counts."""


def price_of_config(sizes: dict[bytes, float], crossed: Iterable[Interaction], n_actions: float) -> float:
    """Return the work of a config that has these interactions of namespaces of these sizes.

    >>> price_of_config({b"a": 2.0, b"b": 3.0}, [(b"a", b"b")], 4.0)
    136.0
    """
    own = 1.0 + sum(sizes.values()) + sum(prod(sizes.get(name, 0.0) for name in names) for names in crossed)
    return _EVENT + own * (n_actions + LEARNT)
