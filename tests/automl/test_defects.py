"""Defects of VW, which exact mode reproduces and native mode does not have."""

from __future__ import annotations

import pytest

from onlineauto.automl.decide import decide, start
from onlineauto.automl.decisions import BoundCrossed, LeaseDue, NewNamespaces, Rotate
from onlineauto.automl.search import Search, SearchRules
from tests.automl.moves import Move, Table, interactions, make_rules

pytestmark = pytest.mark.lane("quick")

MODES = pytest.mark.parametrize("exact", [False, True], ids=["native", "exact"])
COUNTS = {b"a": 5, b"b": 7, b"c": 2}
A, B, C = b"a", b"b", b"c"


def begin(rules: SearchRules, *names: bytes) -> Search:
    search = start(rules, random_seed=5)
    return decide(rules, search, NewNamespaces(names), Table(counts=COUNTS))[0] if names else search


def due(rules: SearchRules, search: Search) -> Search:
    return decide(rules, search, LeaseDue(), Table(Move("due"), COUNTS, len(search.slots)))[0]


def promote(rules: SearchRules, search: Search, slot: int) -> Search:
    return decide(rules, search, BoundCrossed(slot), Table(counts=COUNTS))[0]


def live(rules: SearchRules, search: Search) -> list[tuple[tuple[bytes, ...], ...]]:
    return [interactions(rules, search, slot) for slot in range(len(search.slots))]


@MODES
def test_namespaces_that_are_seen_late(exact: bool) -> None:
    """VW asks the oracle again only when the champion changes."""
    rules = make_rules(exact=exact)
    search = begin(rules, A)
    assert len(search.candidates) == 2
    search, _ = decide(rules, search, NewNamespaces((B,)), Table(counts=COUNTS))
    late = {each.config.elements for each in search.candidates[2:]}
    assert late == (set() if exact else {((A, B),), ((B, B),)})
    assert interactions(rules, search, 0) == ((A, A), (A, B), (B, B))


@MODES
def test_events_without_namespaces_at_the_start(exact: bool) -> None:
    """VW makes the champion its own challenger, and then never proposes another."""
    rules = make_rules(exact=exact, max_live=2)
    search = due(rules, start(rules, random_seed=0))
    assert [slot.index for slot in search.slots] == ([0, 0] if exact else [0])
    search, _ = decide(rules, search, NewNamespaces((A,)), Table(counts=COUNTS))
    assert len(search.candidates) == (1 if exact else 2)
    search = due(rules, search)
    assert live(rules, search) == [((A, A),), ((A, A),) if exact else ()]


def test_a_champion_that_is_promoted_over_itself() -> None:
    """VW reads past the end of its configs, and may crash; we take the champion for two."""
    rules = make_rules(exact=True, max_live=2)
    search = due(rules, start(rules, random_seed=0))
    search = promote(rules, search, 1)
    assert [slot.index for slot in search.slots] == [0, 1]
    assert (len(search.candidates), search.n_valid) == (2, 2)


@MODES
def test_the_champion_is_not_challenged_by_its_double(exact: bool) -> None:
    """VW looks for duplicates while the champion's elements are moved away."""
    rules = make_rules(exact=exact, max_live=4)
    search = begin(rules, A, b"\x8b")
    search = promote(rules, due(rules, search), 1)
    doubles = [each.config == search.champion for each in search.candidates[: search.n_valid]]
    assert doubles.count(True) == (2 if exact else 1)


@MODES
def test_a_config_without_elements_can_come_back(exact: bool) -> None:
    """VW takes it for the champion, whose elements are moved away, and drops it."""
    rules = make_rules("one_diff_inclusion", exact=exact, max_live=2)
    search = begin(rules, A, B)
    search = promote(rules, due(rules, search), 1)  # ((b, b),) is the champion, () is candidate 1
    search = promote(rules, search, 1)  # and the other way round
    search = promote(rules, due(rules, search), 1)
    search = promote(rules, due(rules, search), 1)
    configs = [each.config.elements for each in search.candidates[: search.n_valid]]
    assert search.champion.elements == ()
    assert len(set(configs)) == len(configs)


@MODES
def test_sets_that_are_moved_to_themselves(exact: bool) -> None:
    """VW finds the elements in the very place they are to go to, and empties them."""
    rules = make_rules(exact=exact, max_live=4)
    search = begin(rules, A, B)
    for slot in (1, 2, 2, 1):
        search = promote(rules, due(rules, search), slot)
    champion = set(search.champion.elements)
    proposed = [set(each.config.elements) for each in search.candidates[2 : search.n_valid]]
    assert all(len(elements ^ champion) == 1 for elements in proposed) == (not exact)
    assert (set() in proposed) == exact


@MODES
def test_popular_namespaces(exact: bool) -> None:
    """VW looks at the first namespace only, and prefers rare ones when it includes interactions."""
    rules = make_rules("one_diff_inclusion", exact=exact, max_live=2, priority="favor_popular_namespaces")
    search = begin(rules, A, B, C)
    _, decisions = decide(rules, search, LeaseDue(), Table(counts=COUNTS, live=1))
    (first,) = decisions
    assert isinstance(first, Rotate)
    assert first.config.elements == (((C, C),) if exact else ((B, B),))
