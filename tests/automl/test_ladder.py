"""The ladder: families of interactions, where it begins, and challengers that are proved worse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from onlineauto import Workspace
from onlineauto.automl.config import Config, Kind
from onlineauto.automl.decide import decide, start
from onlineauto.automl.decisions import LeaseDue, NewNamespaces, ProvedWorse, Remove, Rotate, Widen
from onlineauto.automl.oracles.ladder import Ladder
from onlineauto.automl.oracles.oracle import Space
from onlineauto.automl.random_draw import FairDraw
from onlineauto.automl.search import Rules, State
from onlineauto.errors import OptionError
from tests.engine.test_searching import stream

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES, OF_ACTIONS = (b"a", b"b", b"y", b"z"), frozenset({b"y", b"z"})
RULES = Rules(
    n_slots=3,
    lease=10,
    oracle="ladder",
    interaction_type="quadratic",
    priority="none",
    n_priority=1,
    exact=False,
    paired=True,
)


class Unknown:
    """Statistics of slots of which nothing is known yet."""

    def count(self, namespace: bytes) -> int:  # noqa: ARG002
        return 1

    def updates(self, slot: int) -> int:  # noqa: ARG002
        return 0

    def lower(self, slot: int) -> float:  # noqa: ARG002
        return 0.0

    def upper(self, slot: int) -> float:  # noqa: ARG002
        return 1.0

    champion_lower, champion_upper = lower, upper


def config(*products: bytes) -> Config:
    return Config.of((tuple(bytes([letter]) for letter in product) for product in products), Kind.INCLUSION)


def proposals(champion: Config, space: Space) -> Sequence[Config]:
    return Ladder().propose(champion, space=space, draw=FairDraw(0))


CROSSED = config(b"ay", b"az", b"by", b"bz")
DEEP = config(b"ay", b"az", b"by", b"bz", b"aby", b"abz")


def test_it_begins_with_context_times_action() -> None:
    assert Ladder().first(Space(NAMES, "quadratic", of_actions=OF_ACTIONS)) == CROSSED


def test_families_come_before_steps() -> None:
    """The last that is proposed is tried first."""
    found = proposals(CROSSED, Space(NAMES, "quadratic", of_actions=OF_ACTIONS))
    pairs = config(b"aa", b"ab", b"ay", b"az", b"bb", b"by", b"bz", b"yy", b"yz", b"zz")
    assert found[-3:] == [config(), pairs, DEEP]
    steps = {CROSSED.toggled(each) for each in (*DEEP.elements, (b"y", b"z"))}
    assert set(found[:-3]) == steps


def test_without_lines_of_actions_there_are_all_pairs() -> None:
    assert Ladder().first(Space((b"a", b"b"), "quadratic")) == config(b"aa", b"ab", b"bb")


def test_late_namespaces_bring_steps_with_them_only() -> None:
    space = Space(NAMES, "quadratic", new=frozenset({b"b"}), of_actions=OF_ACTIONS)
    champion = config(b"ay", b"az")
    expected = [champion.toggled(each) for each in config(b"by", b"bz", b"aby", b"abz").elements]
    assert set(proposals(champion, space)) == set(expected)


def test_the_first_namespaces_make_the_first_champion() -> None:
    search = start(RULES, random_seed=0)
    search, decisions = decide(RULES, search, NewNamespaces(NAMES, OF_ACTIONS), Unknown())
    assert decisions == (Widen(NAMES), Rotate(0, 0, CROSSED))
    assert search.champion == CROSSED
    search, decisions = decide(RULES, search, NewNamespaces((b"c",)), Unknown())
    assert decisions == (Widen((b"c",)),)
    assert search.champion == CROSSED


def test_what_is_proved_worse_gives_its_place_to_the_next() -> None:
    search = start(RULES, random_seed=0)
    search, _ = decide(RULES, search, NewNamespaces(NAMES, OF_ACTIONS), Unknown())
    search, _ = decide(RULES, search, LeaseDue(), Unknown())
    worse = search.slots[1].index
    after, decisions = decide(RULES, search, ProvedWorse(1), Unknown())
    remove, rotate = decisions
    assert remove == Remove(1, worse)
    assert isinstance(rotate, Rotate)
    assert (rotate.slot, after.slots[1].index) == (1, rotate.index)
    assert rotate.index not in {slot.index for slot in search.slots}
    assert after.candidates[worse].state is State.REMOVED


def test_what_is_the_actions_is_seen_in_the_first_event() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=2, oracle_type="ladder", lease=10**6).fit(stream(20))
    assert workspace.search.of_actions == {b"Action"}
    assert workspace.search.champion.elements == ((b"Action", b"Time"), (b"Action", b"User"))


def test_exact_mode_has_no_ladder() -> None:
    with pytest.raises(OptionError, match="ladder"):
        Workspace(cb_explore_adf=True, automl=2, vw_exact=True, oracle_type="ladder")
