"""`ChampionTest`, the Python object, and its conformance suite."""

from __future__ import annotations

import math

import pytest

from onlineauto.errors import InputError, OptionError
from onlineauto.estimators.paired import ChampionTest
from onlineauto.testing import check_estimator
from tests.naive.champion_test import ChampionTest as Twin

pytestmark = pytest.mark.lane("ci")


def test_fresh_tests_prove_nothing() -> None:
    fresh = ChampionTest()
    assert (fresh.better, fresh.worse, fresh.evidence) == (False, False, (1.0, 1.0))
    assert fresh.difference == fresh.champion == (-math.inf, math.inf)
    assert (fresh.updates, fresh.outside) == (0, 0)


@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_evidence_equals_the_reference(floor: float) -> None:
    actual, reference = ChampionTest(floor=floor), Twin(floor)
    for i in range(200):
        logged, p, r = i % 3, (0.5, 0.3, 0.2)[i % 3], i % 7 / 6
        actual.update(1, 0, logged=logged, p=p, reward=r)
        actual.update(0, 0, logged=logged, p=p, reward=r)
        reference.update((logged == 1) / p, (logged == 0) / p, r)
    assert actual.evidence == pytest.approx(reference.evidence())
    assert actual.updates == 400


def test_good_predictions_need_fewer_events() -> None:
    plain, predicted = ChampionTest(floor=0.5), ChampionTest(floor=0.5)
    for i in range(300):
        logged, easy = i % 2, i % 4 < 2
        reward = 0.5 * easy + 0.1 * logged
        plain.update(1, 0, logged=logged, p=0.5, reward=reward)
        predicted.update(1, 0, logged=logged, p=0.5, reward=reward, predicted=(0.5 * easy, 0.5 * easy))
    assert predicted.better
    assert predicted.evidence[0] > 50 * plain.evidence[0]
    assert plain.difference[0] < predicted.difference[0] < 0.1 < predicted.difference[1] < plain.difference[1]


def test_differences() -> None:
    test = ChampionTest()
    for i in range(300):
        test.update_difference(0.3 if i % 3 else -0.2, 1.0)
    assert test.better
    low, high = test.difference
    assert 0 < low < 0.4 / 3 < high


def test_later_tests_need_more_evidence() -> None:
    first, later = ChampionTest(k=1), ChampionTest(k=20)
    while not first.better:
        first.update_difference(0.5, 1.0)
        later.update_difference(0.5, 1.0)
    assert not later.better


def test_rewards_out_of_range_are_counted() -> None:
    test = ChampionTest(floor=0.2)
    for reward, p in ((0.5, 0.5), (2.0, 0.5), (2.0, 0.5), (-1.0, 0.1), (0.0, 0.15)):
        test.update(1, 0, logged=1, p=p, reward=reward)
    assert test.outside == 2


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0.0}, {"alpha": math.nan}, {"k": 0}, {"floor": -0.1}, {"floor": 1.1}, {"low": 1.0}],
    ids=str,
)
def test_options_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        ChampionTest(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("p", "reward"), [(0.0, 1.0), (1.1, 1.0), (math.nan, 1.0), (0.5, math.inf)])
def test_rejected_events_change_nothing(p: float, reward: float) -> None:
    test = ChampionTest()
    with pytest.raises(InputError):
        test.update(1, 0, logged=1, p=p, reward=reward)
    with pytest.raises(InputError):
        test.update_difference(reward, 0.0)
    assert test.updates == 0


def test_conformance() -> None:
    check_estimator(lambda alpha, floor: ChampionTest(alpha, floor=floor))
    check_estimator(lambda alpha, _: ChampionTest(alpha), streams=30)


@pytest.mark.slow
def test_conformance_in_full() -> None:
    check_estimator(lambda alpha, floor: ChampionTest(alpha, floor=floor), streams=2000, events=4000)


class Other:
    """A test without guarantees: better if the mean difference is above two standard errors."""

    def __init__(self) -> None:
        self.n, self.total, self.squares = 0, 0.0, 0.0

    def add(self, d: float) -> None:
        self.n += 1
        self.total += d
        self.squares += d * d

    def update(self, challenger: int, champion: int, *, logged: int, p: float, reward: float) -> None:
        if challenger != champion:
            self.add(((logged == challenger) - (logged == champion)) / p * reward)

    @property
    def better(self) -> bool:
        return self.n > 20 and self.total > 2 * math.sqrt(self.squares)

    @property
    def worse(self) -> bool:
        return self.n > 20 and self.total < -2 * math.sqrt(self.squares)


class Learnt(Other):
    """A test whose stakes follow the last differences."""

    wealth, mean = 1.0, 0.0

    def add(self, d: float) -> None:
        self.wealth *= 1 + max(self.mean, 0.0) * d
        self.mean = 0.9 * self.mean + 0.1 * min(max(d, -1), 1) * 0.4

    @property
    def better(self) -> bool:
        return self.wealth >= 20

    @property
    def worse(self) -> bool:
        return False


class Unmatched(Other):
    """A test that compares rewards of differing events with those of all events."""

    earned = 0.0

    def update(self, challenger: int, champion: int, *, logged: int, p: float, reward: float) -> None:
        if logged == champion:
            self.total += reward
            self.squares += float(p > 0)
        elif challenger != champion:
            self.earned += reward
            self.n += 1

    @property
    def better(self) -> bool:
        gap = self.earned / max(self.n, 1) - self.total / max(self.squares, 1)
        return self.n > 20 and gap > 4 / math.sqrt(self.n)

    @property
    def worse(self) -> bool:
        return False


class Silent(Other):
    """A test that never proves anything."""

    better = worse = False


@pytest.mark.parametrize(
    ("other", "message"),
    [(Other, "two equals"), (Learnt, "alternate"), (Unmatched, "rise"), (Silent, "a gain of 0.8")],
)
def test_faulty_tests_do_not_conform(other: type[Other], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_estimator(lambda *_: other(), streams=40)
