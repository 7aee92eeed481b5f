"""``decide``: the control plane's answer when the loop stops; pure functions of plain values.

In the terms of ChaCha (Wu et al., ChaCha for Online AutoML, 2021): `_add_namespaces` and `_promote` call the
ConfigOracle, `_promote` follows Better, and `schedule` is Schedule with its Choose and Worse.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.config import Config, interactions_of
from onlineauto.automl.decisions import (
    BoundCrossed,
    EnsembleCrossed,
    NewNamespaces,
    PredictWith,
    ProvedWorse,
    Reopen,
    ReviewDue,
    Rotate,
    Swap,
    Widen,
)
from onlineauto.automl.member_budget import rest_members
from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.proposals import propose, renew, space_of, with_next_review
from onlineauto.automl.schedule import (
    has_waiting,
    least_promising,
    make_late_live,
    make_live,
    remove,
    schedule,
)
from onlineauto.automl.search import Candidate, ConfigState, LiveConfig, Search

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onlineauto.automl.config import Interaction
    from onlineauto.automl.decisions import Decision, Signal, Statistics
    from onlineauto.automl.search import SearchRules

_UNTIL_DECIDED = 2**62
"""A lease that never ends: the config stays live until it is proved better or worse."""


def invite(
    rules: SearchRules,
    search: Search,
    config: Config,
    statistics: Statistics,
    *,
    names: Iterable[bytes],
    why: str,
) -> tuple[Search, tuple[Decision, ...]]:
    """Return the search with a config as a challenger until it is proved worse or the champion changes.

    The config replaces a challenger with the same config or, if no more can be live, the least promising one.
    """
    new = tuple(sorted(set(names) - set(search.namespaces)))
    decisions: tuple[Decision, ...] = (Widen(new),) if new else ()
    search = replace(search, namespaces=tuple(sorted({*search.namespaces, *new})))
    live = _live_index(rules, search, config, statistics)
    number = len(search.candidates)
    search = replace(
        search, candidates=(*search.candidates, Candidate(config, _UNTIL_DECIDED)), n_valid=number + 1
    )
    search, decisions_of_start = make_live(rules, search, live, number, reason=why)
    return search, (*decisions, *decisions_of_start)


def _live_index(rules: SearchRules, search: Search, config: Config, statistics: Statistics) -> int:
    """Return the index among the live configs for a config from outside."""
    same = [live for live in range(1, len(search.slots)) if search.config(live) == config]
    if same or len(search.slots) < rules.max_live:
        return same[0] if same else len(search.slots)
    return least_promising(search, statistics)


def start(rules: SearchRules, *, random_seed: int) -> Search:
    """Return a search with the oracle's first champion, before any namespace is seen."""
    state = ConfigState.LIVE if rules.control.begins_at_once else ConfigState.NEW
    champion = Candidate(Config(kind=ORACLES[rules.oracle].kind), rules.lease, state)
    return Search(candidates=(champion,), random_state=random_seed % 2**64)


def decide(
    rules: SearchRules, search: Search, signal: Signal, statistics: Statistics
) -> tuple[Search, tuple[Decision, ...]]:
    """Return the new state of the search, and the decisions that answer a signal of the loop."""
    if isinstance(signal, NewNamespaces):
        return _add_namespaces(rules, search, signal, statistics)
    if isinstance(signal, BoundCrossed):
        return _promote(rules, search, signal, statistics)
    if isinstance(signal, ReviewDue):
        return _review(rules, search, signal, statistics)
    if isinstance(signal, ProvedWorse):
        return remove(rules, search, signal.live, statistics)
    if isinstance(signal, EnsembleCrossed):
        return search, (PredictWith("ensemble" if signal.better else "champion", signal.by),)
    return schedule(rules, search, statistics)


def can_fill(rules: SearchRules, search: Search) -> bool:
    """Return whether a config waits and more configs can be live, so that `LeaseDue` has an effect."""
    return len(search.slots) < rules.max_live and has_waiting(search)


def can_replace(rules: SearchRules, search: Search) -> bool:
    """Return whether a config waits to replace one that is proved worse."""
    return rules.control.removes_worse and has_waiting(search)


def interactions_for(
    rules: SearchRules, config: Config, namespaces: Sequence[bytes]
) -> tuple[Interaction, ...]:
    """Return the interactions of a config once `namespaces` (in ascending order) are seen."""
    base = ORACLES[rules.oracle].base
    return interactions_of(config, namespaces, interaction_type=rules.interaction_type, base=base)


def _add_namespaces(
    rules: SearchRules, search: Search, signal: NewNamespaces, statistics: Statistics
) -> tuple[Search, tuple[Decision, ...]]:
    """Add new namespaces to the search, and propose challengers that use them."""
    names = signal.names
    just_begun = rules.renews and search.n_switches == 0 and statistics.learnt() < rules.first_review
    first = just_begun or not search.namespaces
    late = frozenset(names if rules.control.tries_late_namespaces and not first else ())
    if rules.renews and late:
        late |= search.late
    search = replace(
        search,
        namespaces=tuple(sorted({*search.namespaces, *names})),
        of_actions=search.of_actions | signal.of_actions,
        vectors=search.vectors | signal.vectors,
        late=late,
    )
    champion, n_candidates = search.candidates[0], len(search.candidates)
    decisions: list[Decision] = [Widen(names)]
    config = ORACLES[rules.oracle].first(space_of(rules, search, statistics)) if first else None
    if config is not None:
        champion = replace(champion, config=config)
        actions = b", ".join(sorted(search.of_actions)).decode("utf-8", "backslashreplace")
        reason = f"where the search begins; namespaces of actions: {actions or 'none'}"
        decisions.append(Rotate(0, 0, config, reason))
    if rules.control.tries_late_namespaces or champion.state is ConfigState.NEW:
        search = search.with_candidate(0, replace(champion, state=ConfigState.LIVE))
        search = propose(rules, search, statistics, new=late)
        if first and rules.control.has_reviews:
            search = with_next_review(rules, search, statistics)
        elif rules.renews:
            search, decisions_of_start = make_late_live(rules, search, n_candidates, statistics)
            decisions += decisions_of_start
    return search, tuple(decisions)


def _promote(
    rules: SearchRules, search: Search, signal: BoundCrossed, statistics: Statistics
) -> tuple[Search, tuple[Decision, ...]]:
    """Exchange a challenger with the champion, and request neighbours of the new champion."""
    keeps = rules.renews or rules.keeps_configs
    search = (_exchange if keeps else _drop_others)(rules, search, signal.live)
    swap = Swap(signal.live, search.champion, signal.by, keeps)
    search = replace(search, n_switches=search.n_switches + 1, since=statistics.learnt())
    search = propose(rules, search, statistics)
    return (with_next_review(rules, search, statistics) if rules.control.has_reviews else search), (swap,)


def _review(
    rules: SearchRules, search: Search, signal: ReviewDue, statistics: Statistics
) -> tuple[Search, tuple[Decision, ...]]:
    """Call the oracle again if it renews its proposals; after a drift, allow every config again."""
    reopens = signal.drift and rules.on_drift != "ignore"
    if search.late or signal.of_actions - search.of_actions or signal.vectors - search.vectors:
        of_actions, vectors = search.of_actions | signal.of_actions, search.vectors | signal.vectors
        search = replace(search, of_actions=of_actions, vectors=vectors, late=frozenset())
    if reopens:
        search = _reopen(rules, search, statistics)
    elif rules.waiting_overtakes:
        overtaken, decisions = _overtake(rules, search, statistics)
        if decisions:
            return overtaken, decisions
    if rules.renews:
        search = renew(rules, search, statistics)
    search = with_next_review(rules, search, statistics)
    indices = tuple(slot.index for slot in search.slots)
    search, rests = rest_members(rules, search, statistics)
    return search, ((Reopen(rules.on_drift, indices),) if reopens else ()) + rests


def _overtake(
    rules: SearchRules, search: Search, statistics: Statistics
) -> tuple[Search, tuple[Decision, ...]]:
    """Make the best waiting config the champion if its lower bound is above the champion's upper bound.

    It takes the place of the least promising challenger. Source: `update_champ` of VW 9.0 and 9.1.
    """
    waiting = [n for n, other in enumerate(search.candidates) if other.state is ConfigState.INACTIVE]
    if not waiting or len(search.slots) < 2:
        return search, ()
    lower = {number: statistics.waiting_lower(search.candidates[number].config) for number in waiting}
    best = max(waiting, key=lower.__getitem__)
    if lower[best] <= statistics.upper(0):
        return search, ()
    live = least_promising(search, statistics)
    search, rotated = make_live(rules, search, live, best, reason="overtakes the champion while it waits")
    search, swapped = _promote(rules, search, BoundCrossed(live), statistics)
    return search, (*rotated, *swapped)


def _reopen(rules: SearchRules, search: Search, statistics: Statistics) -> Search:
    """Return the search with no config removed, and every lease reset to a first lease."""
    candidates = tuple(
        replace(
            candidate,
            lease=rules.lease,
            state=ConfigState.INACTIVE if candidate.state is ConfigState.REMOVED else candidate.state,
        )
        for candidate in search.candidates
    )
    members = tuple(replace(member, works=True, since=statistics.learnt()) for member in search.members)
    return replace(search, candidates=candidates, since=statistics.learnt(), members=members)


def _exchange(rules: SearchRules, search: Search, live: int) -> Search:
    """Keep all live configs, each with a first lease; the two champions exchange their indices.

    If the rules say so, all waiting configs are kept too.
    """
    order = [slot.index for slot in search.slots]
    order[0], order[live] = order[live], order[0]
    live_configs = tuple(
        LiveConfig(number, gives_way=not rules.renews and number > rules.n_priority)
        for number in range(len(order))
    )
    if rules.keeps_configs:
        order += filter(search.waits, range(search.n_valid))
    candidates = tuple(replace(search.candidates[number], lease=rules.lease) for number in order)
    return replace(search, candidates=candidates, n_valid=len(candidates), slots=live_configs)


def _drop_others(rules: SearchRules, search: Search, live: int) -> Search:
    """Keep only the new and the old champion, or all configs if the oracle is called only once."""
    candidates = _best_two_first(search.candidates, search.slots[live].index)
    if ORACLES[rules.oracle].once:
        rest = (replace(candidate, state=ConfigState.INACTIVE) for candidate in candidates[2:])
        candidates = (*candidates[:2], *rest)
        n_valid = len(candidates)
    else:
        candidates = candidates[:2] if rules.control.forgets_left_over else candidates
        n_valid = 2
    two = LiveConfig(0), LiveConfig(1)
    return replace(search, candidates=candidates, n_valid=n_valid, queue=(), slots=two)


def _best_two_first(candidates: tuple[Candidate, ...], winner: int) -> tuple[Candidate, ...]:
    """Exchange the winner with the champion at 0, and then the old champion with the candidate at 1.

    If the winner is the champion itself, its own challenger in VW, it is listed twice.
    """
    if winner == 0:
        return (candidates[0], *candidates)[:2]
    places = list(candidates)
    places[0], places[winner] = places[winner], places[0]
    places[1], places[winner] = places[winner], places[1]
    return tuple(places)
