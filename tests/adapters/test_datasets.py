"""`fit_table` with datasets of pyarrow and with paths of Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor
from onlineauto.errors import InputError

pytestmark = pytest.mark.lane("sampled")


def decisions(n: int = 600) -> pa.Table:
    random = np.random.default_rng(3)
    user, arm = random.integers(0, 2, n), random.integers(0, 2, n)
    return pa.table(
        {
            "user": pa.array(["tom", "ann"]).take(pa.array(user)),
            "arm": pa.array(["art", "sport"]).take(pa.array(arm)),
            "reward": (user == arm).astype(float),
            "probability": np.full(n, 0.5),
            "day": pa.array(["mon", "tue", "wed"]).take(pa.array(np.arange(n) * 3 // n)),
        }
    )


def sources(folder: Path) -> dict[str, Any]:
    """Return the rows in every form that `fit_table` accepts."""
    table = decisions()
    pq.write_table(table, folder / "one.parquet", row_group_size=128)
    ds.write_dataset(table, folder / "ipc", format="ipc")
    return {
        "path": folder / "one.parquet",
        "text": f"{folder}/one*.parquet",
        "dataset": ds.dataset(folder / "one.parquet"),
        "ipc": ds.dataset(folder / "ipc", format="ipc"),
        "memory": ds.dataset(table),
        "reader": table.to_reader(),
        "columns": table,
    }


NAMED: dict[str, Any] = {
    "context": ["user", "day"],
    "actions": "arm",
    "choices": ["art", "sport"],
    "reward": "reward",
    "probability": "probability",
}


@pytest.mark.parametrize("form", ["path", "text", "dataset", "ipc", "memory", "reader"])
def test_every_form_of_a_dataset_is_learnt_like_the_frame(tmp_path: Path, form: str) -> None:
    found = sources(tmp_path)
    by_frame = AutoML(live_configs=None, quadratic=["::"]).fit_table(found["columns"], **NAMED)
    by_dataset = AutoML(live_configs=None, quadratic=["::"]).fit_table(found[form], **NAMED)
    assert by_dataset.events == 600
    assert by_dataset.workspace.weights.tobytes() == by_frame.workspace.weights.tobytes()


def test_columns_of_folders_are_columns(tmp_path: Path) -> None:
    table = decisions()
    ds.write_dataset(
        table,
        tmp_path / "days",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("day", pa.string())]), flavor="hive"),
    )
    by_folder = AutoML(live_configs=None).fit_table(tmp_path / "days", **NAMED)
    by_dataset = AutoML(live_configs=None).fit_table(
        ds.dataset(tmp_path / "days", partitioning="hive"), **NAMED
    )
    by_frame = AutoML(live_configs=None).fit_table(table, **NAMED)
    for model in (by_folder, by_dataset):
        assert model.workspace.weights.tobytes() == by_frame.workspace.weights.tobytes()


def test_filtered_dataset_has_the_rows_of_the_filter(tmp_path: Path) -> None:
    dataset = ds.dataset(sources(tmp_path)["path"]).filter(ds.field("day") == "mon")
    assert AutoML(live_configs=None).fit_table(dataset, **NAMED).events == 200


def test_column_that_a_file_of_a_dataset_lacks_is_null(tmp_path: Path) -> None:
    table = decisions()
    pq.write_table(table.slice(0, 300).drop_columns(["user"]), tmp_path / "0.parquet")
    pq.write_table(table.slice(300), tmp_path / "1.parquet")
    user = pa.array([None] * 300 + table["user"].to_pylist()[300:], pa.string())
    by_frame = AutoML(live_configs=None).fit_table(table.set_column(0, "user", user), **NAMED)
    by_dataset = AutoML(live_configs=None).fit_table(ds.dataset(tmp_path, schema=table.schema), **NAMED)
    assert by_dataset.events == 600
    assert by_dataset.workspace.weights.tobytes() == by_frame.workspace.weights.tobytes()


@pytest.mark.filterwarnings("ignore:the names of the context")  # days are learnt, and not predicted
def test_columns_are_inferred_and_the_bandit_learns(tmp_path: Path) -> None:
    bandit = AutoML().fit_table(ds.dataset(sources(tmp_path)["path"]))
    assert bandit.events == 600
    assert bandit.average_reward > 0.75
    [likes_art, _] = bandit.predict(
        {"user": {"user": "tom"}}, [{"arm": {"arm": "art"}}, {"arm": {"arm": "sport"}}]
    )
    assert likes_art > 0.9


def test_columns_are_given_as_a_file_or_a_mapping_and_only_once(tmp_path: Path) -> None:
    path = sources(tmp_path)["path"]
    columns = {"rows": "events", "action": "arm", "reward": "reward", "probability": "probability"}
    columns["context"] = ["user"]  # type: ignore[assignment]
    assert AutoML(live_configs=None).fit_table(path, columns=columns).events == 600
    with pytest.raises(InputError, match="columns and actions both describe the columns"):
        AutoML().fit_table(path, columns=columns, actions="arm")


def test_ids_mean_in_a_dataset_what_they_mean_in_dicts(tmp_path: Path) -> None:
    table = decisions()
    ids = pa.array([1 if name == "tom" else 0 for name in table["user"].to_pylist()])
    table = table.select(["arm", "reward", "probability"]).append_column("user_id", ids)
    pq.write_table(table, tmp_path / "a.parquet")
    actions = [{"arm": {"arm": "art"}}, {"arm": {"arm": "sport"}}]
    columns: dict[str, Any] = {"rows": "events", "action": "arm", "reward": "reward"}
    columns |= {"probability": "probability", "context": ["user_id"], "categories": ["user_id"]}
    for form, given in ((1, None), ("1", columns)):
        bandit = AutoML(quadratic=["::"], live_configs=None).fit_table(tmp_path / "a.parquet", columns=given)
        [art, _] = bandit.predict({"user_id": {"user_id": form}}, actions)
        assert art > 0.9


def houses(n: int = 900) -> pa.Table:
    random = np.random.default_rng(5)
    rooms, town = random.integers(1, 5, n), random.integers(0, 2, n)
    price = 300.0 * rooms + 100 * town
    kind = np.array(["cheap", "fair", "dear"])[np.digitize(price, [500, 1000])]
    towns = pa.array(["Ulm", "Bonn"]).take(pa.array(town))
    return pa.table({"rooms": rooms, "town": towns, "price": price, "kind": kind})


def test_regressor_learns_a_dataset_like_the_frame(tmp_path: Path) -> None:
    table = houses().drop_columns(["kind"])
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    by_frame = AutoMLRegressor().fit_table(table, label="price")
    by_dataset = AutoMLRegressor().fit_table(ds.dataset(tmp_path / "a.parquet"), label="price")
    asked = {"rooms": 3, "town": "Bonn"}
    assert by_dataset.events == 900
    assert by_dataset.predict(asked) == by_frame.predict(asked)
    assert round(by_dataset.predict(asked), -1) == 1000


def test_classifier_learns_texts_as_labels(tmp_path: Path) -> None:
    pq.write_table(houses().drop_columns(["price"]), tmp_path / "a.parquet", row_group_size=100)
    model = AutoMLClassifier().fit_table(tmp_path / "a.parquet", label="kind")
    assert model.events == 900
    assert model.predict({"rooms": 1, "town": "Ulm"}) == "cheap"
    assert model.predict({"rooms": 4, "town": "Bonn"}) == "dear"


def test_rows_without_a_label_are_left_out(tmp_path: Path) -> None:
    table = pa.table({"y": [1.0, None, 2.0, float("nan")], "x": [1, 2, 3, 4]})
    pq.write_table(table, tmp_path / "a.parquet")
    model = AutoMLRegressor()
    with pytest.warns(UserWarning, match=r"^2 problems .*\n.* event 1: the label is missing: None;"):
        model.fit_table(tmp_path / "a.parquet")
    assert model.events == 2
