"""The choice of an action: the id of the event seeds the draw, so that it is repeatable."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from onlineauto.api.decisions.draw import draw_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BITS: Final = 53


class RankedActions(NamedTuple):
    """All actions by index, the chosen one first, the others by falling probability; and probabilities."""

    actions: list[int]
    probabilities: list[float]


def seed_of(app: str, event_id: str) -> int:
    """Return the seed of the draw for an event, from 0 to 2^53 - 1.

    >>> seed_of("default", "e1") == seed_of("default", "e1") != seed_of("other", "e1")
    True
    """
    digest = blake2b(event_id.encode(), digest_size=8, key=_key_of(app)).digest()
    return int.from_bytes(digest) >> (64 - _BITS)


@lru_cache(maxsize=4)
def _key_of(app: str) -> bytes:
    return blake2b(app.encode(), digest_size=32).digest()


def uniform_of(seed: int) -> float:
    """Return a seed as a number in [0, 1)."""
    return seed / 2.0**_BITS


def choose(pmf: Sequence[float], excluded: Iterable[int], seed: int) -> RankedActions:
    """Draw an action from a pmf, without the excluded actions.

    >>> choose([0.25, 0.5, 0.25], [1], seed=0)
    RankedActions(actions=[0, 2, 1], probabilities=[0.5, 0.5, 0.0])
    """
    chances, out = list(pmf), set(excluded)
    for action in out:
        chances[action] = 0.0
    total = sum(chances)
    if total <= 0.0:
        chances = [float(action not in out) for action in range(len(chances))]
        total = sum(chances)
    chances = [each / total for each in chances]
    return _first(draw_index(chances, uniform_of(seed)), chances)


def certain_choice(action: int, count: int) -> RankedActions:
    """Return the choice of an action with probability 1.

    >>> certain_choice(1, 3)
    RankedActions(actions=[1, 0, 2], probabilities=[1.0, 0.0, 0.0])
    """
    return _first(action, [float(each == action) for each in range(count)])


def _first(action: int, chances: list[float]) -> RankedActions:
    order = sorted(range(len(chances)), key=chances.__getitem__, reverse=True)
    if order[0] != action:
        order.remove(action)
        order.insert(0, action)
    return RankedActions(order, [chances[each] for each in order])
