"""AutoMLRegressor and AutoMLClassifier: what they learn, in what order, from what, and what they refuse."""

import copy
import math
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, InputError, OptionError
from onlineauto.api.numbers import Moments, NumberEncoder
from tests.api.events import saved

Pairs = list[tuple[dict[str, Any], Any]]


def prices(n: int, *, unit: float = 1.0) -> Pairs:
    """Make events whose label depends on a number, a category, and both together."""
    draw, made = random.Random(2), []
    for _ in range(n):
        rooms, town = draw.randint(1, 5), draw.choice(["Ulm", "Bonn"])
        made.append(
            (
                {"rooms": rooms * unit, "town": town, "old": draw.random() < 0.5},
                1000.0 + 30 * rooms * (town == "Ulm"),
            )
        )
    return made


def colours(n: int, labels: tuple[Any, ...]) -> Pairs:
    """Make events whose label is the colour, but for one in ten."""
    draw, made = random.Random(3), []
    for _ in range(n):
        true = draw.randrange(len(labels))
        shown = true if draw.random() < 0.9 else draw.randrange(len(labels))
        made.append(({"colour": f"c{shown}", "size": draw.random()}, labels[true]))
    return made


def test_regression_finds_interactions() -> None:
    model = AutoMLRegressor().fit(prices(4000))
    assert "rooms*town" in model.champion.interactions
    flat = {"rooms": 4, "old": False}
    assert model.predict(flat | {"town": "Ulm"}) == pytest.approx(1120, abs=10)
    assert model.predict(flat | {"town": "Bonn"}) == pytest.approx(1000, abs=10)


def test_units_do_not_matter() -> None:
    asked = {"town": "Ulm", "old": True}
    small, large = AutoMLRegressor().fit(prices(500)), AutoMLRegressor().fit(prices(500, unit=1e6))
    assert small.predict(asked | {"rooms": 3}) == pytest.approx(
        large.predict(asked | {"rooms": 3e6}), abs=0.5
    )


def test_the_order_of_features_does_not_matter() -> None:
    events = prices(200)
    turned = [(dict(reversed(features.items())), label) for features, label in events]
    one, other = AutoMLRegressor().fit(events), AutoMLRegressor().fit(turned)
    assert one.predict(events[0][0]) == other.predict(turned[0][0])


@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
def test_learn_and_fit_are_equal(make: Any) -> None:
    events = prices(300) if make is AutoMLRegressor else colours(300, ("a", "b", "c"))
    one, all_ = make(), make().fit(events)
    for features, label in events:
        one.learn(features, label)
    assert one.predict(events[0][0]) == all_.predict(events[0][0])
    assert one.average_loss == pytest.approx(all_.average_loss, rel=1e-6)
    assert one.events == all_.events == 300


def test_average_loss_is_that_of_predictions_before() -> None:
    model, errors = AutoMLRegressor(live_configs=None), []
    for features, label in prices(300):
        errors.append((model.predict(features) - label) ** 2)
        model.learn(features, label)
    assert model.average_loss == pytest.approx(np.mean(errors[1:]) * 299 / 300, rel=0.01)


def test_losses_and_links() -> None:
    draw = random.Random(1)
    labels = [draw.random() for _ in range(3000)]
    high = AutoMLRegressor(loss="quantile", quantile_tau=0.9).fit([({"a": "b"}, y) for y in labels])
    assert high.predict({"a": "b"}) == pytest.approx(0.9, abs=0.1)
    counts = AutoMLRegressor(loss="poisson", link="poisson").fit([({"a": "b"}, 4)] * 500)
    assert counts.predict({"a": "b"}) == pytest.approx(4, abs=0.3)


def test_weights_count() -> None:
    model = AutoMLRegressor()
    draw = random.Random(2)
    for _ in range(400):  # in random order, as the ensemble would predict what comes in turn
        label = draw.randrange(2)
        model.learn({"a": "b"}, float(label), weight=1 + 2 * label)
    assert model.predict({"a": "b"}) == pytest.approx(0.75, abs=0.1)


LABELS: tuple[tuple[Any, ...], ...] = (
    (False, True),
    ("red", "green", "blue"),
    (0, 1, 2, 3),
    ("", -7, "x", 2.5, 2**63),
)


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_any_kind(labels: tuple[Any, ...]) -> None:
    model, right = AutoMLClassifier(), 0
    for features, label in colours(900, labels):
        right += model.predict(features) == label
        model.learn(features, label)
    assert right > 700
    assert set(model.labels) == set(labels)
    found = model.predict_proba({"colour": "c1", "size": 0.5})
    assert max(found, key=found.__getitem__) == labels[1]
    assert sum(found.values()) == pytest.approx(1)
    assert found[labels[1]] == pytest.approx(0.9, abs=0.1)
    assert list(model.champions) == model.labels[:1]


def test_predictions_before_and_with_one_label() -> None:
    model = AutoMLClassifier()
    assert (model.predict({"a": 1}), model.predict_proba({"a": 1}), model.labels) == (None, {}, [])
    assert math.isnan(model.average_loss)
    model.learn({"a": 1}, "only")
    assert model.predict_proba({"a": 1}) == {"only": 1.0}
    assert AutoMLRegressor().predict({"a": 1}) == 0


def test_a_label_that_comes_late_begins_small() -> None:
    model = AutoMLClassifier().fit(colours(500, ("a", "b")))
    model.learn({"colour": "new"}, "c")
    assert model.predict_proba({"colour": "c0"})["c"] < 0.05
    for _ in range(30):
        model.learn({"colour": "new"}, "c")
    assert model.predict({"colour": "new"}) == "c"
    assert model.predict({"colour": "c0"}) == "a"
    assert model.predict({"colour": "c1"}) == "b"


def test_texts_files_frames_and_mappings(tmp_path: Path) -> None:
    lines = ["1 |a x", "0 |a y"] * 50
    (tmp_path / "train.txt").write_text("\n".join(lines))
    of_lines = AutoMLRegressor().fit(lines)
    assert AutoMLRegressor().fit(tmp_path / "train.txt").average_loss == of_lines.average_loss
    assert of_lines.predict({"a": ["x"]}) == pytest.approx(1, abs=0.1)
    mappings = [
        {"context": {"a": ["x"]}, "label": 1, "weight": 2},
        {"context": {"a": ["y"]}, "label": 0},
    ] * 50
    assert AutoMLRegressor().fit(mappings).predict({"a": ["x"]}) == pytest.approx(1, abs=0.1)
    classes = AutoMLClassifier().fit(["3 |a x", "7 |a y", "|a z", "3 |a x"] * 30)
    assert (classes.labels, classes.events) == ([3, 7], 90)
    assert classes.predict({"a": ["y"]}) == 7


def test_frames() -> None:
    pandas: Any = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    events = prices(200)
    frame = pandas.DataFrame([{**features, "price": label, "w": 1.0} for features, label in events])
    model = AutoMLRegressor().fit_table(frame, label="price", weight="w")
    assert model.predict(events[0][0]) == pytest.approx(AutoMLRegressor().fit(events).predict(events[0][0]))
    features = frame.drop(columns=["price", "w"])
    assert model.predict(features[:9]).tolist() == [
        pytest.approx(model.predict(each)) for each, _ in events[:9]
    ]
    with pytest.raises(InputError, match="not DataFrame; fit_table and predict take frames"):
        model.learn(features, 1.0)
    with pytest.raises(
        InputError, match=r"^there is no column 'rent': fit_table\(.* names one of its columns: rooms, town"
    ):
        AutoMLRegressor().fit_table(frame, label="rent")


@pytest.mark.parametrize("names", [(0, 1, 2), (("a", "x"), ("b", "y"), ("c", "z"))])
def test_columns_are_named_by_the_names_that_the_frame_has(names: tuple[Any, ...]) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(dict(zip("abc", ([1.0, 2.0] * 20, [3.0] * 40, [1.0] * 40), strict=True)))
    frame.columns = list(map(str, names))
    texts = AutoMLRegressor().fit_table(frame, label=str(names[1]), weight=str(names[2]))
    frame.columns = names
    model = AutoMLRegressor().fit_table(frame, label=names[1], weight=names[2])
    row = {str(names[0]): 2.0}
    assert model.predict(row) == texts.predict(row) == pytest.approx(3.0, abs=0.5)


@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
def test_files_and_copies_continue_like_the_model(make: Any) -> None:
    events = prices(400) if make is AutoMLRegressor else colours(400, (True, 2, "x"))
    model = make(live_configs=2).fit(events[:300])
    models = [model, make.load(saved(model)), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]  # noqa: S301
    losses = {(each.fit(events[300:]).average_loss, each.events) for each in models}
    assert len(losses) == 1
    assert len({str(each.predict(events[0][0])) for each in models}) == 1
    other = AutoMLClassifier if make is AutoMLRegressor else AutoMLRegressor
    with pytest.raises(InputError, match=f"{make.__name__}.load reads it"):
        other.load(saved(model))


def test_a_model_with_names_that_are_not_utf8_is_saved() -> None:
    model = AutoMLRegressor(live_configs=1)
    row = {"pre\udce9o": 2.0, "é": 1.0}
    for step in range(40):
        model.learn(row | {"é": float(step % 3)}, step % 3)
    loaded = AutoMLRegressor.load(saved(model))
    assert loaded.predict(row) == model.predict(row)
    model.learn(row, 1.0)
    loaded.learn(row, 1.0)
    assert loaded.predict(row) == model.predict(row)


@pytest.mark.parametrize("label", [(1, 2), b"x", 10**30, "\ud800"], ids=repr)
def test_a_label_that_no_file_can_have_is_refused_and_the_model_can_be_saved(label: Any) -> None:
    model = AutoMLClassifier(live_configs=1).fit([({"a": 1}, "p"), ({"a": 2}, "q")])
    with pytest.raises(InputError, match=r"label .* (a file can have|cannot be in a file)"):
        model.learn({"a": 1}, label)
    with pytest.raises(InputError, match=r"event 1: .*label"):
        model.fit([({"a": 1}, "q"), ({"a": 1}, label)])
    assert AutoMLClassifier.load(saved(model)).labels == ["p", "q"]


@pytest.mark.parametrize(
    ("features", "label", "message"),
    [
        ({"a": 1}, math.nan, "(?i)nan"),
        ({"a": 1}, [1], r"\[1\]"),
        ({"a": math.inf}, 1, "infinite"),
        ({"a": object()}, 1, "which is no feature"),
        ([1, 2], 1, "features are a mapping"),
    ],
)
@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
def test_refusals_learn_nothing(make: Any, features: Any, label: Any, message: str) -> None:
    model = make().fit([({"a": 1}, 0)])
    with pytest.raises(InputError, match=message):
        model.learn(features, label)
    events = [({"a": 1}, 0), ({"a": 1}, 0), (features, label)]
    if label != label:  # NaN is a label that is missing
        with pytest.warns(UserWarning, match="event 2: the label is missing"):
            model.fit(events)
    else:
        with pytest.raises(InputError, match="event 2"):
            model.fit(events)
    assert model.events == 3


def test_whole_numbers_of_hundreds_of_digits_are_refused() -> None:
    large, actions = 10**400, [{"a": 1}, {"b": 1}]
    bandit, model = AutoML(), AutoMLRegressor()
    choice = bandit.rank({"u": 1}, actions)
    for call in (
        lambda: bandit.rank({"u": large}, actions),
        lambda: bandit.rank({"u": {"v": large}}, actions),
        lambda: bandit.learn(choice, reward=large),
        lambda: model.learn({"u": large}, 1),
        lambda: model.learn({"u": 1}, large),
        lambda: model.predict({"u": large}),
    ):
        with pytest.raises(InputError, match="finite"):
            call()


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InputError, match="half of a surrogate pair"):
        AutoMLRegressor().learn({"a": "\ud800"}, 1)


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="'dear' is not a finite number"):
        AutoMLRegressor().learn({"a": 1}, "dear")
    with pytest.raises(OptionError, match="load continues"):
        AutoMLRegressor().warm_start("model.oam")
    with pytest.raises(OptionError, match="loss"):
        AutoMLRegressor(loss="square")
    with pytest.raises(InputError, match="no events"):
        AutoMLRegressor().fit([])
    with pytest.raises(TypeError, match=r"^fit_table\(\) got an unexpected keyword argument 'lable'"):
        AutoMLClassifier().fit_table([], lable="y")  # type: ignore[call-arg]


def test_threads_share_a_model() -> None:
    model, events = AutoMLClassifier(live_configs=2), colours(100, ("a", "b", "c"))

    def work(_: int) -> None:
        for features, label in events:
            assert sum(model.predict_proba(features).values()) == pytest.approx(1) or not model.labels
            model.learn(features, label)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert model.events == 400


def test_moments_are_those_of_numpy() -> None:
    draw = np.random.default_rng(1)
    values, weights = draw.normal(1e6, 2, 500), draw.integers(0, 4, 500)
    moments = Moments()
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        moments.add(value, weight)
    repeated = np.repeat(values, weights)
    assert moments.mean == pytest.approx(repeated.mean())
    assert moments.deviation == pytest.approx(repeated.std())


def test_bins_have_equal_shares() -> None:
    numbers, draw = NumberEncoder(), random.Random(1)
    for _ in range(128):
        numbers.add({"x": draw.expovariate(1)})
    shares = [0] * 16
    for _ in range(4000):
        shares[int(numbers.encode_features({"x": draw.expovariate(1)})["x bins"]["bin"])] += 1
    assert min(shares) > 80
    assert max(shares) < 600


def test_first_numbers_that_are_equal_but_for_rounding_are_no_scale() -> None:
    """The third number would lie millions of deviations from the mean, and learning would begin again."""
    numbers = NumberEncoder()
    for edge in (1.1111094, 1.111112):
        numbers.add({"edge": edge})
    assert numbers.encode_features({"edge": 9.0}) == {"edge": {"edge": 32.0}}
    model = AutoMLClassifier()
    for edge in (1.1111094, 1.111112, 9.0, *(0.1 * i for i in range(60))):
        model.learn({"edge": edge}, edge > 1)


def test_values_that_are_not_numbers_are_unchanged() -> None:
    given = {"a": True, "b": "x", "c": None, "d": ["y"], "e": {"f": 2}, "g": math.nan, "h": np.True_}
    assert NumberEncoder().encode_features(given) == given
    assert NumberEncoder().encode_features({"x": np.float32(3)}) == {"x": {"x": 1.0}}


@pytest.mark.parametrize("model", [AutoMLRegressor(), AutoMLClassifier()], ids=["regressor", "classifier"])
def test_predict_drops_the_label_column_and_warns_once_of_others(model: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"rooms": [1, 2, 3, 4] * 50, "w": 1.0, "size": [0, 0, 1, 1] * 50})
    with pytest.raises(InputError, match="names one of its columns"):
        model.fit_table(frame, label="sise")
    model.fit_table(frame, label="size", weight="w")
    assert list(model.predict(frame)) == list(model.predict(frame[["rooms"]]))
    with pytest.warns(UserWarning, match="rooms is missing; roms was not learnt") as caught:
        model.predict(frame.rename(columns={"rooms": "roms"}))
    assert caught[0].filename == __file__
    model.predict(frame.rename(columns={"rooms": "roms"}))  # The second warning would be an error.


@pytest.mark.parametrize("model", [AutoMLRegressor(), AutoMLClassifier()], ids=["regressor", "classifier"])
def test_a_loaded_model_has_the_columns_of_the_saved_one(model: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"rooms": [1, 2, 3, 4] * 50, "w": 1.0, "size": [0, 0, 1, 1] * 50})
    loaded = type(model).load(saved(model.fit_table(frame, label="size", weight="w")))
    assert list(loaded.predict(frame)) == list(model.predict(frame))
    with pytest.warns(UserWarning, match="rooms is missing; roms was not learnt"):
        loaded.predict(frame.rename(columns={"rooms": "roms"}))


def test_a_failed_fit_says_how_many_rows_were_learnt() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"rooms": [1.0, 2.0] * 200, "rent": [300.0, 600.0] * 200})
    frame.loc[300, "rent"] = 1e39
    model = AutoMLRegressor()
    with pytest.raises(InputError, match=r"event 300: .*300 events before it are learnt") as caught:
        model.fit_table(frame, label="rent")
    assert model.events == 300
    assert str(caught.value).count("event 300") == 1
    with pytest.raises(InputError, match=r"too large for a float32$"):
        AutoMLRegressor().fit_table(frame[300:], label="rent")


def test_a_model_of_a_parquet_file_leaves_the_label_out_of_predictions(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"rooms": [1, 2, 3, 4] * 50, "size": [0.0, 0.0, 1.0, 1.0] * 50})
    frame.to_parquet(tmp_path / "rooms.parquet")
    model = AutoMLRegressor().fit_table(str(tmp_path / "rooms.parquet"), label="size")
    assert list(model.predict(frame)) == list(model.predict(frame[["rooms"]]))
