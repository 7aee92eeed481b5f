"""The conformance suite accepts all registered oracles and priorities, and rejects faulty ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from onlineauto.automl.config import Config, ConfigKind
from onlineauto.automl.options import AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.oracles.oracle import Oracle, SearchSpace
from onlineauto.automl.priorities import PRIORITIES, Priority
from onlineauto.automl.random_draw import RandomOrder
from onlineauto.options.registry import options_of
from onlineauto.testing import check_oracle, check_priority

pytestmark = pytest.mark.lane("quick")


@pytest.mark.parametrize("name", ORACLES)
def test_oracles(name: str) -> None:
    check_oracle(ORACLES[name])


@pytest.mark.parametrize("name", PRIORITIES)
def test_priorities(name: str) -> None:
    check_priority(PRIORITIES[name])


def test_registered_names_are_the_choices_of_the_command_line() -> None:
    choices = {option.name: option.words for option in options_of(AutomlOptions)}
    assert choices["oracle_type"] == tuple(ORACLES)
    assert choices["priority_type"] == tuple(PRIORITIES)


def oracle(
    propose: Callable[[Config, SearchSpace, RandomOrder], Sequence[Config]],
    oracle_kind: ConfigKind = ConfigKind.EXCLUSION,
) -> Oracle:
    class Proposes(Oracle):
        kind = oracle_kind

        def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:
            return propose(champion, space, draw)

    return Proposes()


def toggles(champion: Config, space: SearchSpace) -> list[Config]:
    return [champion.toggle(each) for each in space.interactions()]


_state: list[Config] = []


def remembers(champion: Config, space: SearchSpace, _: RandomOrder) -> list[Config]:
    _state.append(champion)
    return toggles(champion, space)[len(_state) % 2 :]


def draws_from_elsewhere(champion: Config, space: SearchSpace, draw: RandomOrder) -> list[Config]:
    _state.append(champion)
    draw.state += len(_state) % 2
    return toggles(champion, space)


BAD_ORACLES = {
    "other proposals": oracle(remembers),
    "draw more or less": oracle(draws_from_elsewhere),
    "the champion is proposed": oracle(lambda champion, space, _: [champion, *toggles(champion, space)]),
    "no challenger": oracle(lambda *_: []),
    "not observed": oracle(
        lambda champion, space, _: [champion.toggle((b"x", b"x"))] if space.namespaces else [],
        ConfigKind.INCLUSION,
    ),
    "not ascending, or repeated": oracle(
        lambda _, space, __: [Config(2 * (each,)) for each in space.interactions()]
    ),
    "names not ascending": oracle(
        lambda champion, space, _: [champion.toggle(each[::-1]) for each in space.interactions()]
    ),
    "neither of two nor of three": oracle(
        lambda champion, space, _: [champion.toggle((each,)) for each in space.namespaces]
    ),
    "another kind": oracle(
        lambda _, space, __: [Config((each,), ConfigKind.INCLUSION) for each in space.interactions()]
    ),
    "excludes what is not offered": oracle(
        lambda _, space, __: [Config(((each, each, each),)) for each in space.namespaces]
    ),
}


@pytest.mark.parametrize("reason", BAD_ORACLES)
def test_faulty_oracles_are_rejected(reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        check_oracle(BAD_ORACLES[reason])


def test_interaction_that_the_base_contains_is_accepted() -> None:
    class Twice(Oracle):
        kind = ConfigKind.INCLUSION
        base = (2,)

        def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:  # noqa: ARG002
            return toggles(champion, space)

    with pytest.raises(AssertionError, match="an interaction twice"):
        check_oracle(Twice())


def priority(of: Callable[[Config, Callable[[bytes], int]], float]) -> Priority:
    class Ranks(Priority):
        def of(self, config: Config, count: Callable[[bytes], int]) -> float:
            return of(config, count)

    return Ranks()


_asked: list[Config] = []


def counts_its_calls(config: Config, _: Callable[[bytes], int]) -> float:
    _asked.append(config)
    return float(len(_asked))


BAD_PRIORITIES = {
    "asks for": priority(lambda _, count: float(count(b"a"))),
    "not a finite number": priority(lambda *_: float("nan")),
    "the same arguments": priority(counts_its_calls),
}


@pytest.mark.parametrize("reason", BAD_PRIORITIES)
def test_faulty_priorities_are_rejected(reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        check_priority(BAD_PRIORITIES[reason])
