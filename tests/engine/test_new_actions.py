"""New actions: their first scores, and the bounds of their probabilities until a reward is learnt."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import AutoML, Workspace
from onlineauto.api.decisions.events import Features
from onlineauto.engine.event.new_action_kernels import bound_new, place_new_actions
from onlineauto.explorers.ranking_kernels import PART, ROWS
from tests.naive import new_actions as naive

K = 12
F = np.float32
CONTEXTS = [{"seg": name} for name in "abcd"]

ARTICLES: dict[str, dict[str, dict[str, Any]]] = {
    "ids": {f"a{k}": {"id": f"a{k}"} for k in range(K)},
    "features": {f"a{k}": {"topic": ("sport", "news", "art")[k % 3], "age": k % 5} for k in range(K)},
    "both": {f"a{k}": {"id": f"a{k}", "topic": ("sport", "news", "art")[k % 3]} for k in range(K)},
}
NEW: dict[str, dict[str, Any]] = {
    "ids": {"id": "NEW"},
    "features": {"topic": "food", "age": 3},
    "both": {"id": "NEW", "topic": "sport"},
}


def learnt(kind: str, *, seed: int = 0, visits: int = 3000, **options: Any) -> AutoML:
    """Return a bandit that has learnt visits to twelve articles, clicked with 1 % to 5 %."""
    rnd, bandit, articles = random.Random(seed), AutoML(seed=seed, **options), ARTICLES[kind]
    clicks = {name: rnd.uniform(0.01, 0.05) for name in articles}
    for _ in range(visits):
        choice = bandit.rank(rnd.choice(CONTEXTS), articles)
        bandit.learn(choice, reward=float(rnd.random() < clicks[str(choice.action_id)]))
    return bandit


def shares(bandit: AutoML, articles: Mapping[str, Features]) -> list[dict[str, float]]:
    """Return the probability of each article in each context."""
    return [dict(zip(articles, map(float, bandit.predict(each, articles)), strict=True)) for each in CONTEXTS]


@pytest.mark.parametrize("kind", ARTICLES)
@pytest.mark.parametrize("first", [False, True])
def test_new_action_gets_the_uniform_share_until_its_first_reward_is_learnt(kind: str, first: bool) -> None:
    bandit, new = learnt(kind), {"NEW": NEW[kind]}
    articles = {**new, **ARTICLES[kind]} if first else {**ARTICLES[kind], **new}
    assert [each["NEW"] for each in shares(bandit, articles)] == pytest.approx([1 / 13] * 4)
    waiting = [bandit.rank(CONTEXTS[v % 4], articles) for v in range(200)]
    assert 3 <= sum(choice.action_id == "NEW" for choice in waiting) <= 32  # rewards are late
    assert [each["NEW"] for each in shares(bandit, articles)] == pytest.approx([1 / 13] * 4)
    late = next(choice for choice in waiting if choice.action_id == "NEW")
    bandit.learn(late, reward=0.0)
    assert [each["NEW"] for each in shares(bandit, articles)] != pytest.approx([1 / 13] * 4, rel=1e-3)


@pytest.mark.ci
@pytest.mark.parametrize("kind", ARTICLES)
def test_share_of_a_new_action_is_uniform_with_each_of_twenty_seeds(kind: str) -> None:
    for seed in range(20):
        bandit = learnt(kind, seed=seed, visits=6000)
        found = [each["NEW"] for each in shares(bandit, {**ARTICLES[kind], "NEW": NEW[kind]})]
        assert found == pytest.approx([1 / 13] * 4), seed


def test_action_that_repeats_known_features_in_a_new_combination_is_new() -> None:
    combination = {"topic": "sport", "age": 2}
    assert combination not in ARTICLES["features"].values()
    found = shares(learnt("features"), {**ARTICLES["features"], "NEW": combination})
    assert [each["NEW"] for each in found] == pytest.approx([1 / 13] * 4)


def test_several_new_actions_share_no_more_than_their_uniform_share() -> None:
    new = {f"NEW{i}": {"id": f"NEW{i}", "topic": "news"} for i in range(3)}
    for each in shares(learnt("both"), {**ARTICLES["both"], **new}):
        assert [each[name] for name in new] == pytest.approx([1 / 15] * 3)
        assert sum(each.values()) == pytest.approx(1)


@pytest.mark.parametrize("kind", ARTICLES)
def test_greedy_choices_of_a_batch_never_take_a_new_action(kind: str) -> None:
    bandit, articles = learnt(kind), {"NEW": NEW[kind], **ARTICLES[kind]}
    pmfs = bandit.predict(CONTEXTS * 5, articles)
    assert all(np.argmax(pmf) > 0 for pmf in pmfs)
    assert [bandit.predict(each, articles)[0] for each in CONTEXTS] == [pmf[0] for pmf in pmfs[:4]]


OPTIONS: list[dict[str, Any]] = [
    {"epsilon": 0.1},
    {"live_configs": None, "epsilon": 0.1},
    {"live_configs": None, "explorer": "scaled_squarecb"},
    {"predict_with": "champion"},
    {"explorer": "softmax"},
    {"explorer": "squarecb"},
    {"explorer": "synthcover"},
    {"explorer": "regcb"},
    {"explorer": "epsilon_decay"},
    {"bag": 3},
    {"cover": 3, "epsilon": 0.05},
]


@pytest.mark.ci
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", ARTICLES)
def test_every_explorer_bounds_the_share_of_a_new_action(kind: str, options: dict[str, Any]) -> None:
    bandit = learnt(kind, visits=1500, **options)
    floor = options.get("epsilon", 0.0) / 13
    for each in shares(bandit, {"NEW": NEW[kind], **ARTICLES[kind]}):
        assert floor - 1e-6 <= each["NEW"] <= 1 / 13 + 1e-6
        assert sum(each.values()) == pytest.approx(1)


def _event(shown: Sequence[str], logged: int = -1, cost: float = 0.0) -> str:
    """Return an event in VW text with one action for each id."""
    labels = [f"0:{cost}:{1 / len(shown)} " if k == logged else "" for k in range(len(shown))]
    lines = [f"{label}|a id={name}" for label, name in zip(labels, shown, strict=True)]
    return "\n".join(["shared |u s=x", *lines, "", ""])


def _learnt_log(n: int, sign: int, **options: Any) -> Workspace:
    """Return a model of `n` logged events of four actions, whose costs have one sign."""
    events = [_event("pqrs", v % 4, sign * (2 + v % 4 / 10)) for v in range(n)]
    return Workspace(noconstant=True, **options).fit(["".join(events)])


@pytest.mark.parametrize("sign", [1, -1])  # an action without weights would be the best, or the worst
def test_ranking_puts_a_new_action_between_the_others(sign: int) -> None:
    pmf = _learnt_log(400, sign, cb_explore_adf=True, softmax=True).predict(_event("Npqrs"))
    assert pmf[0] == pytest.approx(1 / 5)
    scores = _learnt_log(400, sign, cb_adf=True).predict(_event("Npqrs"))
    assert min(scores[1:]) < scores[0] < max(scores[1:])


def test_cold_start_scores_actions_without_weights_like_all_others() -> None:
    shares = [
        _learnt_log(n, 1, cb_explore_adf=True, epsilon=0.1).predict(_event("Npqrs"))[0] for n in (49, 50)
    ]
    assert shares == pytest.approx([0.92, 0.02])


def test_event_of_new_actions_only_is_predicted_like_by_an_empty_model() -> None:
    workspace = _learnt_log(400, 1, cb_explore_adf=True, epsilon=0.1)
    assert workspace.predict(_event("KLMN")) == pytest.approx([0.25] * 4)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_kernels_agree_with_their_reference(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 40))
    score = data.draw(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 3.0]), min_size=n, max_size=n))
    part = data.draw(st.lists(st.sampled_from([0.0, 0.5, 0.75, 0.8, 1.0]), min_size=n - 1, max_size=n - 1))
    scores, parts, tries = [F(x) for x in score], [F(x) for x in [*part, 1.0]], data.draw(st.booleans())
    new = naive.is_new(parts, 10 * n)
    order = np.lexsort((np.arange(n), scores)).astype(np.int32)
    ranked, scratch = np.array(scores, F)[order], np.zeros((ROWS, n), F)
    scratch[PART] = parts
    place_new_actions(order, ranked, scratch, tries)
    expected = naive.placed(scores, parts, new, tries=tries)
    assert list(ranked) == [expected[action] for action in order] == sorted(expected)
    assert not new[order[0]]
    pmf = np.array(data.draw(st.lists(st.floats(0.0625, 1, width=32), min_size=n, max_size=n)), F)
    pmf /= pmf.sum()
    by_action = np.empty(n, F)
    by_action[order] = pmf
    bounds, places = naive.bounded(list(by_action), new, [int(action) for action in order])
    bound_new(order, pmf, scratch)
    assert [int(action) for action in order] == places
    assert list(pmf) == [bounds[action] for action in places]
