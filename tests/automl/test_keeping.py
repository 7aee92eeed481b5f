"""Configs that are kept at a change of champion, and waiting configs that overtake it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.automl.config import Config
from onlineauto.automl.decide import decide, start
from onlineauto.automl.decisions import BoundCrossed, LeaseDue, NewNamespaces, ReviewDue, Rotate, Swap
from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.search import Candidate, ConfigState, LiveConfig, Search, SearchRules
from tests.automl.moves import Move, Table, make_rules, moves, play, rules

NAMES = (b"a", b"b", b"user")
KEPT = (ConfigState.LIVE, ConfigState.NEW, ConfigState.INACTIVE)


@given(rules=rules(exact=False), moves=moves(names=NAMES))
def test_a_change_of_champion_keeps_all_configs_that_are_not_proved_worse(
    rules: SearchRules, moves: list[Move]
) -> None:
    keeping = replace(rules, keeps_configs=True)
    for step in play(keeping, moves):
        indexes = [slot.index for slot in step.after.slots]
        live = {index for index, each in enumerate(step.after.candidates) if each.state is ConfigState.LIVE}
        assert sorted(indexes) == sorted(live)
        assert indexes[0] == 0
        if not isinstance(step.signal, BoundCrossed):
            continue
        before, after, winner = step.before, step.after, step.signal.live
        names = [before.config(live) for live in range(len(before.slots))]
        names[0], names[winner] = names[winner], names[0]
        waiting = [each.config for each in before.candidates if each.state in KEPT[1:]]
        kept = [*names, *waiting]
        assert [each.config for each in after.candidates][: len(kept)] == kept
        assert [after.config(live) for live in range(len(after.slots))] == names
        assert {each.lease for each in after.candidates} == {rules.lease}
        assert all(each.state in KEPT for each in after.candidates)
        gives_way = [not rules.renews and live > rules.n_priority for live in range(len(names))]
        assert [slot.gives_way for slot in after.slots] == gives_way
        configs = [each.config for each in after.candidates]
        assert ORACLES[rules.oracle].once or len({*configs}) == len(configs)


def overtaking(rules: SearchRules, search: Search, table: Table) -> Config | None:
    """Return the config that overtakes: the one with the largest bound of those above the champion's."""
    found, most = None, table.upper(0)
    for each in search.candidates:
        if each.state is ConfigState.INACTIVE and table.waiting_lower(each.config) > most:
            found, most = each.config, table.waiting_lower(each.config)
    return found if rules.waiting_overtakes and len(search.slots) > 1 else None


@given(
    rules=rules(exact=False),
    moves=moves(names=NAMES),
    bounds=st.lists(st.sampled_from([0.0, 0.5, 0.8, 0.9]), min_size=1, max_size=9),
    keeps=st.booleans(),
)
def test_a_waiting_config_overtakes_at_a_review(
    rules: SearchRules, moves: list[Move], bounds: list[float], keeps: bool
) -> None:
    overtaken = replace(rules, waiting_overtakes=True, keeps_configs=keeps)
    for step in play(rules, moves):
        search = step.before
        waiting = {each.config: bounds[number % len(bounds)] for number, each in enumerate(search.candidates)}
        table = replace(step.table, waiting=waiting)
        signal = ReviewDue(drift=False)
        winner = overtaking(overtaken, search, table)
        after, decisions = decide(overtaken, search, signal, table)
        plain = decide(replace(overtaken, waiting_overtakes=False), search, signal, table)
        if winner is None:
            assert (after, decisions) == plain
            continue
        rotate, swap = decisions
        assert isinstance(rotate, Rotate)
        assert isinstance(swap, Swap)
        assert rotate.config == swap.config == after.champion == winner
        assert search.candidates[rotate.index].config == winner
        key = [(table.promise(live), table.updates(live)) for live in range(1, len(search.slots))]
        assert rotate.live == swap.live == 1 + key.index(min(key))
        assert after.config(swap.live if swap.keeps else 1) == search.champion
        assert swap.keeps is (rules.renews or keeps)
        assert after.n_switches == search.n_switches + 1
        assert after.since == table.learnt()
        assert not [
            each for each in decide(overtaken, search, LeaseDue(), table)[1] if isinstance(each, Swap)
        ]


@pytest.mark.parametrize("drift", [False, True])
def test_no_config_overtakes_at_a_drift(drift: bool) -> None:
    """A drift restarts all tests, so bounds of earlier events say nothing."""
    rules = replace(make_rules(exact=False), waiting_overtakes=True, on_drift="reopen")
    counts = dict.fromkeys(NAMES, 9)
    search, _ = decide(rules, start(rules, random_seed=0), NewNamespaces(NAMES), Table(counts=counts))
    search, _ = decide(rules, search, LeaseDue(), Table(counts=counts, live=1))
    waited = Candidate(Config(((b"a", b"zz"),)), 10, ConfigState.INACTIVE)
    search = replace(search, candidates=(*search.candidates, waited), n_valid=len(search.candidates) + 1)
    table = Table(Move("review", upper=(0.5, 1, 1, 1, 1)), counts, len(search.slots), {waited.config: 0.6})
    after, _ = decide(rules, search, ReviewDue(drift), table)
    assert (after.champion == waited.config) is not drift
    assert LiveConfig(0) == after.slots[0]
