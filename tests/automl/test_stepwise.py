"""The oracle `stepwise`: its first config, its proposals and their order, and screening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from onlineauto import Workspace
from onlineauto.automl.config import Config, ConfigKind
from onlineauto.automl.decide import decide, start
from onlineauto.automl.decisions import (
    BoundCrossed,
    LeaseDue,
    NewNamespaces,
    ProvedWorse,
    Remove,
    Reopen,
    ReviewDue,
    Rotate,
    Swap,
    Widen,
)
from onlineauto.automl.oracles.oracle import SearchSpace
from onlineauto.automl.oracles.stepwise import Stepwise
from onlineauto.automl.proposals import with_next_review
from onlineauto.automl.random_draw import FairDraw
from onlineauto.automl.search import ConfigState
from onlineauto.errors import OptionError
from onlineauto.options import Log, option, options_of
from onlineauto.workspace.options import REGISTRY
from tests.automl.moves import Move, Table, make_rules

pytestmark = pytest.mark.lane("quick")

NAMES, OF_ACTIONS = (b"a", b"b", b"y", b"z"), frozenset({b"y", b"z"})
RULES = make_rules("stepwise", exact=False, max_live=3, lease=80, n_priority=1)
RULES = replace(RULES, paired=True, on_drift="reopen")


def product(letters: bytes) -> tuple[bytes, ...]:
    return tuple(bytes([letter]) for letter in letters)


def config(*products: bytes) -> Config:
    return Config.of(map(product, products), ConfigKind.INCLUSION)


CROSSED = config(b"ay", b"az", b"by", b"bz")
DEEP = config(b"ay", b"az", b"by", b"bz", b"aby", b"abz")
TUNABLE = {name: tunable for name, (tunable, _) in REGISTRY.parse("").tunable().items()}
SPACE = SearchSpace(NAMES, "quadratic", of_actions=OF_ACTIONS, tunable=TUNABLE)


def proposals(champion: Config, space: SearchSpace) -> Sequence[Config]:
    return Stepwise().propose(champion, space=space, draw=FairDraw(0))


def gaining(**gains: float) -> SearchSpace:
    return replace(SPACE, gains={product(letters.encode()): gain for letters, gain in gains.items()})


def test_first_config_is_context_times_action() -> None:
    assert Stepwise().first(SPACE) == CROSSED
    assert Stepwise().first(SearchSpace((b"a", b"b"), "quadratic")) == config()
    assert Stepwise().first(replace(SPACE, searched=frozenset({"learning_rate"}))) == CROSSED


def test_first_config_has_no_interactions_if_there_are_many() -> None:
    names = tuple(b"%03d" % number for number in range(80))
    space = SearchSpace(names, "quadratic", of_actions=frozenset(names[:4]))
    assert Stepwise().first(space) == config()
    assert len(Stepwise().first(replace(space, grows=False)).elements) == 4 * 76
    fewer = replace(space, namespaces=names[:68])
    assert len(Stepwise().first(fewer).elements) == 4 * 64


def test_few_of_very_many_contexts_are_crossed_in_turn() -> None:
    names = tuple(b"%03d" % number for number in range(300))
    space = SearchSpace(names, "quadratic", of_actions=frozenset(names[:9]))
    met: set[bytes] = set()
    for turn in range(40):
        screened = Stepwise().screened(config(), space=space, turn=turn)
        assert len(screened) == 1024
        met |= {name for interaction in screened for name in interaction if len(interaction) == 2}
    assert met == set(names)


def test_families_are_proposed_before_single_interactions() -> None:
    space = gaining(aby=1.0, abz=3.0, ay=5.0, az=-1.0, aay=2.0, yz=-2.0)
    found = proposals(CROSSED, space)
    assert found == [DEEP, config(*b"ay az by bz aby abz aay".split()), config(*b"ay az by bz abz".split())]


def test_a_mature_champion_may_lose_an_interaction() -> None:
    space = replace(gaining(ay=5.0, az=-1.0, by=-2.0, bz=-3.0), mature=True)
    assert proposals(CROSSED, space)[-3:] == [
        config(b"bz"),
        config(b"az", b"by", b"bz"),
        config(b"by", b"bz"),
    ]
    assert config() not in proposals(CROSSED, replace(space, gains=dict.fromkeys(space.gains, 1.0)))


def test_single_lines_have_no_actions() -> None:
    space = replace(
        SPACE,
        namespaces=(b"a", b"b"),
        of_actions=frozenset(),
        searched=frozenset({"interactions", "learning_rate"}),
    )
    found = proposals(config(), replace(space, defaults={"learning_rate": 0.5}))
    assert found == [
        config(b"aa", b"ab", b"bb"),
        config().with_setting("learning_rate", 2.0),
        config().with_setting("learning_rate", 0.0625),
    ]


def test_proposed_settings_are_neighbours_of_the_champions() -> None:
    searched = frozenset({"learning_rate"})
    champion = config(b"ay").with_setting("learning_rate", 2.0)
    found = proposals(champion, replace(SPACE, searched=searched, defaults={"learning_rate": 0.5}))
    assert [dict(each.settings) for each in found] == [{"learning_rate": 8.0}, {"learning_rate": 0.25}]
    assert {each.elements for each in found} == {champion.elements}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("power_t", 0.5, [0.25, 0.75]),
        ("l1", 0.0, [1e-6]),
        ("l2", 1e-3, [1e-2, 1e-4]),
        ("cb_type", "mtr", ["dr", "ips"]),
        ("cb_type", "dm", ["mtr", "dr", "ips"]),
    ],
)
def test_neighbours_of_each_hyperparameter(
    name: str, value: float | str, expected: list[float | str]
) -> None:
    found = proposals(CROSSED, replace(SPACE, searched=frozenset({name}), defaults={name: value}))
    values = [dict(each.settings)[name] for each in found]
    assert values == pytest.approx(expected) if isinstance(value, float) else values == expected


def test_no_step_leaves_the_bounds_of_an_option() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options:
        title: ClassVar[str] = "Options"
        share: float = option(
            0.5, "A share.", above=0, below=1, tunable=Log(0.1, 0.9, first=2.0, write=print)
        )

    share = options_of(Options)[0].tunable
    assert isinstance(share, Log)
    assert share.neighbours(0.5) == [0.125]
    assert share.neighbours(0.125) == [0.5, 0.03125]
    assert share.neighbours(0.0) == []


def test_much_more_expensive_configs_are_left_out() -> None:
    wide = replace(SPACE, sizes={b"a": 100.0, b"b": 100.0}, n_actions=50.0)
    assert DEEP in proposals(CROSSED, SPACE)
    assert DEEP not in proposals(CROSSED, wide)
    steps = Stepwise().screened(CROSSED, space=wide, turn=1)
    assert product(b"aby") not in steps
    assert set(CROSSED.elements) <= set(steps)


def test_late_namespaces_are_crossed_at_once() -> None:
    space = replace(SPACE, new=frozenset({b"b"}))
    assert proposals(config(b"ay", b"az"), space) == [CROSSED]


def test_hundreds_of_namespaces_are_screened_in_turns() -> None:
    names = tuple(b"n%03d" % i for i in range(300))
    space = SearchSpace((*names, b"z"), "quadratic", of_actions=frozenset({b"z"}))
    champion = Stepwise().first(space)
    seen: set[tuple[bytes, ...]] = set()
    for turn in range(3):
        steps = Stepwise().screened(champion, space=space, turn=turn)
        assert len(steps) <= 1024
        assert len(set(steps) - seen) > 400
        seen |= set(steps)
    assert len(proposals(champion, space)) == 0, "the whole family is too dear"


def met(learnt: int = 0) -> tuple[object, Table]:
    counts = dict.fromkeys(NAMES, 9)
    return None, Table(Move("meet", learnt=learnt), counts, 1)


def test_only_the_first_namespaces_are_in_the_first_champion() -> None:
    _, table = met()
    search = start(RULES, random_seed=0)
    search, decisions = decide(RULES, search, NewNamespaces(NAMES[1:], OF_ACTIONS), table)
    assert decisions[1] == Rotate(0, 0, config(b"by", b"bz"))
    search, decisions = decide(RULES, search, NewNamespaces((b"a",)), table)
    assert decisions == (Widen((b"a",)), Rotate(0, 0, CROSSED))
    later = Table(Move("meet", learnt=10), {**table.counts, b"c": 1}, 1)
    search, decisions = decide(RULES, search, NewNamespaces((b"c",)), later)
    late = config(b"ay", b"az", b"by", b"bz", b"cy", b"cz")
    assert decisions[0] == Widen((b"c",))
    (rotate,) = decisions[1:]
    assert isinstance(rotate, Rotate)
    assert (rotate.config, rotate.why) == (late, "namespaces seen late: c")
    assert late in [search.config(slot) for slot in range(len(search.slots))]
    assert search.review == 10, "a tenth of a lease after the first event"


def new_search() -> tuple[object, Table]:
    _, table = met()
    search, _ = decide(RULES, start(RULES, random_seed=0), NewNamespaces(NAMES, OF_ACTIONS), table)
    gains = Table(Move("review", learnt=10, gains=(1.0,) * 10), table.counts, 1)
    search, decisions = decide(RULES, search, ReviewDue(), gains)
    assert decisions == ()
    search, _ = decide(RULES, search, LeaseDue(), table)
    return search, gains


def test_a_new_champion_keeps_the_challengers() -> None:
    search, table = new_search()
    before = [search.config(slot) for slot in range(3)]  # type: ignore[attr-defined]
    after, decisions = decide(RULES, search, BoundCrossed(2, "loss"), table)  # type: ignore[arg-type]
    assert decisions == (Swap(2, before[2], "loss", keeps=True),)
    assert [after.config(slot) for slot in range(3)] == [before[2], before[1], before[0]]
    assert (after.since, after.review) == (10, 20)


@pytest.mark.parametrize(
    ("since", "learnt", "gap"),
    [(0, 1, 10), (0, 15, 15), (0, 100, 20), (0, 160, 20), (0, 800, 50), (0, 10**6, 2048), (99, 99, 10)],
)
def test_reviews_grow_rare_while_nothing_changes(since: int, learnt: int, gap: int) -> None:
    table = Table(Move("review", learnt=learnt), {}, 1)
    search = replace(start(RULES, random_seed=0), since=since)
    assert with_next_review(RULES, search, table).review == learnt + gap


def test_a_config_proved_worse_is_replaced_until_there_is_drift() -> None:
    search, table = new_search()
    worse = search.slots[1].index  # type: ignore[attr-defined]
    after, (remove, rotate) = decide(RULES, search, ProvedWorse(1), table)  # type: ignore[arg-type]
    assert remove == Remove(1, worse)
    assert isinstance(rotate, Rotate)
    assert rotate.live == 1
    assert after.candidates[worse].state is ConfigState.REMOVED
    after, (reopen,) = decide(RULES, after, ReviewDue(drift=True), table)
    assert reopen == Reopen("reopen", tuple(slot.index for slot in after.slots))
    assert ConfigState.REMOVED not in {each.state for each in after.candidates}


def test_exact_mode_rejects_stepwise() -> None:
    with pytest.raises(OptionError, match="stepwise"):
        Workspace(cb_explore_adf=True, automl=2, vw_exact=True, oracle_type="stepwise")
    with pytest.raises(OptionError, match="--search cannot be lr"):
        Workspace(cb_explore_adf=True, automl=2, search="lr")


@pytest.mark.parametrize(("size", "proposed"), [(4.0, True), (12.0, True), (13.0, False)])
def test_configs_of_more_than_4096_features_are_not_proposed(size: float, proposed: bool) -> None:
    space = replace(SPACE, sizes=dict.fromkeys(NAMES, size))
    assert (space.terms(DEEP.elements) <= 4096) == proposed
    assert (DEEP in proposals(CROSSED, space)) == proposed
