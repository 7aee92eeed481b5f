"""Weights of the live configs in VW's simulator: the numbers of its unit tests."""

from __future__ import annotations

import pytest

from tests.automl_simulator.scenarios import BASE, POPULAR, WEIGHTS, Life, lived
from tests.naive.hashing import hash_name
from tests.parity.result import Weights

FNV = 16777619
SEARCH = f"{BASE} --automl 4 {POPULAR} --default_lease 10"
TOLERANCE = 0.001
"""That of VW's tests: their numbers come from a build with other square roots than the package's."""


def _feature(namespace: str, feature: str) -> int:
    return hash_name(feature.encode(), hash_name(namespace.encode(), 0))


def _weights(weights: Weights, *features: int, lanes: int) -> list[float]:
    """Weights of a feature, or of the product of two, in every lane."""
    first, *rest = features
    for feature in rest:
        first = (first * FNV) ^ feature
    cells, found = 2**18 // lanes, weights.as_dict()
    return [found.get(first % cells * lanes + lane, (0.0,))[0] for lane in range(lanes)]


def _rows(weights: Weights, *, lanes: int) -> list[tuple[float, ...]]:
    """Cells of the champion whose weight is not 0, in an order that does not depend on where they are."""
    rows = weights.values[weights.index % lanes == 0]
    return sorted(tuple(row) for row in rows[rows[:, 0] != 0].tolist())


def _end(life: Life) -> Weights:
    return lived(life)[1][life.events[-1]].weights


def test_weights_after_1331_events() -> None:
    weights = lived(WEIGHTS)[1][1331].weights
    sports, anna = _feature("Action", "article=sports"), _feature("User", "user=Anna")
    champion, second, third, unused = _weights(weights, sports, sports, lanes=4)
    assert champion == pytest.approx(0.0259284, abs=TOLERANCE)
    assert second == pytest.approx(0.00720719, abs=TOLERANCE)
    assert third == pytest.approx(-0.0374119, abs=TOLERANCE)
    assert unused == 0
    for article in ("article=music", "article=politics"):
        assert all(_weights(weights, _feature("Action", article), lanes=4)[:3])
    assert all(_weights(weights, anna, lanes=4)[:3])
    assert all(_weights(weights, sports, anna, lanes=4)[:3])
    assert not any(_weights(weights, anna, sports, lanes=4))


def test_the_order_of_learning_makes_no_difference() -> None:
    one, other = (Life(flags=f"{SEARCH} {flag}", events=(2000,)) for flag in ("", "--debug_reversed_learn"))
    assert lived(one)[0] == lived(other)[0]
    assert _end(one).as_dict() == _end(other).as_dict()
    assert _end(one).as_dict()


@pytest.mark.parametrize(
    ("interactions", "flags", "events", "n_weights", "named"),
    [
        ("-q ::", "", 1700, 31, True),
        ("-q ::", "", 1700, 31, False),
        ("--cubic :::", "--interaction_type cubic", 10, 38, False),
    ],
    ids=["named", "quadratic", "cubic"],
)
def test_the_champion_is_the_model_without_a_search(
    interactions: str, flags: str, events: int, n_weights: int, *, named: bool
) -> None:
    searched = Life(flags=f"{SEARCH} -b 20 {flags}", events=(events,), named_actions=named)
    plain = Life(flags=f"{BASE} -b 18 {interactions}", events=(events,), named_actions=named)
    assert lived(searched)[1][events].switches == 0
    assert lived(searched)[0] == lived(plain)[0]
    assert len(_rows(_end(plain), lanes=1)) == n_weights
    assert _rows(_end(searched), lanes=4) == _rows(_end(plain), lanes=1)


def test_a_search_of_one_slot_is_the_model_of_all_pairs() -> None:
    searched = Life(flags=f"{BASE} --automl 1 --default_lease 10", events=(1000,), seed=88)
    plain = Life(flags=f"{BASE} -q ::", events=(1000,), seed=88)
    assert lived(searched)[0] == lived(plain)[0]
    assert _end(searched).as_dict() == _end(plain).as_dict()


@pytest.mark.parametrize("events", [500, 1742])
def test_the_champions_double_learns_the_same(events: int) -> None:
    life = Life(flags=f"{SEARCH} --oracle_type champdupe -b 8", events=(500, 1742))
    found = lived(life)[1][events].weights.as_dict()
    champion = {cell for cell in found if cell % 4 == 0}
    assert champion
    assert {cell - 1 for cell in found if cell % 4 == 1} == champion
    for cell in champion:
        assert found[cell + 1] == pytest.approx(found[cell], abs=TOLERANCE)
