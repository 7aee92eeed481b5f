"""The ensemble of AutoMLClassifier, which learns all classes at once."""

import io
import math
import random
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoMLClassifier, InputError, OptionError
from onlineauto.engine.ensemble.class_ensemble import ClassEnsemble, rows_of
from onlineauto.engine.ensemble.class_kernels import Lately
from onlineauto.engine.ensemble.member import Sizes
from onlineauto.engine.ensemble.members.features import UNSURE
from onlineauto.engine.ensemble.registry import DEFAULT
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.interop.dicts import from_dicts
from onlineauto.state.stored import Stored
from onlineauto.workspace.options import REGISTRY
from tests.engine.ensemble_streams import make_class_ensemble


def crossed(n: int, seed: int = 0) -> list[tuple[dict[str, Any], int]]:
    """Return events whose class is decided by two words together, and a number of no use."""
    draw, events = random.Random(seed), []
    for _ in range(n):
        one, other = draw.randrange(3), draw.randrange(3)
        events.append(({"a": "xyz"[one], "b": "pqr"[other], "noise": draw.random()}, (one + other) % 3))
    return events


def reloaded(model: AutoMLClassifier) -> AutoMLClassifier:
    file = io.BytesIO()
    model.save(file)
    return AutoMLClassifier.load(file.getvalue())


def test_pairs_of_words_decide_the_class() -> None:
    model, right = AutoMLClassifier(), 0
    for number, (features, label) in enumerate(crossed(800)):
        right += number >= 400 and model.predict(features) == label
        model.learn(features, label)
    assert right > 380


def test_waves_separate_rings() -> None:
    draw, model, right = random.Random(1), AutoMLClassifier(live_configs=None), 0
    for number in range(1200):
        x, y = draw.gauss(0, 1), draw.gauss(0, 1)
        label = int(x * x + y * y > 0.6) + int(x * x + y * y > 2)
        right += number >= 800 and model.predict({"x": x, "y": y}) == label
        model.learn({"x": x, "y": y}, label)
    assert right > 330


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_loaded_model_continues_exactly(n_classes: int) -> None:
    events = [(features, label % n_classes) for features, label in crossed(300)]
    model = AutoMLClassifier(hash_bits=10).fit(events[:200])
    loaded = reloaded(model)
    for features, label in events[200:]:
        assert loaded.predict_proba(features) == model.predict_proba(features)
        model.learn(features, label)
        loaded.learn(features, label)
    assert loaded.average_loss == model.average_loss


def stepped(n: int, seed: int = 0) -> list[tuple[dict[str, Any], str]]:
    """Return events whose class is decided by two numbers, each with a threshold, and by a word."""
    draw, events = random.Random(seed), []
    for _ in range(n):
        x, y, word = draw.gauss(0, 1), draw.gauss(0, 1), draw.choice("ab")
        label = "yes" if (x > 0.5) == (y > -0.3) and (word == "a" or x > 1) else "no"
        events.append(({"x": x, "y": y, "word": word}, label))
    return events


def test_trees_find_thresholds() -> None:
    right = {True: 0, False: 0}
    for trees in right:
        model = AutoMLClassifier(live_configs=None, hash_bits=10, trees=trees).fit(stepped(1300))
        asked = stepped(500, seed=1)
        found = model.predict([features for features, _ in asked])
        right[trees] = sum(one == label for one, (_, label) in zip(found, asked, strict=True))
    assert right[True] > right[False] + 10
    assert right[True] > 475


@pytest.mark.parametrize("trees", [True, False])
def test_a_model_saved_while_trees_grow_continues_to_the_same_bytes(trees: bool) -> None:
    events = stepped(620)
    model = AutoMLClassifier(live_configs=None, hash_bits=10, trees=trees).fit(events[:530])
    models = [model, reloaded(model)]
    files = []
    for each in models:
        for features, label in events[530:]:
            each.learn(features, label)
        file = io.BytesIO()
        each.save(file)
        files.append(file.getvalue())
    assert files[0] == files[1]


def test_events_together_are_learnt_like_one_by_one() -> None:
    events, one = crossed(400), AutoMLClassifier(hash_bits=10)
    for features, label in events:
        one.learn(features, label)
    many = AutoMLClassifier(hash_bits=10).fit(events)
    asked = [features for features, _ in events[:20]]
    assert many.predict_proba(asked) == pytest.approx(one.predict_proba(asked), abs=0.1)
    each = np.array([list(many.predict_proba(row).values()) for row in asked])
    assert many.predict_proba(asked) == pytest.approx(each, abs=1e-6)


def test_one_event_is_predicted_and_learnt_like_many() -> None:
    events = [
        ({**features, "x bins": f"b{at % 4}"}, label) for at, (features, label) in enumerate(stepped(400))
    ]
    events[50] = {**events[50][0], **{f"word {at}": "a" for at in range(90)}}, "yes"
    [block] = from_dicts([{"context": features, "label": 0} for features, _ in events])
    block.lines["weight"][:-1] = np.resize([1.0, 0.5, 3.0], 400)
    codes = [int(label == "yes") for _, label in events]
    many, one = (make_class_ensemble(10) for _ in range(2))
    for each in (many, one):
        each.add_class()
        each.add_class()
    together = many.run(block, codes)
    apart = [one.run(block.tail(at).head(1), codes[at : at + 1])[0] for at in range(400)]
    assert together.tolist() == np.array(apart).tolist()
    assert many.state()["mix"].tolist() == one.state()["mix"].tolist()


@pytest.mark.parametrize(
    ("members", "names"),
    [
        ("trees,features", ["features", "trees"]),
        ("logistic", ["logistic"]),
        (DEFAULT, ["features", "waves", "trees", "logistic"]),
    ],
)
def test_members_are_those_of_the_option_that_serve_classes(members: str, names: list[str]) -> None:
    model = AutoMLClassifier(members=members, hash_bits=10).fit(crossed(40))
    assert list(model._ensemble.state()["members"]) == names
    loaded, event = reloaded(model), {"a": "x", "b": "p"}
    assert loaded.predict_proba(event) == model.predict_proba(event)


@pytest.mark.parametrize(
    ("members", "trees", "message"),
    [
        ("baseline", True, "cannot have baseline for classes; .* are features, waves, trees, logistic"),
        ("features,layer", True, "cannot have layer for classes"),
        ("none", True, "leaves no member of classes: name some of features, waves, trees, logistic"),
        ("trees", False, "trees and trees = False leaves .* name some of features, waves, logistic"),
    ],
)
def test_a_classifier_rejects_members_that_do_not_serve_classes(
    members: str, trees: bool, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        AutoMLClassifier(members=members, trees=trees)


def test_names_are_compared_again_once_the_model_has_new_ones() -> None:
    model = AutoMLClassifier().fit(crossed(50))
    row = {"a": "x", "b": "p"}
    model.predict_proba(row)
    model.workspace.follow_names(NameHashes().of_columns({"late^late"}).rules)
    with pytest.raises(InputError, match="column 'late' has names in the model"):
        model.predict_proba(row)


def test_a_weight_of_0_teaches_nothing() -> None:
    model = AutoMLClassifier().fit(crossed(50))
    before = model.predict_proba({"a": "x", "b": "p"})
    model.learn({"a": "x", "b": "p"}, 2, weight=0)
    assert model.predict_proba({"a": "x", "b": "p"}) == pytest.approx(before)


def test_the_linear_member_is_the_solution_of_least_squares() -> None:
    draw = random.Random(4)
    rows = [{"a": {"u": 1, draw.choice("xyz"): 1}, "b": draw.choice("pq")} for _ in range(300)]
    codes = [draw.randrange(3) for _ in rows]
    [block] = from_dicts([{"context": row, "label": 0} for row in rows])
    ensemble = make_class_ensemble(8)
    for _ in range(3):
        ensemble.add_class()
    ensemble.run(block, codes)
    state, features = ensemble.state(), rows_of(block)
    inputs = {key: at for at, key in enumerate(state["keys"].tolist(), 1)}
    matrix = np.zeros((len(rows), len(inputs) + 1))
    matrix[:, 0] = 1.0
    for event in range(len(rows)):
        for at in range(features.start[event], features.start[event + 1]):
            matrix[event, inputs[int(features.hash[at]) + 1]] = features.value[at]
    information = matrix.T @ matrix + np.eye(matrix.shape[1]) / UNSURE
    weights = np.linalg.solve(information, matrix.T @ np.eye(3)[codes])
    assert pytest.approx(weights, abs=1e-3) == state["members"]["features"]["weights"].T


def test_a_forged_state_is_refused() -> None:
    ensemble = make_class_ensemble(4, searched=True)
    ensemble.add_class()
    state, features = ensemble.state(), ensemble.state()["members"]["features"]
    sizes = Sizes(REGISTRY.from_keywords(), cells=1 << 4)
    restored = ClassEnsemble.restored(Stored(state), 1, sizes)
    np.testing.assert_equal(restored.state(), state)
    forged = {
        "positive definite": {"fisher": -state["fisher"]},
        "members.features.weights": {"members": state["members"] | {"features": features | {"weights": 3}}},
        "later onlineauto": {"version": 3},
        "different features": {"keys": np.ones(2, np.uint64), "number": np.full(3, -1)},
    }
    for message, changes in forged.items():
        with pytest.raises(ValueError, match=message):
            ClassEnsemble.restored(Stored(state | changes), 1, sizes)


def test_a_model_that_learnt_huge_weights_can_be_loaded() -> None:
    model, draw = AutoMLClassifier(hash_bits=8), np.random.default_rng(3)
    for number in draw.random(700):
        model.learn({"x": float(number)}, int(number > 0.5), weight=1e15)
    assert sum(reloaded(model).predict_proba({"x": 0.9}).values()) == pytest.approx(1.0)


def exchanged(n: int) -> list[tuple[dict[str, float], str]]:
    """Return rows of five classes, each with another meaning in the second half."""
    draw = np.random.default_rng(3)
    rows = []
    for event in range(n):
        code = int(draw.integers(5))
        x, y = np.array([math.cos(code), math.sin(code)]) + 0.4 * draw.normal(size=2)
        rows.append(({"x": float(x), "y": float(y)}, f"class {(code + 2 * (2 * event >= n)) % 5}"))
    return rows


def hits(model: AutoMLClassifier, rows: list[tuple[dict[str, float], str]]) -> list[bool]:
    """Learn rows one by one; return for each whether it was predicted right."""
    right = []
    for features, label in rows:
        right.append(bool(model.labels) and model.predict(features) == label)
        model.learn(features, label)
    return right


def test_what_was_learnt_is_forgotten_when_predictions_collapse() -> None:
    rows, one, many = exchanged(4000), AutoMLClassifier(), AutoMLClassifier()
    with pytest.warns(UserWarning, match="predictions collapsed"):
        right = hits(one, rows)
    with pytest.warns(UserWarning, match="predictions collapsed"):
        many.fit(rows)
    assert one.predict_proba(rows[0][0]) == many.predict_proba(rows[0][0])
    assert np.mean(right[1000:2000]) > 0.7
    assert np.mean(right[2000:2040]) < 0.3
    assert np.mean(right[2200:]) > 0.7
    lately = many._ensemble._classes.lately
    assert lately[Lately.EVENTS] < 2000  # counted from the restart on
