"""The laws of the price, with a model that knows all rewards, and a plain copy of the controller."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from onlineauto.service.join.pacing import Pacing

pytestmark = pytest.mark.lane("quick")

COSTS = [0.1, 1.0, 6.0]


def decide(pacing: Pacing, costs: list[float], action: int, budget: float) -> None:
    pacing.pay(costs[action])
    pacing.follow(costs[action], spread=max(costs) - min(costs), budget=budget)


def spend(
    budget: float,
    *,
    seed: int = 1,
    decisions: int = 12_000,
    scale: float = 1.0,
    costs: list[float] = COSTS,
    late: bool = False,
) -> tuple[Pacing, np.ndarray, np.ndarray]:
    """Return a pacing after a stationary stream, with the costs of its decisions and its prices.

    Each decision has known rewards; the action with the best reward less its price is chosen, except that
    one decision in 50 is random. With `late`, costs are not declared, but reported after the decision.
    """
    random, pacing, ids = (
        np.random.default_rng(seed),
        Pacing(),
        [f"a{number}" for number in range(len(costs))],
    )
    rewards = scale * (np.linspace(0.5, 0.8, len(costs)) + 0.1 * random.normal(size=(decisions, len(costs))))
    factors = random.lognormal(0.0, 0.5, size=decisions) / np.exp(0.125)
    spent, prices = np.empty(decisions), np.empty(decisions)
    for number in range(decisions):
        actual = factors[number] * np.array(costs)
        known = [pacing.mean_of(name, budget) for name in ids] if late else actual.tolist()
        prices[number] = pacing.price
        action = int((rewards[number] - prices[number] * np.array(known)).argmax())
        if random.random() < 0.02:
            action = int(random.integers(len(costs)))
        decide(pacing, known, action, budget)
        spent[number] = paid = float(actual[action])
        if late:
            pacing.report(ids[action], paid, known[action], budget=budget)
        pacing.reward(float(rewards[number, action]))
    return pacing, spent, prices


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("scale", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("budget", [0.4, 1.0, 3.0])
def test_spending_converges_to_the_budget(budget: float, scale: float, late: bool) -> None:
    pacing, spent, prices = spend(budget, scale=scale, late=late)
    assert spent.mean() == pytest.approx(budget, rel=0.01)
    assert pacing.mean_cost == pytest.approx(spent.mean())
    assert pacing.costed == len(spent)
    assert prices.min() >= 0.0
    assert prices[-6000:].std() < 0.8 * prices[-6000:].mean()


def test_a_budget_that_allows_every_action_has_no_price() -> None:
    random, pacing = np.random.default_rng(2), Pacing()
    for _ in range(3000):
        decide(pacing, COSTS, int(random.integers(3)), 6.0)
        pacing.reward(float(random.random()))
        assert pacing.price == 0.0


def test_the_price_is_bounded_where_no_action_is_within_the_budget() -> None:
    pacing = Pacing()
    prices = []
    for _ in range(5000):
        decide(pacing, COSTS, 0, 0.05)
        prices.append(pacing.price)
    assert prices == sorted(prices)
    assert prices[-1] == pytest.approx(1000.0 / 5.9)
    for _ in range(3000):
        decide(pacing, [0.0, 0.1], 0, 0.05)
    assert pacing.price == 0.0


def test_the_price_is_the_one_of_the_plain_controller() -> None:
    """The formulas of the documentation, written down once more without bounds of debts."""
    budget, random, pacing = 2.0, np.random.default_rng(4), Pacing()
    level, spreads, squares, spent = 0.0, list[float](), list[float](), 0.0
    for number in range(1, 180):
        costs = (random.random(3) * np.array([1.0, 2.0, 8.0])).tolist()
        action, reward = int(random.integers(3)), float(random.normal())
        decide(pacing, costs, action, budget)
        pacing.reward(reward)
        spent += costs[action]
        spreads.append(max(costs) - min(costs))
        squares.append(reward**2)
        over = (spent / budget - number) / (number + 100)
        level = max(level + 0.03 * over * max(level, 1.0), 0.0)
        relative = max(level + 10.0 * over * max(level, 1.0), 0.0)
        assert pacing.price == pytest.approx(relative * np.mean(squares) ** 0.5 / np.mean(spreads), abs=1e-12)


@pytest.mark.parametrize("late", [False, True])
def test_one_absurd_cost_does_not_switch_the_budget_off(late: bool) -> None:
    pacing, _, _ = spend(1.0, decisions=2000, late=late)
    before = pacing.price
    if late:
        pacing.report("a1", 1e6, 1.0, budget=1.0)
        assert pacing.mean_of("a1", 1.0) < 2.0
        assert pacing.reports.mean < 2.0
    else:
        decide(pacing, [0.1, 1.0, 1e6], 0, 1.0)
    assert pacing.price > 0.5 * before
    assert pacing.clipped == 1


def test_a_mean_of_zeros_can_rise() -> None:
    pacing = Pacing()
    pacing.report("a", 0.0, None, budget=None)
    pacing.report("a", 4.0, None, budget=None)
    assert pacing.reports.mean == 2.0


def test_decisions_of_others_are_counted_and_do_not_move_the_price() -> None:
    pacing = Pacing()
    for _ in range(10):
        pacing.pay(6.0)
    pacing.report("a", 9.0, 6.0, budget=None)
    assert (pacing.price, pacing.debt, pacing.costed, pacing.spent) == (0.0, 0.0, 10, 63.0)


def test_means_of_actions_are_shrunk_and_forget_the_ones_reported_longest_ago() -> None:
    pacing = Pacing()
    assert pacing.mean_of("a", 2.0) == 2.0
    for _ in range(8):
        pacing.report("a", 1.0, None, budget=1.0)
    pacing.report("b", 10.0, None, budget=1.0)
    means = [pacing.mean_of(name, 5.0) for name in ("a", "b", "new")]
    assert means == pytest.approx([1.2, 14.0 / 3.0, 2.0])
    for number in range(1023):
        pacing.report(f"n{number}", 1.0, None, budget=1.0)
    assert len(pacing.by_action) == 1024
    assert "a" not in pacing.by_action
    assert "b" in pacing.by_action


def test_the_state_is_restored() -> None:
    pacing, _, _ = spend(1.0, decisions=500, late=True)
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(msgspec.to_builtins(pacing, str_keys=True)))
    again = msgspec.convert(stored, Pacing, strict=False)
    assert again == pacing
    assert again.price == pacing.price
    for each in (again, pacing):
        decide(each, COSTS, 2, 1.0)
    assert again == pacing
