"""Prices of the members of the stack: the work that each takes, in multiples of the champion's.

Work is counted in weights that are touched for an event, and not measured by a clock: what is decided must be
the same each time. The champion touches a weight for each feature and product of each action; one that is
learnt counts twice more, and to read the event counts as 64. Products of the members that cross count alike.
Of a matrix whole rows are added up at once, so that eight of its entries count as one weight; its covariance
is learnt by one event in four.
"""

from __future__ import annotations

from math import comb, prod
from typing import TYPE_CHECKING

from onlineauto.engine.event.state import ACTIONS, FEATURES, MOST_ACTIONS, WAVES, WIDEST
from onlineauto.engine.stack.members import NAMES, able_members

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.automl.config import Interaction
    from onlineauto.engine.event.state import Members

__all__ = ["price_of_config", "prices"]

_TOGETHER, _EACH = 8, 4
_LEARNT, _EVENT = 2.0, 64.0


def price_of_config(sizes: dict[bytes, float], crossed: Iterable[Interaction], n_actions: float) -> float:
    """Return the work of a config that has these interactions of namespaces of these sizes.

    >>> price_of_config({b"a": 2.0, b"b": 3.0}, [(b"a", b"b")], 4.0)
    136.0
    """
    own = 1.0 + sum(sizes.values()) + sum(prod(sizes.get(name, 0.0) for name in names) for names in crossed)
    return _EVENT + own * (n_actions + _LEARNT)


def prices(members: Members, *, features: float, n_actions: float) -> dict[str, float]:
    """Return the work of each member that can have scores, by its name.

    `features` is how many an action has, with those of the context.
    """
    tally, visits = members.tally, n_actions + _LEARNT
    inputs, widest = min(int(tally[FEATURES]), members.gains.shape[1]), int(tally[WIDEST])
    joined = bool(tally[ACTIONS] > MOST_ACTIONS)
    single, keys = 1 + widest, 2.0 if joined else 1.0
    waved = n_actions if joined else 1.0
    waves = (visits * WAVES + WAVES * WAVES * (1 + 1 / _EACH)) / _TOGETHER
    found = (
        (visits * inputs + inputs * features + inputs * inputs / _EACH) / _TOGETHER,
        waves + waved * WAVES,
        keys * visits * single,
        keys * (visits * comb(widest, 2) + _LEARNT * single),
        keys * (visits * comb(widest, 3) + _LEARNT * (single + comb(widest, 2))),
        waves + (n_actions / _TOGETHER + 1) * WAVES,
    )
    able = able_members(members)
    return {name: float(price) for name, price in zip(NAMES, found, strict=True) if able[name]}
