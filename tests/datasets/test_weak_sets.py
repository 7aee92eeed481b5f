"""Sets with little signal: what is made of small sources, and what the generators promise."""

from __future__ import annotations

import numpy as np
import pytest

from datasets import sources, weak_sets
from datasets.weak_sets import COMMITTED, WEAK_SETS

REAL = (*COMMITTED, "swissmetro")


def test_prompts_become_vectors_without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    arms = {"a/small": {"reward": 0.4}, "b/large": {"reward": 1.0}}
    prompts = [{"prompt": text, "arms": arms} for text in ("What is 2 + 2?", "Why", "why why", "")]
    monkeypatch.setattr(sources, "pareto_bandit", lambda: prompts)
    data = weak_sets.route()
    assert data.rewards.tolist() == [[0.4, 1.0]] * 4
    assert data.actions_of(0) == ["|Z small", "|Z large"]
    vectors = [[float(word[1:]) for word in context.split("|v ")[1].split()] for context in data.contexts]
    assert all(len(vector) == 64 for vector in vectors)
    assert sorted(round(sum(x * x for x in vector)) for vector in vectors) == [0, 1, 1, 1]
    assert sum(vector == [*vectors[0]] for vector in vectors) <= 2


def test_headlines_of_a_test_are_merged_by_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def package(test: str, headline: str, clicks: int) -> dict[str, str]:
        return {
            "clickability_test_id": test,
            "headline": headline,
            "impressions": "1000",
            "clicks": str(clicks),
            "test_week": "201446",
        }

    texts = ["One", "one", "Two?", "Three 3", "Four"]
    rows = [package("t", text, clicks) for text, clicks in zip(texts, (10, 30, 40, 5, 0), strict=True)]
    monkeypatch.setattr(sources, "upworthy", lambda: [*rows, package("u", "Alone", 9)])
    data = weak_sets.headlines()
    assert data.contexts == ["|w w46"]
    assert sorted(data.rewards[0].tolist()) == [0, 0.125, 0.5, 1]
    assert sorted(line.split("len:")[1] for line in data.actions_of(0)) == ["1", "1", "2", "2"]


def test_travellers_without_a_car_or_choice_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["PURPOSE", "WHO", "LUGGAGE", "AGE", "INCOME", "GA", "FIRST", "ORIGIN", "DEST"]
    names += [f"{mode}_{name}" for mode in ("TRAIN", "SM", "CAR") for name in ("TT", "CO", "HE")]
    row = dict.fromkeys(names, "50")
    rows = [row | {"CHOICE": choice, "CAR_AV": car} for choice, car in (("2", "1"), ("0", "1"), ("1", "0"))]
    monkeypatch.setattr(sources, "swissmetro", lambda: rows)
    data = weak_sets.swissmetro()
    assert data.rewards.tolist() == [[0, 1, 0]]
    assert data.actions_of(0)[2] == "|Z CAR |c TT:0.5 CO:0.5"


@pytest.mark.parametrize("name", [name for name in WEAK_SETS if name not in REAL])
def test_generated_sets_are_whole(name: str) -> None:
    data = WEAK_SETS[name]()
    assert len(data.contexts) == len(data.rewards) == data.kept
    assert len(data.actions_of(0)) == data.rewards.shape[1]
    assert 0 <= data.rewards.min() < data.rewards.max() == 1
    means = data.rewards.mean(axis=0)
    assert np.ptp(means) < 0.25
    if name == "null":
        assert np.ptp(means) < 5 * np.sqrt(0.21 / data.kept)
    if name == "clicks":
        assert means.argmax() == 0
