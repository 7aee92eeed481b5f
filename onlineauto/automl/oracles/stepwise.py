"""``--oracle_type stepwise``: first a whole family, then the interactions that explain most residuals."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from itertools import chain, combinations, combinations_with_replacement, product
from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.config import MOST_FACTORS, Config, ConfigKind
from onlineauto.automl.oracles.oracle import Oracle, SearchSpace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from onlineauto.automl.config import Interaction
    from onlineauto.automl.random_draw import RandomOrder

_AT_ONCE = 256
"""Maximum number of interactions of the first champion, and of interactions added for their gains."""
_FREE = 4096.0
"""Number of features of interactions in an event that every config may have."""
_DEARER = 4.0
"""Maximum ratio of a challenger's features to the champion's, above `_FREE`."""
_SCREENED, _SCREENED_TERMS = 1024, 4096.0
"""Maximum number of screened interactions, and of their features in one action."""
_CONTEXTS = 32
"""Of more than twice this number of namespaces, this number of the best are crossed with as many others in
turn. The number is smaller, the more namespaces of the action they are crossed with."""
_FAMILY = 20_000
"""Maximum number of interactions in a proposed family."""


class Stepwise(Oracle):
    """Proposes promising steps of a stepwise regression, forward and backward.

    Namespaces of the shared line are contexts, those of the other lines belong to the action. The search
    begins with each context crossed with each namespace of the action. Products of contexts alone are the
    same for every action, and cannot distinguish actions. (If events are single lines, or if these crossings
    are too many, the search begins without interactions, and screening finds them.)

    Proposals have this order:

    1. the whole next family: all pairs of contexts crossed with the action (or all pairs);
    2. all interactions that seem to gain something, the four with the largest gains, and the first of these;
    3. after a lease: the best quarter of the champion's interactions, those that do no harm, the better half;
    4. other hyperparameters.

    Configs with far more features than the champion are left out.
    """

    name: ClassVar[str] = "stepwise"
    kind: ClassVar[ConfigKind] = ConfigKind.INCLUSION
    orders: ClassVar[tuple[int, ...]] = (2,)
    in_vw: ClassVar[bool] = False
    renews: ClassVar[bool] = True

    def first(self, space: SearchSpace) -> Config:
        """Return every context crossed with every namespace of the action, unless screening must choose."""
        crossed = _cross_with_actions(space)
        begins = crossed if len(crossed) <= _AT_ONCE or not space.grows else ()
        return Config.of((*_single_namespaces(space), *begins), self.kind)

    def screened(self, champion: Config, *, space: SearchSpace, turn: int) -> Sequence[Interaction]:
        """Return the champion's interactions, then those one step away: the best so far, others in turn."""
        of_champion = [
            names
            for names in champion.elements
            if ("interactions" if len(names) > 1 else "namespaces") in space.searched
        ]
        if len(reached := _first_screenable(of_champion, space)) == _SCREENED:
            return reached
        used, gains = set(champion.elements), space.gains
        steps = [names for names in _steps(champion, space, turn) if names not in used]
        promising = sorted([(-gains[names], names) for names in steps if names in gains])
        best = [names for _, names in promising[: _SCREENED // 2]]
        chosen = set(best)
        others = [names for names in steps if names not in chosen]
        start = turn * (_SCREENED // 2) % len(others) if len(others) > _SCREENED else 0
        return _first_screenable([*of_champion, *best, *others[start:], *others[:start]], space)

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:  # noqa: ARG002
        """Return the most promising challengers, best first."""
        if space.new:
            offered = (*_single_namespaces(space), *_cross_with_actions(space))
            late = [names for names in offered if not space.new.isdisjoint(names)]
            proposals = [champion.with_elements((*champion.elements, *late))]
        else:
            interactions = list(_interactions(champion, space))
            settings = list(space.setting_neighbours(champion))
            if not space.of_actions:  # losses distinguish settings as soon as interactions
                proposals = [*interactions[:1], *settings[:1], *interactions[1:], *settings[1:]]
            else:
                proposals = [*interactions, *settings]
        configs = [config for config in dict.fromkeys(proposals) if config != champion]
        largest = max(space.n_actions, 1.0) * max([1.0, *space.sizes.values()]) ** MOST_FACTORS
        if largest * max([len(config.elements) for config in configs], default=0) < _FREE / 2:
            return configs  # as most are: nothing needs to be added up
        size = cache(space.size)  # proposals have most interactions in common
        limit = max(_FREE, _DEARER * sum(map(size, champion.elements)))
        return [config for config in configs if sum(map(size, config.elements)) <= limit]


def _interactions(champion: Config, space: SearchSpace) -> Iterator[Config]:
    """Yield configs with other interactions, or with other namespaces."""
    used = set(champion.elements)
    if "interactions" in space.searched:
        yield _with_family(champion, space.namespaces, space.of_actions, space.vectors)
    by_gain = [names for _, names in sorted([(-gain, names) for names, gain in space.gains.items()])]
    gaining = [names for names in by_gain if space.gains[names] > 0.0]
    missing = [names for names in gaining if names not in used]
    for many in dict.fromkeys(min(many, len(missing)) for many in (_AT_ONCE, 4, 1)):
        yield champion.with_elements(used.union(missing[:many]))
    if space.mature:
        least = [names for names in by_gain if names in used]
        useless = [names for names in gaining if names in used]
        for dropped in (least[: len(least) * 3 // 4], useless, least[: len(least) // 2]):
            if len(dropped) < len(used):
                yield champion.with_elements(used.difference(dropped))


def _steps(champion: Config, space: SearchSpace, turn: int) -> tuple[Interaction, ...]:
    """Return the interactions one step away from a config within reach, the simplest first."""
    singles = _single_namespaces(space)
    if "interactions" not in space.searched:
        return singles
    contexts, actions = _contexts(space), tuple(sorted(space.of_actions))
    if not contexts or not actions:
        names = _names_of_turn(space.namespaces, space, turn, _CONTEXTS)
        return _steps_of_lines(singles, names, champion.elements, space.vectors)
    many = max(int(_CONTEXTS / math.sqrt(len(actions))), 1)
    names = _names_of_turn(contexts, space, turn, many)
    return _steps_of_actions(singles, names, contexts, actions, space.vectors)


@lru_cache(maxsize=2)  # most reviews need the same interactions
def _steps_of_lines(
    singles: tuple[Interaction, ...],
    names: tuple[bytes, ...],
    elements: tuple[Interaction, ...],
    vectors: frozenset[bytes],
) -> tuple[Interaction, ...]:
    """Return `singles`, pairs of `names`, and the pairs among `elements` crossed with a name."""
    pairs = [pair for pair in elements if len(pair) == 2]
    longer = (_sorted_names((*pair, name)) for pair, name in product(pairs, names) if name not in pair)
    return _allowed((*singles, *combinations_with_replacement(names, 2), *longer), vectors)


@lru_cache(maxsize=2)
def _steps_of_actions(
    singles: tuple[Interaction, ...],
    names: tuple[bytes, ...],
    contexts: tuple[bytes, ...],
    actions: tuple[bytes, ...],
    vectors: frozenset[bytes],
) -> tuple[Interaction, ...]:
    """Return `singles`, contexts crossed with actions, pairs of actions, pairs of `names` with actions."""
    crossed = map(_sorted_names, product(contexts, actions))
    pairs = combinations_with_replacement(names, 2)
    longer = (_sorted_names((*pair, name)) for pair, name in product(pairs, actions))
    return _allowed((*singles, *crossed, *combinations_with_replacement(actions, 2), *longer), vectors)


def _allowed(interactions: Iterable[Interaction], vectors: frozenset[bytes]) -> tuple[Interaction, ...]:
    """Return the different interactions that a config may have if `vectors` are long vectors."""
    allows = SearchSpace((), "quadratic", vectors=vectors).allows
    return tuple(dict.fromkeys(filter(allows, interactions)))


def _names_of_turn(names: tuple[bytes, ...], space: SearchSpace, turn: int, count: int) -> tuple[bytes, ...]:
    """Return the namespaces to cross at this turn, ascending: all, or the `count` best and `count` others."""
    if len(names) <= 2 * count:
        return names
    gains: dict[bytes, float] = {}
    for interaction, gain in space.gains.items():
        for name in interaction:
            gains[name] = max(gains.get(name, 0.0), gain)
    best = set(sorted(names, key=lambda name: (-gains.get(name, 0.0), name))[:count])
    others = [name for name in names if name not in best]
    start = turn * count % len(others)
    return tuple(sorted({*best, *(others[start:] + others[:start])[:count]}))


@lru_cache(maxsize=2)  # the same until the champion changes
def _with_family(
    champion: Config, namespaces: tuple[bytes, ...], of_actions: frozenset[bytes], vectors: frozenset[bytes]
) -> Config:
    """Return a config with contexts and their pairs crossed with the action; without either, all pairs."""
    contexts, actions = [name for name in namespaces if name not in of_actions], sorted(of_actions)
    family: Iterable[Interaction] = ()
    if contexts and actions:
        if len(contexts) * len(contexts) * len(actions) <= 2 * _FAMILY:
            deep = (
                _sorted_names((*pair, name)) for pair, name in product(combinations(contexts, 2), actions)
            )
            family = chain(map(_sorted_names, product(contexts, actions)), deep)
    elif len(namespaces) ** 2 <= 2 * _FAMILY:
        family = combinations_with_replacement(namespaces, 2)
    return champion.with_elements((*champion.elements, *_allowed(family, vectors)))


def _single_namespaces(space: SearchSpace) -> tuple[Interaction, ...]:
    """Return the single namespaces, if the search decides which of them to use."""
    return tuple((name,) for name in space.namespaces) if "namespaces" in space.searched else ()


def _cross_with_actions(space: SearchSpace) -> tuple[Interaction, ...]:
    """Return every context crossed with every namespace of the action."""
    crossed = map(_sorted_names, product(_contexts(space), sorted(space.of_actions)))
    return tuple(filter(space.allows, crossed))


def _first_screenable(interactions: Iterable[Interaction], space: SearchSpace) -> list[Interaction]:
    """Return the first interactions, as many as can be screened."""
    reached: list[Interaction] = []
    terms, sizes, of_actions, n_actions = 0.0, space.sizes, space.of_actions, space.n_actions
    least_actions = max(n_actions, 1.0)
    for names in interactions:
        size = 1.0  # as `space.size`, whose calls would take most of a review
        for name in names:
            size *= sizes.get(name, 1.0)
        if not of_actions.isdisjoint(names):
            size = size * n_actions / least_actions
        if terms + size <= _SCREENED_TERMS:
            reached.append(names)
            terms += size
        if len(reached) == _SCREENED:
            break
    return reached


def _contexts(space: SearchSpace) -> tuple[bytes, ...]:
    return tuple(name for name in space.namespaces if name not in space.of_actions)


def _sorted_names(names: Iterable[bytes]) -> Interaction:
    return tuple(sorted(names))
