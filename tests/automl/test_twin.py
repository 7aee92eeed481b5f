"""Exact decisions, compared with a literal translation of VW's classes."""

from __future__ import annotations

from hypothesis import event, given, settings
from hypothesis import strategies as st

from onlineauto.automl.config import ConfigKind
from onlineauto.automl.decide import start
from onlineauto.automl.decisions import (
    BoundCrossed,
    Decision,
    Extend,
    NewNamespaces,
    Rotate,
    Signal,
    Swap,
    Widen,
)
from onlineauto.automl.search import Search, SearchRules
from tests.automl.moves import Move, Table, interactions, moves, play, rules
from tests.naive.automl import Manager, Options

NAMES = (b"a", b"b", b" ", b"\x8b")


def twin_of(rules: SearchRules, seed: int) -> Manager:
    return Manager(
        Options(
            max_live_configs=rules.max_live,
            default_lease=rules.lease,
            oracle=rules.oracle,
            interaction_type=rules.interaction_type,
            priority=rules.priority,
            priority_challengers=rules.n_priority,
            random_seed=seed,
        )
    )


def answer(twin: Manager, signal: Signal, table: Table) -> list[tuple[object, ...]]:
    twin.log.clear()
    if isinstance(signal, NewNamespaces):
        twin.ns_counter.update({name: table.counts[name] for name in twin.ns_counter})
        twin.ns_counter.update({name: table.counts[name] - 1 for name in signal.names})
        twin.process_example(signal.names)
        return [("widen", signal.names)]
    twin.ns_counter.update(table.counts)
    for slot, estimator in enumerate(twin.estimators):
        estimator.update_count = table.updates(slot)
        estimator.lower, estimator.upper = table.lower(slot), table.upper(slot)
    if isinstance(signal, BoundCrossed):
        twin.apply_new_champ(signal.live)
    else:
        twin.schedule()
    return twin.log


def as_tuple(decision: Decision) -> tuple[object, ...]:
    match decision:
        case Widen(names):
            return ("widen", names)
        case Rotate(slot, index, config):
            return ("rotate", slot, index, config.elements)
        case Extend(slot, lease, place_of):
            return ("extend", slot, lease, place_of)
        case Swap(slot, config):
            return ("swap", slot, config.elements)
    raise AssertionError(f"VW does not do this: {decision}")


def compare(rules: SearchRules, search: Search, twin: Manager) -> None:
    oracle = twin.oracle
    assert [
        (each.config.elements, each.config.kind.value, each.lease, each.state.value)
        for each in search.candidates
    ] == [(tuple(each.elements.sorted()), each.kind, each.lease, each.state) for each in oracle.configs]
    assert search.n_valid == oracle.valid_config_size
    assert list(search.queue) == sorted(((float(p), i) for p, i in oracle.index_queue), reverse=True)
    assert [(slot.index, slot.gives_way) for slot in search.slots] == [
        (each.config_index, each.eligible_to_inactivate) for each in twin.estimators
    ]
    for slot, estimator in enumerate(twin.estimators):
        assert list(interactions(rules, search, slot)) == estimator.live_interactions
    assert search.random_state == oracle.random_state
    assert search.n_switches == twin.total_champ_switches


def check(rules: SearchRules, moves: list[Move], seed: int) -> None:
    twin = twin_of(rules, seed)
    compare(rules, start(rules, random_seed=seed), twin)
    stale = False
    for step in play(rules, moves, seed=seed):
        assert answer(twin, step.signal, step.table) == [as_tuple(each) for each in step.decisions]
        compare(rules, step.after, twin)
        stale |= len(step.after.candidates) > step.after.n_valid
        event(type(step.signal).__name__)
    event(f"places left over: {stale}")


SEEDS = st.sampled_from([0, 5, 2**64 - 1])


@settings(max_examples=200)
@given(rules=rules(exact=True), moves=moves(names=NAMES, exact=True), seed=SEEDS)
def test_decisions_and_states_equal_the_reference(rules: SearchRules, moves: list[Move], seed: int) -> None:
    check(rules, moves, seed)


@settings(max_examples=300)
@given(
    rules=rules(exact=True).filter(lambda each: each.max_live > 1),
    names=st.sampled_from([NAMES[:2], NAMES[:3], NAMES[1:]]),
    winners=st.lists(st.integers(0, 9), min_size=1, max_size=9),
    seed=SEEDS,
)
def test_streams_have_many_changes_of_champion(
    rules: SearchRules, names: tuple[bytes, ...], winners: list[int], seed: int
) -> None:
    """One champion after the other, so that configs of earlier ones come back."""
    reigns = [move for winner in winners for move in (Move("due"), Move("cross", slot=winner))]
    check(rules, [Move("meet", names=names), *reigns], seed)


def test_values_of_config_kinds() -> None:
    assert {kind.value for kind in ConfigKind} == {"exclusion", "inclusion"}
