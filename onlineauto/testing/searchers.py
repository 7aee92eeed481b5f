"""The conformance suite of searchers."""

from __future__ import annotations

import json
from itertools import product
from math import inf
from random import Random
from typing import TYPE_CHECKING

from onlineauto.tune.spaces import Categorical, Float, Int, Space

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.tune.searchers import Searcher

_SPACES = (
    Space({"x": Float(-1, 1)}),
    Space({"one": Categorical(["only"]), "n": Int(3, 3)}),
    Space(
        {
            "rate": Float(1e-6, 1e3, log=True),
            "n": Int(1, 1000, log=True),
            "yes": Categorical([False, True]),
            "loss": Categorical(["a", "b", "c", None]),
            "margin": Float(0, 1, when={"loss": ["a", "b"], "yes": True}),
            "steps": Int(0, 3, when={"margin": [0.0]}),
        }
    ),
)
_CONFIGS = 60


def check_searcher(make: Callable[[], Searcher]) -> None:
    """Check a searcher against the requirements of a study, in several spaces.

    Configs are in the space. An enqueued config comes first. The same calls give the same configs, also after
    the state was written as JSON and loaded into a new object. A searcher that repeats the proposals of
    another one then has the same state. The limit on trials is not exceeded. After the last config there are
    no more.

    Parameters
    ----------
    make : callable
        Returns a new searcher without a study, registered or not.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the space.

    Examples
    --------
    >>> from onlineauto.tune import SEARCHERS
    >>> check_searcher(SEARCHERS["random"])
    """
    for space, seed in product(_SPACES, (0, 2**63)):
        where = f"{make().name}, seed {seed}, space {space.described()}"
        _check(make, space, seed, where)


def _check(make: Callable[[], Searcher], space: Space, seed: int, where: str) -> None:
    def make_searcher() -> Searcher:
        searcher = make()
        searcher.begin(space, seed=seed)
        searcher.limit = _CONFIGS
        return searcher

    random = Random(seed)
    first, second, repeating = make_searcher(), make_searcher(), make_searcher()
    enqueued = space.decode([0.25] * space.width)
    for each in (first, second, repeating):
        each.enqueue(enqueued)
    ended = False
    for number in range(_CONFIGS + 2):
        config = first.ask()
        _require(config == second.ask(), f"the same calls give other configs: {where}")
        with repeating.repeating(config):
            _require(repeating.ask() == config, f"does not repeat a config: {where}")
        _require(first.state_dict() == repeating.state_dict(), f"repeating leads to another state: {where}")
        _require(
            number > 0 or config == enqueued, f"the config that was enqueued does not come first: {where}"
        )
        _require(config is None or not ended, f"proposes a config after it had no more: {where}")
        if config is None:
            ended = True
            continue
        _require(space.check(config) == config, f"the names of a config are not in order: {config}; {where}")
        kind, loss = random.random(), random.choice([random.random(), 0.5, inf, -inf])
        for each in (first, second, repeating):
            if kind < 0.2:
                each.on_error(config)
            elif kind < 0.9:
                each.on_result(config, 1, loss)
                each.on_result(config, 3, loss / 2)
        if random.random() < 0.2:
            first = _restored_copy(make_searcher(), first, where)
    _require(ended, f"there are more configs than the limit of {_CONFIGS}: {where}")


def _restored_copy(fresh: Searcher, old: Searcher, where: str) -> Searcher:
    written = json.dumps(old.state_dict())
    fresh.load_state_dict(json.loads(written))
    _require(json.dumps(fresh.state_dict()) == written, f"the state is another one after loading: {where}")
    return fresh


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
