"""The conformance suites of the search: oracles and priorities."""

from __future__ import annotations

from itertools import combinations, product
from math import isfinite
from typing import TYPE_CHECKING

from onlineauto.automl.config import Config, ConfigKind, interactions_of, possible_interactions
from onlineauto.automl.oracles.oracle import SearchSpace
from onlineauto.automl.random_draw import FairDraw
from onlineauto.exact.control import VwDraw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.automl.oracles.oracle import Oracle
    from onlineauto.automl.priorities import Priority

_NAMES = ((), (b"a",), (b" ", b"a", b"user"), (b"a", b"b", b"c", b"\xc3\xa9"))

_COUNTS = (
    {b"a": 1, b"b": 1, b"user": 1},
    {b"a": 5, b"b": 4, b"user": 3},
    {b"a": 2**24 + 1, b"b": 2**40, b"user": 7},
)


def check_priority(priority: Priority) -> None:
    """Check a priority against the requirements of the search.

    The priority of a config is a finite number. It depends on the arguments alone. It reads only the counts
    of namespaces in the config.

    Parameters
    ----------
    priority : Priority
        The priority, registered or not.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the config.

    Examples
    --------
    >>> from onlineauto.automl.priorities import NoPriority
    >>> check_priority(NoPriority())
    """
    for config, counts in product(_configs(), _COUNTS):
        named = {name: counts[name] for interaction in config.elements for name in interaction}
        where = f"{type(priority).__name__}.of, {config}, counts {counts}"
        try:
            value, again = priority.of(config, named.__getitem__), priority.of(config, named.__getitem__)
        except KeyError as error:
            raise AssertionError(f"asks for {error}, which is not in the config: {where}") from error
        if not isfinite(value):
            raise AssertionError(f"not a finite number: {value}; {where}")
        if value != again:
            raise AssertionError(f"the same arguments give {value} and {again}: {where}")


def _configs() -> Iterator[Config]:
    interactions = (*possible_interactions((b"a", b"b", b"user"), 2), (b"a", b"b", b"user"))
    for size, kind in product(range(4), ConfigKind):
        for elements in combinations(interactions, size):
            yield Config.of(elements, kind)


def check_oracle(oracle: Oracle) -> None:
    """Check an oracle against the requirements of the search, for many champions.

    Proposals are configs over the available namespaces and nothing else. They depend on the arguments alone.
    Every proposal has interactions that can be learnt. The first champion gets a challenger as soon as there
    is a namespace, and no champion is proposed as its own challenger. These last two requirements do not
    apply to an oracle that is called only once.

    Parameters
    ----------
    oracle : Oracle
        The oracle, registered or not.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the champion.

    Examples
    --------
    >>> from onlineauto.automl.oracles.neighbours import OneDiff
    >>> check_oracle(OneDiff())
    """
    for names, interaction_type in product(_NAMES, ("quadratic", "cubic", "both")):
        space = SearchSpace(names, interaction_type)
        for champion in _champions(oracle, space):
            _check_proposals(oracle, champion, space)


def _champions(oracle: Oracle, space: SearchSpace) -> Iterator[Config]:
    """Yield the first champion, and some possible successors."""
    champion = Config(kind=oracle.kind)
    yield champion
    for step in range(3):
        proposals = oracle.propose(champion, space=space, draw=FairDraw(step))
        if not proposals or oracle.once:
            return
        champion = proposals[len(proposals) // 2]
        yield champion


def _check_proposals(oracle: Oracle, champion: Config, space: SearchSpace) -> None:
    where = f"{type(oracle).__name__}, champion {champion}, {space}"
    for seed, kind_of_draw in product((0, 7, 2**64 - 1), (FairDraw, VwDraw)):
        draw, again = kind_of_draw(seed), kind_of_draw(seed)
        proposals = tuple(oracle.propose(champion, space=space, draw=draw))
        repeated = tuple(oracle.propose(champion, space=space, draw=again))
        assert proposals == repeated, f"the same arguments give other proposals: {where}"
        assert draw.state == again.state, f"the same arguments draw more or less: {where}"
        for config in proposals:
            _check_config(oracle, config, space, where)
        if oracle.once:
            continue
        assert champion not in proposals, f"the champion is proposed: {where}"
        begins = champion == Config(kind=oracle.kind) and bool(space.namespaces)
        assert not begins or bool(proposals), f"no challenger for the first champion: {where}"


def _check_config(oracle: Oracle, config: Config, space: SearchSpace, where: str) -> None:
    elements = config.elements
    assert isinstance(config, Config), f"not a Config: {config}; {where}"
    assert config == Config.of(elements, config.kind), f"elements not ascending, or repeated: {where}"
    assert oracle.once or config.kind is oracle.kind, f"another kind than the oracle's: {config}; {where}"
    for interaction in elements:
        assert interaction == tuple(sorted(interaction)), f"names not ascending: {interaction}; {where}"
        assert set(interaction) <= set(space.namespaces), f"not observed: {interaction}; {where}"
        assert len(interaction) in (2, 3), f"neither of two nor of three: {interaction}; {where}"
    crossed = interactions_of(
        config, space.namespaces, interaction_type=space.interaction_type, base=oracle.base
    )
    assert len(set(crossed)) == len(crossed), f"an interaction twice: {config}; {where}"
    if config.kind is ConfigKind.EXCLUSION:
        left_out = set(elements) <= set(space.interactions())
        assert left_out, f"excludes what is not offered: {config}; {where}"
