"""The oracle: stepwise regression, which proposes the most promising steps from the champion.

The first champion crosses every namespace of the context with every namespace of the action; products of
contexts alone are equal for all actions. (Single lines have no actions; they begin without interactions.) For
a champion the oracle then proposes, best first:

1. the champion with the next family: all pairs of contexts crossed with the action;
2. all interactions with a gain, the four with the largest gains, the one with the largest gain;
3. for a mature champion, fewer: the best quarter of its interactions, those that do no harm, the better half;
4. other learning rates: four times the champion's, and an eighth.

Proposals that are much more expensive than the champion are left out, and interactions with too many numbers
of long vectors (`Space.may_cross`). For namespaces that are first seen late
there is one proposal: the champion, crossed with them.

All proposals but the first depend on gains; so the oracle also lists the interactions to screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, combinations_with_replacement, product
from typing import TYPE_CHECKING

from tests.naive.native_search.configs import Config

if TYPE_CHECKING:
    from tests.naive.native_search.configs import Interaction, Space

FREE_TERMS, TIMES_DEARER = 4096.0, 4.0
"""Maximum number of features of interactions of a challenger, and multiple of the champion's."""
MOST_AT_ONCE = 256
MOST_SCREENED, MOST_SCREENED_TERMS = 1024, 4096.0
CROSSED_AT_ONCE = 32
"""Number of best namespaces that are crossed with as many others in turn, if there are twice as many."""
LARGEST_FAMILY = 20_000


def ascending(names: Iterable[bytes]) -> Interaction:
    return tuple(sorted(names))


# -- where the search begins ---------------------------------------------------------------------------


def alone(space: Space) -> list[Interaction]:
    """Return the namespaces themselves, if the search chooses among them."""
    return [(name,) for name in space.names] if "namespaces" in space.searched else []


def crossed(space: Space) -> list[Interaction]:
    """Return the pairs of a context with a namespace of the action."""
    possible = map(ascending, product(space.contexts, space.actions))
    return [names for names in possible if space.may_cross(names)]


def first(space: Space) -> Config:
    """Return the first champion."""
    pairs = crossed(space)
    begins = len(pairs) <= MOST_AT_ONCE or not space.grows
    return Config().crossing([*alone(space), *(pairs if begins else [])])


# -- proposals -----------------------------------------------------------------------------------------


def propose(champion: Config, space: Space) -> list[Config]:
    """Return the challengers of a champion, best first."""
    if space.late:
        late = [names for names in (*alone(space), *crossed(space)) if space.late.intersection(names)]
        proposals = [champion.crossing([*champion.interactions, *late])]
    else:
        others, rates = list(other_interactions(champion, space)), other_rates(champion, space)
        proposals = [*others, *rates]
        if not space.of_actions:  # of single lines, losses tell rates apart as soon as interactions
            proposals = [*others[:1], *rates[:1], *others[1:], *rates[1:]]
    most = max(FREE_TERMS, TIMES_DEARER * space.terms(champion.interactions))
    return [
        each
        for each in dict.fromkeys(proposals)
        if each != champion and space.terms(each.interactions) <= most
    ]


def other_interactions(champion: Config, space: Space) -> Iterator[Config]:
    held = set(champion.interactions)
    if "interactions" in space.searched:
        yield champion.crossing(held.union(names for names in family(space) if space.may_cross(names)))
    by_gain = sorted(space.gains, key=lambda names: (-space.gains[names], names))
    gaining = [names for names in by_gain if space.gains[names] > 0.0]
    missing = [names for names in gaining if names not in held]
    for many in (MOST_AT_ONCE, 4, 1):
        yield champion.crossing(held.union(missing[:many]))
    if space.mature:
        worst_first = [names for names in by_gain if names in held]
        harmful = [names for names in gaining if names in held]
        three_quarters, half = len(worst_first) * 3 // 4, len(worst_first) // 2
        for dropped in (worst_first[:three_quarters], harmful, worst_first[:half]):
            if len(dropped) < len(held):
                yield champion.crossing(held.difference(dropped))


def family(space: Space) -> Iterable[Interaction]:
    """Return contexts and pairs of contexts with the action; all pairs if either is missing."""
    contexts, actions = space.contexts, space.actions
    if len(contexts) ** 2 * len(actions) > 2 * LARGEST_FAMILY:
        return ()
    if contexts and actions:
        deep = [ascending((*pair, name)) for pair, name in product(combinations(contexts, 2), actions)]
        return [*crossed(space), *deep]
    if len(space.names) ** 2 > 2 * LARGEST_FAMILY:
        return ()
    return combinations_with_replacement(space.names, 2)


def other_rates(champion: Config, space: Space) -> list[Config]:
    if "learning_rate" not in space.searched:
        return []
    rate = space.learning_rate if champion.learning_rate is None else champion.learning_rate
    return [Config(champion.interactions, rate * factor) for factor in (4.0, 0.125)]


# -- what to screen ------------------------------------------------------------------------------------


def screened(champion: Config, space: Space, turn: int) -> list[Interaction]:
    """Return the champion's interactions and those one step away: the best so far, and others in turn."""
    held = champion.interactions
    steps = [
        names
        for names in dict.fromkeys(chain(alone(space), pairs(champion, space, turn)))
        if names not in held and space.may_cross(names)
    ]
    known = sorted(set(steps) & space.gains.keys(), key=lambda names: (-space.gains[names], names))
    best = known[: MOST_SCREENED // 2]
    others = [names for names in steps if names not in set(best)]
    start = turn * (MOST_SCREENED // 2) % len(others) if len(others) > MOST_SCREENED else 0
    own = [names for names in held if ("interactions" if len(names) > 1 else "namespaces") in space.searched]
    return within_reach([*own, *best, *others[start:], *others[:start]], space)


def pairs(champion: Config, space: Space, turn: int) -> Iterator[Interaction]:
    """Return the interactions of configs within a step, the simplest first."""
    if "interactions" not in space.searched:
        return
    if space.contexts and space.actions:
        yield from crossed(space)
        yield from combinations_with_replacement(space.actions, 2)
        many = max(int(CROSSED_AT_ONCE / len(space.actions) ** 0.5), 1)
        some = combinations_with_replacement(in_turn(space.contexts, space, turn, many), 2)
        yield from (ascending((*pair, name)) for pair, name in product(some, space.actions))
        return
    names = in_turn(space.names, space, turn, CROSSED_AT_ONCE)
    yield from combinations_with_replacement(names, 2)
    for pair, name in product(champion.interactions, names):
        if len(pair) == 2 and name not in pair:
            yield ascending((*pair, name))


def in_turn(names: Sequence[bytes], space: Space, turn: int, many: int) -> list[bytes]:
    """Return the namespaces that are crossed now: all, or the best and as `many` others."""
    if len(names) <= 2 * many:
        return list(names)
    gains = dict.fromkeys(names, 0.0)
    for interaction, gain in space.gains.items():
        for name in interaction:
            gains[name] = max(gains.get(name, 0.0), gain)
    best = set(sorted(names, key=lambda name: (-gains[name], name))[:many])
    others = [name for name in names if name not in best]
    start = turn * many % len(others)
    return sorted({*best, *(others[start:] + others[:start])[:many]})


def within_reach(interactions: Iterable[Interaction], space: Space) -> list[Interaction]:
    """Return the first interactions, up to limits of their number and of their features in an action."""
    reached: list[Interaction] = []
    terms = 0.0
    for names in interactions:
        size = space.size(names)
        if space.of_actions.intersection(names):
            size /= max(space.n_actions, 1.0)
        if len(reached) < MOST_SCREENED and terms + size <= MOST_SCREENED_TERMS:
            reached.append(names)
            terms += size
    return reached
