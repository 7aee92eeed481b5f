"""Numbers of VW's own unit tests of its search that need no learning."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onlineauto.automl.config import Config, ConfigKind, interactions_of
from onlineauto.automl.decide import decide, start
from onlineauto.automl.decisions import BoundCrossed, LeaseDue, NewNamespaces
from onlineauto.automl.search import Search, SearchRules
from onlineauto.exact.control import VwDraw
from tests.automl.moves import Move, Table, interactions, make_rules

pytestmark = pytest.mark.lane("quick")

A, B, C = b"A", b"B", b"C"


def due(
    rules: SearchRules, search: Search, counts: dict[bytes, int], updates: tuple[int, ...] = (0,) * 12
) -> Search:
    table = Table(Move("due", updates=updates), counts, len(search.slots))
    return decide(rules, search, LeaseDue(), table)[0]


def elements(search: Search) -> list[set[bytes]]:
    return [{b"".join(each) for each in candidate.config.elements} for candidate in search.candidates]


def test_one_diff_impl_unittest() -> None:
    rules = make_rules(exact=True, max_live=4, lease=500, priority="favor_popular_namespaces", n_priority=1)
    counts = {A: 1, B: 1}
    search, _ = decide(rules, start(rules, random_seed=5), NewNamespaces((A, B)), Table(counts=counts))
    assert interactions(rules, search, 0) == ((A, A), (A, B), (B, B))
    assert elements(search) == [set(), {b"AA"}, {b"AB"}, {b"BB"}]
    assert len(search.queue) == 3

    search = due(rules, search, counts)
    assert len(search.queue) == 0
    assert [slot.index for slot in search.slots] == [0, 3, 2, 1]

    search, _ = decide(rules, search, BoundCrossed(2), Table(counts=counts))
    assert elements(search) == [{b"AB"}, set(), {b"AA", b"AB"}, {b"AB", b"BB"}]
    assert (search.n_valid, len(search.candidates), len(search.queue)) == (4, 4, 2)

    search = due(rules, search, counts)
    assert len(search.queue) == 0
    search, _ = decide(rules, search, BoundCrossed(3), Table(counts=counts))
    assert elements(search) == [{b"AA", b"AB"}, {b"AB"}, {b"AA", b"AB", b"BB"}, {b"AA"}]
    assert len(search.queue) == 2


def test_one_diff_tries_to_leave_out_slot_interactions() -> None:
    rules = replace(make_rules(exact=True, max_live=4, lease=500), slot_namespaces=(b"Y", b"Z"))
    counts = {A: 1, B: 1}
    search, _ = decide(rules, start(rules, random_seed=5), NewNamespaces((A, B)), Table(counts=counts))
    assert elements(search) == [set(), {b"AA"}, {b"AB"}, {b"BB"}]
    search = due(rules, search, counts)
    search, _ = decide(rules, search, BoundCrossed(2), Table(counts=counts))
    assert elements(search) == [{b"AB"}, set(), {b"AA", b"AB"}, {b"AB"}, {b"AB", b"BB"}]


def test_qbase_unittest() -> None:
    rules = make_rules(
        "qbase_cubic", exact=True, max_live=11, lease=500, priority="favor_popular_namespaces", n_priority=1
    )
    counts = {A: 1, B: 1, C: 1}
    drawn = VwDraw(5)
    drawn.order(4)  # VW's workspace shuffled the four cubic interactions of its own two namespaces before
    search = replace(start(rules, random_seed=0), random_state=drawn.state)
    search, _ = decide(rules, search, NewNamespaces((A, B, C)), Table(counts=counts))
    assert interactions(rules, search, 0) == ((A, A), (A, B), (A, C), (B, B), (B, C), (C, C))
    assert (len(search.candidates), len(search.queue)) == (11, 10)
    assert elements(search)[:4] == [set(), {b"AAA"}, {b"ABC"}, {b"AAC"}]
    assert elements(search)[9] == {b"BCC"}

    search = due(rules, search, counts)
    assert (len(search.queue), len(search.slots)) == (0, 11)
    assert search.slots[2].index == 9
    assert interactions(rules, search, 2) == ((A, A), (A, B), (A, C), (B, B), (B, C), (C, C), (B, C, C))

    search, _ = decide(rules, search, BoundCrossed(2), Table(counts=counts, live=11))
    assert elements(search)[:4] == [{b"BCC"}, set(), {b"AAA", b"BCC"}, {b"BBC", b"BCC"}]
    assert (search.n_valid, len(search.candidates), len(search.queue)) == (11, 11, 9)

    search = due(replace(rules, max_live=4), search, counts)
    assert len(search.queue) == 7
    search, _ = decide(rules, search, BoundCrossed(3), Table(counts=counts))
    assert elements(search)[:3] == [{b"ABC", b"BCC"}, {b"BCC"}, {b"ABC", b"BCC", b"CCC"}]
    assert len(search.queue) == 9


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(ConfigKind.INCLUSION, [(A, A), (A, B)]), (ConfigKind.EXCLUSION, [(A, C), (B, B), (B, C), (C, C)])],
)
def test_exc_incl_unit_test(kind: ConfigKind, expected: list[tuple[bytes, ...]]) -> None:
    config = Config(((A, A), (A, B)), kind)
    assert interactions_of(config, [A, B, C], interaction_type="quadratic") == tuple(expected)


def test_quadcubic_unit_test() -> None:
    config = Config(((A, A, A), (B, B, B), (C, C, C)), ConfigKind.INCLUSION)
    quadratic = ((A, A), (A, B), (A, C), (B, B), (B, C), (C, C))
    crossed = interactions_of(config, [A, B, C], interaction_type="both", base=(2,))
    assert crossed == (*quadratic, *config.elements)


def test_live_configs_and_leases() -> None:
    """Three slots, lease 10, seed 5, `rand`, two namespaces, 15 events; nothing is proven."""
    rules = make_rules("rand", exact=True, lease=10, priority="favor_popular_namespaces")
    search = start(rules, random_seed=5)
    counts: dict[bytes, int] = {}
    updates = [0, 0, 0]
    for _ in range(15):
        counts = {b"A": counts.get(b"A", 0) + 3, b"U": counts.get(b"U", 0) + 3}
        if not search.namespaces:
            search, _ = decide(rules, search, NewNamespaces((b"A", b"U")), Table(counts=counts))
        before = search
        search = due(rules, search, counts, tuple(updates))
        for slot in range(len(before.slots)):
            if before.slots[slot].index != search.slots[slot].index:
                updates[slot] = 0
        updates[1:] = [updates[1] + 1, updates[2] + 1]
    assert [slot.index for slot in search.slots] == [0, 3, 1]
    assert [each.lease for each in search.candidates] == [10, 10, 20, 20]
    assert updates == [0, 15, 5]
    assert search.queue == ()


def test_a_champion_keeps_all_when_a_namespace_was_seen_late() -> None:
    """VW's NamespaceSwitch: three namespaces, six interactions, no challengers that leave out the third."""
    rules = make_rules(exact=True, lease=500)
    counts = {b"A": 9, b"T": 1, b"U": 9}
    search, _ = decide(rules, start(rules, random_seed=5), NewNamespaces((b"A", b"U")), Table(counts=counts))
    search, _ = decide(rules, search, NewNamespaces((b"T",)), Table(counts=counts))
    assert len(interactions(rules, search, 0)) == 6
    assert len(search.candidates) == 4
