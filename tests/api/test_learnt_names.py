"""Names of features at prediction: Series, labels among the features, and warnings of unusual names."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, InputError
from onlineauto.api.tables import SURE
from onlineauto.workspace.model_file import decode_tree, encode_tree
from tests.api.events import saved

pytestmark = pytest.mark.lane("quick")
ROWS: list[dict[str, Any]] = [{"rooms": 1 + k % 4, "town": ("Ulm", "Bonn")[k % 3 == 0]} for k in range(240)]
TYPED = {"rooms": 2, "towm": "Bonn"}
MODELS = pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
UNUSUAL = "the names of features: town is missing; towm was not learnt"


def labels() -> list[int]:
    return [300 * row["rooms"] for row in ROWS]


def frame() -> Any:
    return pytest.importorskip("pandas").DataFrame(ROWS).assign(price=labels())


def by_frame(model: Any) -> Any:
    return model.fit_table(frame(), label="price")


def by_rows(model: Any) -> Any:
    return model.fit(ROWS, labels())


def by_events(model: Any) -> Any:
    for row, label in zip(ROWS, labels(), strict=True):
        model.learn(row, label)
    return model


def warned(use: Any, *arguments: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use(*arguments)
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("learnt", [by_frame, by_rows, by_events])
@MODELS
def test_a_misspelt_name_warns_once(make: Any, learnt: Any) -> None:
    model = learnt(make(live_configs=1))
    for one in (model, make.load(saved(model))):
        assert warned(one.predict, TYPED) == [UNUSUAL]
        assert warned(one.predict, TYPED) == warned(one.predict, [TYPED]) == []
        assert warned(one.predict, [{"rooms": 2, "twon": "Ulm"}]) == [
            "the names of features: twon was not learnt"
        ]
        assert warned(one.explain, {"rooms": 2, "town": "Ulm", "x": 1}) == [
            "the names of features: x was not learnt"
        ]


@MODELS
def test_a_call_warns_once_of_all_rows(make: Any) -> None:
    model = by_rows(make(live_configs=1))
    rows = [ROWS[0], {"x": 1, "town": "Ulm"}, {"y": 1, "town": "Ulm"}, {"y": 1}]
    says = "the names of features: rooms, town are missing; x, y were not learnt"
    assert warned(model.predict, rows) == [says]
    assert warned(by_frame(make(live_configs=1)).predict, frame()[["price"]].assign(x=1, y=1)) == [says]


@MODELS
def test_warnings_are_bounded(make: Any) -> None:
    model = by_rows(make(live_configs=1))
    texts = [warned(model.predict, ROWS[0] | {f"n{i}": 1}) for i in range(30)]
    assert [len(text) for text in texts] == [1] * 20 + [0] * 10
    [text] = warned(by_rows(make(live_configs=1)).predict, {f"n{i}": 1 for i in range(1000)})
    assert len(text) < 200


def test_each_door_of_a_classifier_warns_at_the_call_of_the_user() -> None:
    for use in (AutoMLClassifier.predict, AutoMLClassifier.predict_proba):
        for features in (TYPED, [TYPED]):
            model = by_rows(AutoMLClassifier(live_configs=1))
            assert warned(lambda: use(model, features)) == [UNUSUAL]  # noqa: B023


@MODELS
def test_events_with_different_names_warn_of_none(make: Any) -> None:
    model = by_rows(make(live_configs=1))
    model.learn({"rooms": 1}, 300)
    for one in (model, make.load(saved(model))):
        assert warned(one.predict, TYPED) == []
    few = make(live_configs=1)
    few.learn({"rooms": 1}, 300)
    assert warned(few.predict, TYPED) == []
    lines = make(live_configs=1).fit(["1 | a", "0 | b"] * 60)
    assert warned(by_rows(make.load(saved(lines))).predict, TYPED) == []


@MODELS
def test_a_loaded_model_ignores_the_label_column(make: Any) -> None:
    model = by_frame(make(live_configs=1))
    table = frame()
    row = table.iloc[3]
    for one in (model, make.load(saved(model))):
        expected = one.predict(ROWS[3])
        assert list(one.predict(table.iloc[3:4])) == [expected]
        assert one.predict(row) == one.predict(row.to_dict()) == one.predict(row.drop("price")) == expected


@MODELS
def test_a_series_is_one_event(make: Any) -> None:
    table = frame()
    one, other = make(live_configs=1), make(live_configs=1)
    for model in (one, other):
        model.fit_table(table, label="price")
    for at in range(40):
        one.learn(table.iloc[at], table.price[at])
        other.learn(ROWS[at], labels()[at])
    assert saved(one) == saved(other)
    assert one.explain(table.iloc[0]) == other.explain(ROWS[0])
    if make is AutoMLClassifier:
        assert one.predict_proba(table.iloc[0]) == other.predict_proba(ROWS[0])
    categories = make(live_configs=1).fit_table(table.astype({"rooms": "category"}), label="price")
    assert categories.predict(table.iloc[0]) == categories.predict(ROWS[0])


@MODELS
def test_a_column_is_not_one_event(make: Any) -> None:
    model = by_frame(make(live_configs=1))
    column = frame()["rooms"]
    for use in (model.predict, model.explain, lambda features: model.learn(features, 300)):
        with pytest.raises(InputError, match=r"0 is no text; pass a column as frame\[\[name\]\]"):
            use(column)
    row = frame()[["rooms", "town"]].iloc[0]
    assert model.predict(row) == model.predict(row.to_dict())


def failing(tmp_path: Path) -> list[Any]:
    table = frame()
    table.to_parquet(tmp_path / "t.parquet")
    missing = float("nan")
    return [
        lambda model: model.fit_table(table, label="none"),
        lambda model: model.fit_table(table.assign(none=missing), label="none"),
        lambda model: model.fit_table(table.drop(columns="rooms"), label="rooms"),
        lambda model: model.fit_table(table.assign(rooms=missing), label="rooms"),
        lambda model: model.fit_table(table, label="price", weight="rent"),
        lambda model: model.fit_table(table, label="price", weight="price"),
        lambda model: model.fit_table(tmp_path / "t.parquet", label="none"),
        lambda model: model.fit_table(tmp_path / "t.parquet", label="price", weight="price"),
        lambda model: model.fit(table, [1.0]),
        lambda model: model.fit(table, [missing] * len(table)),
    ]


@MODELS
def test_a_failed_call_changes_no_columns(make: Any, tmp_path: Path) -> None:
    frame()
    pytest.importorskip("pyarrow")
    for call in failing(tmp_path):
        model = make(live_configs=1)
        with pytest.raises(InputError):
            call(model)
        by_events(model)
        assert saved(model) == saved(by_events(make(live_configs=1)))


def pairs(rows: list[Any]) -> list[Any]:
    return list(zip(rows, labels(), strict=True))


@MODELS
def test_every_call_that_learns_leaves_the_label_out(make: Any) -> None:
    table = frame()
    records = table.to_dict("records")
    series = [row for _, row in table.iterrows()]
    expected = saved(by_frame(make(live_configs=1)).fit(ROWS, labels()))
    for events in (pairs(records), pairs(series), [{"context": x, "label": y} for x, y in pairs(records)]):
        assert saved(by_frame(make(live_configs=1)).fit(events)) == expected
    assert saved(by_frame(make(live_configs=1)).fit(records, labels())) == expected
    with_label, without = (
        by_frame(make(live_configs=1)).fit(rows, labels()) for rows in (table, table.drop(columns="price"))
    )
    assert saved(with_label) == saved(without)


def test_a_former_label_can_be_a_feature(tmp_path: Path) -> None:
    table = frame()
    table.to_parquet(tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        model = by_frame(AutoMLRegressor(live_configs=1)).fit_table(source, label="rooms")
        [found] = model.explain(ROWS[0] | {"price": 300})["predictions"]
        assert {*found["features"]} == {"town", "price"}


@MODELS
def test_unknown_keys_of_an_event_are_rejected(make: Any) -> None:
    says = "event 1: unknown key 'contxt'; did you mean context?; 1 events before it are learnt"
    good: dict[str, Any] = {"context": {"rooms": 2}, "label": 3}
    with pytest.raises(InputError, match="event 0: unknown key 'rooms'; an event has context, label, weight"):
        make().fit([{"rooms": 2, "label": 3}])
    with pytest.raises(InputError, match=re.escape(says)):
        make().fit([good, {"contxt": {"rooms": 2}, "label": 3}])
    assert make().fit([good | {"weight": 2, "tag": "a"}]).events == 1


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@MODELS
def test_a_column_that_changes_its_kind_warns_once(make: Any, library: str) -> None:
    def convert(table: Any) -> Any:
        if library == "pandas":
            return table
        module = pytest.importorskip(library)
        return module.from_pandas(table) if library == "polars" else module.Table.from_pandas(table)

    table = frame().assign(zip=lambda rows: rows.rooms.astype(str), half=None)
    table.loc[::2, "rooms"] = None
    model = make(live_configs=1).fit_table(convert(table), label="price")
    changed = table.assign(rooms=table.rooms.map(str, na_action="ignore"), zip=table.rooms)
    expected = ["rooms was learnt as numbers, and is now text", "zip was learnt as text, and is now numbers"]
    for one in (model, make.load(saved(model))):
        assert warned(one.predict, convert(table)) == []
        assert sorted(warned(one.predict, convert(changed))) == expected
        assert warned(one.predict, convert(changed)) == []
    assert sorted(warned(lambda: model.fit_table(convert(changed), label="price"))) == []
    assert warned(make.load(saved(model)).predict, convert(table)) == []  # these columns are mixed now
    again = make(live_configs=1).fit_table(convert(table), label="price")
    assert sorted(warned(lambda: again.fit_table(convert(changed), label="price"))) == expected


@MODELS
def test_a_series_of_another_kind_warns(make: Any) -> None:
    text, expected = frame().astype({"rooms": str}), ["rooms was learnt as numbers, and is now text"]
    for learn in (by_frame, lambda model: model.fit(frame().drop(columns="price"), labels())):
        for use in (make.predict, make.explain):
            for event in (text.iloc[0].drop("price"), text[:1].drop(columns="price")):
                model = learn(make(live_configs=1))
                assert warned(lambda: use(model, frame().iloc[0].drop("price"))) == []  # noqa: B023
                assert warned(lambda: use(model, event)) == expected  # noqa: B023
    assert warned(by_rows(make(live_configs=1)).predict, text.drop(columns="price")) == []


@MODELS
def test_columns_of_categories_or_several_kinds_have_no_kind(make: Any) -> None:
    table = frame().astype({"rooms": "category"}).assign(mixed=["x", 1] * 120)
    model = make(live_configs=1).fit_table(table, label="price")
    plain = table.astype({"rooms": str}).assign(mixed="x")
    assert warned(model.predict, plain) == warned(model.predict, plain.assign(mixed=1)) == []
    model = by_frame(make(live_configs=1))
    assert warned(model.predict, frame().assign(rooms=[1, "2"] * 120)) == []


@pytest.mark.parametrize(
    "columns",
    [[], {"same": "x"}, {"names": 1}, {"kinds": {"rooms": 1}}],
    ids=["list", "text", "number", "kinds"],
)
def test_forged_names_do_not_fit(columns: Any) -> None:
    model = AutoMLRegressor(live_configs=1)
    tree = decode_tree(saved(by_rows(model)), name="the model")
    tree["run"]["api"]["own"]["columns"] = columns
    with pytest.raises(InputError, match="does not fit AutoMLRegressor"):
        AutoMLRegressor.load(b"".join(map(bytes, encode_tree(tree))))


ACTIONS = [{"article": "a"}, {"article": "b"}]
NAMED = {"context": {"user": "tom", "hour": 3}, "actions": ACTIONS, "chosen": 0, "probability": 0.5}
MISNAMED = [{"id": "a"}, {"id": "b"}]


def decided(n: int = 120) -> list[dict[str, Any]]:
    return [
        NAMED | {"context": {"user": "tom", "hour": k % 24}, "chosen": k % 2, "reward": 1} for k in range(n)
    ]


def by_log(bandit: AutoML) -> AutoML:
    columns = {
        "user": ["tom", "ann"] * 60,
        "hour": range(120),
        "article": ["a", "b"] * 60,
        "p": 0.5,
        "r": 1.0,
    }
    log = pytest.importorskip("pandas").DataFrame(columns)
    return bandit.fit_table(log, actions="article", probability="p", reward="r")


def by_parquet(bandit: AutoML) -> AutoML:
    table = pytest.importorskip("pyarrow").table(
        {
            "user": ["tom", "ann"] * 60,
            "hour": range(120),
            "article": ["a", "b"] * 60,
            "p": [0.5] * 120,
            "r": [1.0] * 120,
        }
    )
    dataset = pytest.importorskip("pyarrow.dataset").dataset(table)
    return bandit.fit_table(dataset, actions="article", probability="p", reward="r")


def by_decisions(bandit: AutoML) -> AutoML:
    return bandit.fit(decided())


def by_choices(bandit: AutoML) -> AutoML:
    for event in decided():
        bandit.learn(bandit.rank(event["context"], ACTIONS), reward=1)
    return bandit


@pytest.mark.parametrize("learnt", [by_log, by_parquet, by_decisions, by_choices])
def test_a_bandit_warns_once_of_names_that_were_not_learnt(learnt: Any) -> None:
    bandit, context = learnt(AutoML()), {"user": "tom", "hour": 3}
    for one in (bandit, AutoML.load(saved(bandit))):
        assert warned(one.predict, context, ACTIONS) == warned(one.rank, context, ACTIONS) == []
        assert warned(one.predict, [context | {"article": "a"}], ACTIONS) == [
            "the names of the context: article was not learnt"
        ]
        assert warned(one.predict, context | {"article": "a"}, ACTIONS) == []
        assert warned(one.rank, {"usr": "tom"}, ACTIONS) == [
            "the names of the context: hour, user are missing; usr was not learnt"
        ]
        assert warned(one.effects, [context, context | {"effect": 1}], ACTIONS) == [
            "the names of the context: effect was not learnt"
        ]
        assert warned(one.explain, context, MISNAMED) == [
            "the names of actions: article is missing; id was not learnt"
        ]
        assert warned(one.predict, context, MISNAMED) == []
        texts = [warned(one.predict, context | {f"n{i}": 1}, ACTIONS) for i in range(30)]
        assert sum(map(len, texts)) == 15  # with the five above, 20


@pytest.mark.parametrize("n_fitted", [0, 1, SURE])
def test_lists_within_mappings_are_not_missing(n_fitted: int) -> None:
    bandit, context = AutoML(), {"user": {"age": 1.0, "tags": ["a"]}}
    actions = [{"item": {"id": name, "words": [name]}} for name in "ab"]
    known = {"context": context, "actions": actions, "action": 0, "probability": 0.5, "reward": 1}
    if n_fitted:
        bandit.fit([known] * n_fitted)
    for _ in range(SURE + 1):
        bandit.learn(bandit.rank(context, actions), reward=1)
    assert warned(bandit.rank, context, actions) == []
    assert warned(bandit.rank, context | {"hour": 3}, actions) == [
        "the names of the context: hour was not learnt"
    ]
    assert warned(bandit.rank, {"hour": 3}, actions) == ["the names of the context: tags, user are missing"]


def test_contexts_with_different_names_warn_of_none() -> None:
    bandit = by_choices(AutoML())
    bandit.learn({"user": "tom"}, [{"x": 1}, {"article": "a"}], action=0, probability=0.5, reward=1)
    lines = AutoML().fit(["shared |user tom\n0:-1:0.5 |article a\n|article b\n"] * 120)
    few = AutoML().fit(decided(99))
    for one in (bandit, AutoML.load(saved(bandit)), lines, few):
        assert warned(one.predict, {"usr": "tom"}, MISNAMED) == []


@pytest.mark.parametrize("names", [[], {"context": [1]}, {"actions": {"names": 1}}])
def test_forged_names_do_not_fit_a_bandit(names: Any) -> None:
    tree = decode_tree(saved(by_choices(AutoML(live_configs=1))), name="the model")
    tree["run"]["api"]["own"]["names"] = names
    with pytest.raises(InputError, match="does not fit AutoML"):
        AutoML.load(b"".join(map(bytes, encode_tree(tree))))


@MODELS
def test_labels_in_place_of_a_column_are_reported_briefly(make: Any) -> None:
    message = "^label names a column, and is not a Series; fit.X, y. takes labels apart$"
    with pytest.raises(InputError, match=message):
        make(live_configs=1).fit_table(frame(), label=frame().price)
    with pytest.raises(
        InputError, match=r"^weight names a column, and is not a list; fit.X, y, sample_weight=…. "
    ):
        make(live_configs=1).fit_table(frame(), label="price", weight=[1.0] * 240)
