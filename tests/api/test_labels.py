"""The labels of AutoMLClassifier: how many there may be, and which of them are one class."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoMLClassifier, InputError, OptionError
from tests.api.events import saved

SMALL: dict[str, Any] = {"live_configs": 1, "hash_bits": 8}


def one_by_one(model: AutoMLClassifier, labels: list[Any], tmp_path: Path) -> None:
    del tmp_path
    for number, label in enumerate(labels):
        model.learn({"x": number % 7}, label)


def in_a_list(model: AutoMLClassifier, labels: list[Any], tmp_path: Path) -> None:
    del tmp_path
    model.fit([({"x": number % 7}, label) for number, label in enumerate(labels)])


def in_a_file(model: AutoMLClassifier, labels: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_text("".join(f"{label} |a x:{number % 7}\n" for number, label in enumerate(labels)))
    model.fit(path)


@pytest.mark.parametrize("learn", [one_by_one, in_a_list, in_a_file])
def test_more_than_100_classes_are_rejected_and_the_model_stays_usable(
    learn: Callable[[AutoMLClassifier, list[Any], Path], None], tmp_path: Path
) -> None:
    model = AutoMLClassifier(**SMALL)
    with pytest.raises(InputError, match=r"label 1100 would be class 101, but max_labels is 100: .*merge"):
        learn(model, [*range(1000, 1100), 1000, 1100, 1001, *range(1101, 1200)], tmp_path)
    assert model.labels == list(range(1000, 1100))
    assert model.events == 101
    loaded = AutoMLClassifier.load(saved(model))
    assert loaded.predict_proba({"x": 1}) == model.predict_proba({"x": 1})
    loaded.learn({"x": 1}, 1099)
    with pytest.raises(InputError, match="the label 7 would be class 101"):
        loaded.learn({"x": 1}, 7)
    loaded.max_labels = 101
    loaded.learn({"x": 1}, 7)
    assert len(loaded.labels) == 101


def test_the_event_of_a_label_beyond_the_limit_is_located() -> None:
    model = AutoMLClassifier(max_labels=2, **SMALL)
    with pytest.raises(InputError, match=r"^event 3: the label 'c' would be class 3, but max_labels is 2"):
        model.fit([({"x": 1}, "a"), ({"x": 1}, "b"), ({"x": 1}, "a"), ({"x": 1}, "c"), ({"x": 1}, "a")])
    assert model.events == 3


@pytest.mark.parametrize("limit", [0, 1, -1, 2.5, "9", None, float("nan"), True], ids=repr)
def test_invalid_limits_of_labels_are_rejected(limit: Any) -> None:
    with pytest.raises(OptionError, match="max_labels cannot be "):
        AutoMLClassifier(max_labels=limit)


def test_equal_labels_are_one_class_named_by_the_first() -> None:
    model = AutoMLClassifier(**SMALL)
    one_by_one(model, [True, 1, 1.0, np.int8(1), np.True_, Decimal(1), "1", 0, False, -0.0], Path())
    assert [(type(label), label) for label in model.labels] == [(bool, True), (str, "1"), (int, 0)]
    loaded = AutoMLClassifier.load(saved(model))
    assert list(map(type, loaded.labels)) == [bool, str, int]
    in_a_list(loaded, [1, 0.0, "1", np.float32(1)], Path())
    assert len(loaded.labels) == 3
