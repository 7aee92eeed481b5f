"""Vowpal Wabbit's control plane: the queue, the vector of configs and the shuffle, with their defects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.control import Control
from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.priorities import PRIORITIES
from onlineauto.automl.random_draw import RandomOrder, float32
from onlineauto.automl.search import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.automl.config import Config, Interaction
    from onlineauto.automl.decisions import Statistics
    from onlineauto.automl.search import Search, SearchRules

_MASK = 2**64 - 1


class VwDraw(RandomOrder):
    """VW's shuffle, with its defects.

    The n numbers to shuffle are preceded by n zeros, and any entry may be swapped into the first half. So
    number 0 appears often and early.

    Source: VW ``config_oracle::gen_configs``; ``merand48`` in its ``random_details.h``.
    """

    def order(self, n: int) -> list[int]:
        """Return twice `n` numbers, of which `n` + 1 are zeros."""
        numbers = [0] * n + list(range(n))
        for index in range(n):
            other = int(float32(self.uniform() * float32(2 * n)))
            numbers[other], numbers[index] = numbers[index], numbers[other]
        return numbers

    def uniform(self) -> float:
        """Return a random float32 from 0 to 1.

        >>> draw = VwDraw(10)
        >>> [round(draw.uniform(), 9) for _ in range(3)]
        [0.017016649, 0.370730162, 0.166691661]
        """
        self.state = (self.state * 0xEECE66D5DEECE66D + 2147483647) & _MASK
        return (self.state >> 25 & 0x7FFFFF) / 2**23


def popular_as_vw(config: Config, count: Callable[[bytes], int]) -> float:
    """Return minus the counts of the first namespace of each interaction, summed in float32.

    As in VW, the sign does not depend on whether a config's elements are left out or used.

    Source: VW ``calc_priority_favor_popular_namespaces``.

    >>> from onlineauto.automl.config import Config
    >>> popular_as_vw(Config(((b"a", b"b"),)), {b"a": 5, b"b": 3}.__getitem__)
    -5.0
    """
    priority = 0.0
    for interaction in config.elements:
        priority = float32(priority - float32(count(interaction[0])))
    return priority


def _accept_proposals(
    rules: SearchRules, search: Search, configs: Sequence[Config], statistics: Statistics, late: bool
) -> Search:
    """Return the search with queued proposals, which replace the candidates of an earlier champion.

    The proposals of an oracle that is called only once are appended instead.
    """
    del late
    if ORACLES[rules.oracle].once:
        candidates = (*search.candidates, *(Candidate(config, rules.lease) for config in configs))
        added = list(range(len(search.candidates), len(candidates)))
        search = replace(search, candidates=candidates, n_valid=len(candidates))
        return _enqueue(rules, search, added, statistics)
    places = _Places(search.candidates, search.n_valid, rules.lease)
    if ORACLES[rules.oracle].hides_champion:
        places.empty(0)
    for config in configs:
        places.add(config)
    candidates = (search.candidates[0], *places.candidates[1:])
    added = list(range(search.n_valid, places.n_valid))
    search = replace(search, candidates=candidates, n_valid=places.n_valid)
    return _enqueue(rules, search, added, statistics)


def _take_next(rules: SearchRules, search: Search, statistics: Statistics) -> tuple[int | None, Search]:
    """Return the first candidate of the queue, or None, and the search without this candidate.

    An empty queue is filled with all waiting configs, so configs that are live at that time miss a round. The
    priorities are computed when the queue is filled.
    """
    if not search.queue:
        waiting = list(filter(search.waits, range(search.n_valid)))
        search = _enqueue(rules, search, waiting, statistics)
    if not search.queue:
        return None, search
    return search.queue[0][1], replace(search, queue=search.queue[1:])


def _enqueue(rules: SearchRules, search: Search, numbers: list[int], statistics: Statistics) -> Search:
    """Return the search with candidates added to the queue, each with its priority."""
    ranks = popular_as_vw if rules.priority == "favor_popular_namespaces" else PRIORITIES[rules.priority].of
    added = [(ranks(search.candidates[number].config, statistics.count), number) for number in numbers]
    return replace(search, queue=tuple(sorted((*search.queue, *added), reverse=True)))


class _Places:
    """VW's vector of configs while proposals are added.

    Source: VW ``config_oracle::insert_config``.
    """

    def __init__(self, candidates: Sequence[Candidate], n_valid: int, lease: int) -> None:
        self.candidates = list(candidates)
        self.n_valid = n_valid
        self._lease = lease
        self._holding: dict[tuple[Interaction, ...], set[int]] = {}
        for index, candidate in enumerate(candidates):
            self._holding.setdefault(candidate.config.elements, set()).add(index)

    def add(self, config: Config) -> None:
        """Add a config, unless a valid index has the same elements.

        Elements at an index of an earlier champion's candidate are moved from there. If source and target are
        the same index, the elements are lost: VW moves a set to itself, which empties it.
        """
        index = min(self._holding.get(config.elements, ()), default=None)
        if index is not None and index < self.n_valid:
            return
        if index is not None:
            self.empty(index)
            if index == self.n_valid:
                config = replace(config, elements=())
        self._put(self.n_valid, Candidate(config, self._lease))
        self.n_valid += 1

    def empty(self, index: int) -> None:
        """Remove the elements of the config at index `index`."""
        candidate = self.candidates[index]
        self._put(index, replace(candidate, config=replace(candidate.config, elements=())))

    def _put(self, index: int, candidate: Candidate) -> None:
        if index < len(self.candidates):
            self._holding[self.candidates[index].config.elements].discard(index)
            self.candidates[index] = candidate
        else:
            self.candidates.append(candidate)
        self._holding.setdefault(candidate.config.elements, set()).add(index)


VW = Control(
    variable="onlineauto.exact.control:VW",
    oracle="one_diff",
    lease=4000,
    paired=False,
    draw=VwDraw,
    take_in=_accept_proposals,
    take_next=_take_next,
    begins_at_once=False,
    tries_late_namespaces=False,
    has_reviews=False,
    removes_worse=False,
    forgets_left_over=False,
    follows_drift=False,
    ignores_given=True,
    keeps_waiting_weights=False,
    moves_sums=False,
    moves_whole_table=True,
    protects_slot_namespaces=True,
)
"""The control plane of Vowpal Wabbit 9.11.9."""
