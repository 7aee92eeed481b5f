"""The budget of the ensemble: which members learn and which rest, by cost and worth."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.automl.config import Config
from onlineauto.automl.decisions import MemberTerms, RestMembers
from onlineauto.automl.member_budget import LEAST_WORTH, TRIAL, has_new_members, rest_members
from onlineauto.automl.search import PATIENCE, Candidate, Search, SearchRules
from tests.automl.moves import Move, Table, make_rules

pytestmark = pytest.mark.lane("quick")

NAMES = "a", "b", "c", "features", "layer"
MANY = 2 * LEAST_WORTH
LEAST_OF_LAYER = 100.0


@dataclass
class Known(Table):
    """Costs and worths of members; two members that are alike have a worth only without each other."""

    costs: dict[str, float] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    alike: frozenset[str] = frozenset()

    def members(self) -> dict[str, MemberTerms]:
        found = {name: MemberTerms(cost, LEAST_WORTH) for name, cost in self.costs.items()}
        if "layer" in found:
            found["layer"] = MemberTerms(self.costs["layer"], LEAST_OF_LAYER, upon="features")
        return found

    def member_worths(self, resting: Collection[str]) -> dict[str, float]:
        left = {name: self.values.get(name, 0.0) for name in self.costs if name not in resting}
        if len(self.alike & left.keys()) > 1:
            left |= dict.fromkeys(self.alike & left.keys(), 0.0)
        return left


def rules(budget: float) -> SearchRules:
    return replace(make_rules("stepwise", exact=False), member_budget=budget)


def start() -> Search:
    return Search(candidates=(Candidate(Config(), 10),))


def review(search: Search, budget: float, known: Known, at: int) -> tuple[Search, list[tuple[str, ...]]]:
    known.move = Move("review", learnt=at)
    search, decisions = rest_members(rules(budget), search, known)
    return search, [each.members for each in decisions if isinstance(each, RestMembers)]


def working(search: Search) -> set[str]:
    return {state.name for state in search.members if state.works}


def test_budget_without_members_decides_nothing() -> None:
    assert review(start(), 0.0, Known(costs={"a": 1.0}), 100) == (start(), [])


def test_useless_member_rests_and_is_tried_after_growing_pauses() -> None:
    known = Known(costs={"a": 1.0, "b": 1.0}, values={"a": MANY})
    search, changes = start(), []
    for at in range(0, 20 * PATIENCE, PATIENCE // 4):
        search, decided = review(search, 10.0, known, at)
        changes += [(at // PATIENCE, rests) for rests in decided]
    assert changes == [
        (1, ("b",)),
        (2, ()),
        (3, ("b",)),
        (5, ()),
        (6, ("b",)),
        (10, ()),
        (11, ("b",)),
        (19, ()),
    ]


def test_one_trial_is_enough_if_no_member_was_ever_useful() -> None:
    known = Known(costs={"a": 1.0, "b": 1.0}, values={"a": LEAST_WORTH / 2})
    search, decided = review(start(), 10.0, known, TRIAL - 1)
    assert not decided
    search, decided = review(search, 10.0, known, TRIAL)
    assert decided == [("a", "b")]
    tried, _ = review(search, 10.0, known, TRIAL + PATIENCE)
    assert working(tried) == {"a", "b"}
    known.values["b"] = MANY
    tried, _ = review(tried, 10.0, known, TRIAL + PATIENCE + 1)
    assert review(tried, 10.0, known, TRIAL + PATIENCE + TRIAL)[1] == []


def test_a_member_is_new_until_worth_by_chance_is_forgotten() -> None:
    known = Known(costs={"a": 1.0, "b": 1.0}, values={"a": MANY})
    search, _ = review(start(), 10.0, known, 100)
    assert has_new_members(search, 101)
    assert has_new_members(search, 2 * PATIENCE - 1)
    search, _ = review(search, 10.0, known, 2 * PATIENCE)
    assert working(search) == {"a"}
    assert not has_new_members(search, 2 * PATIENCE)
    search, _ = review(search, 10.0, known, 4 * PATIENCE)
    assert working(search) == {"a", "b"}
    assert has_new_members(search, 4 * PATIENCE + 1)


def test_a_recently_useful_member_continues() -> None:
    known = Known(costs={"a": 1.0}, values={"a": MANY})
    search, _ = review(start(), 10.0, known, PATIENCE)
    known.values["a"] = 0.0
    search, decided = review(search, 10.0, known, 2 * PATIENCE - 1)
    assert not decided
    assert review(search, 10.0, known, 2 * PATIENCE)[1] == [("a",)]


def test_one_of_two_redundant_members_stays() -> None:
    known = Known(costs={"a": 1.0, "b": 1.0}, values={"a": MANY, "b": MANY}, alike=frozenset("ab"))
    search, _ = review(start(), 10.0, known, PATIENCE)
    assert len(working(search)) == 1


def test_the_budget_goes_to_the_best_worth_per_price() -> None:
    known = Known(costs={"a": 4.0, "b": 1.0, "c": 4.0}, values={"a": 40.0, "b": 30.0, "c": 60.0})
    search = start()
    for at in range(0, 5 * PATIENCE, PATIENCE // 8):
        search, _ = review(search, 5.0, known, at)
    assert working(search) == {"b", "c"}


def test_a_member_added_later_is_tried() -> None:
    known = Known(costs={"a": 1.0}, values={"a": MANY})
    search, _ = review(start(), 10.0, known, 50 * PATIENCE)
    known.costs["b"] = 1.0
    search, decided = review(search, 10.0, known, 51 * PATIENCE)
    assert (working(search), decided) == ({"a", "b"}, [])


figures = st.dictionaries(st.sampled_from(NAMES), st.floats(0.1, 20.0), max_size=5)


@given(st.floats(0.1, 40.0), st.lists(st.tuples(st.integers(1, 3 * PATIENCE), figures, figures), max_size=8))
def test_the_budget_is_never_exceeded_and_decisions_name_resting_members(
    budget: float, steps: list[tuple[int, dict[str, float], dict[str, float]]]
) -> None:
    search, at = start(), 0
    resting: tuple[str, ...] = ()
    for more, costs, values in steps:
        at += more
        search, decided = review(search, budget, Known(costs=costs, values=values), at)
        assert sum(costs[name] for name in working(search)) <= budget * (1 + 1e-12)
        assert [state.name for state in search.members] == list(costs)
        resting = decided[0] if decided else resting
        assert set(resting) & costs.keys() == costs.keys() - working(search)
        assert "layer" not in working(search) or "features" in working(search)


def test_a_layer_has_to_be_worth_more_than_others() -> None:
    values = {"features": LEAST_WORTH, "layer": LEAST_OF_LAYER - 1}
    known = Known(costs={"features": 1.0, "layer": 1.0}, values=values)
    search, _ = review(start(), 10.0, known, 0)
    search, _ = review(search, 10.0, known, PATIENCE)
    assert working(search) == {"features"}
    known.values["layer"] = LEAST_OF_LAYER
    search, _ = review(search, 10.0, known, 2 * PATIENCE)
    search, _ = review(search, 10.0, known, 3 * PATIENCE)
    assert working(search) == {"features", "layer"}


def test_a_layer_does_not_pay_for_its_features() -> None:
    known = Known(costs={"features": 6.0, "layer": 3.0}, values={"features": 40.0, "layer": 300.0})
    search, _ = review(start(), 7.0, known, 0)
    for at in range(0, 5 * PATIENCE, PATIENCE // 8):
        search, decided = review(search, 7.0, known, at)
        assert (working(search), decided) == ({"features"}, [])
    search, _ = review(search, 9.0, known, 5 * PATIENCE)
    assert working(search) == {"features", "layer"}


def test_a_layer_works_again_with_its_features() -> None:
    costs, values = {"a": 1.0, "features": 1.0, "layer": 1.0}, {"a": MANY}
    known, search, changes = Known(costs=costs, values=values), start(), []
    for at in range(0, 4 * PATIENCE, PATIENCE // 4):
        search, decided = review(search, 10.0, known, at)
        changes += [(at // PATIENCE, rests) for rests in decided]
    both = "features", "layer"
    assert changes == [(1, both), (2, ()), (3, both)]
