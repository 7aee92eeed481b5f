"""Columns whose values are names, and lists and structs, are named in datasets as in dicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, InputError

pytestmark = pytest.mark.lane("sampled")

BEST = np.array([1, 2, 0])
ROLES: dict[str, Any] = {"actions": "arm", "reward": "reward", "probability": "p"}


def log(n: int = 1500) -> pa.Table:
    random = np.random.default_rng(0)
    user, arm = random.integers(0, 3, n), random.integers(0, 3, n)
    return pa.table({"user": user, "arm": arm, "reward": (BEST[user] == arm).astype(float), "p": [1 / 3] * n})


def choices_of(bandit: AutoML, context: Any) -> list[int]:
    actions = [{"arm": number} for number in range(3)]
    return [int(np.argmax(bandit.predict(context(user), actions))) for user in range(3)]


@pytest.mark.parametrize("column", ["user", "arm"])
def test_the_numbers_that_folders_name_are_names(tmp_path: Path, column: str) -> None:
    of_folders = ds.partitioning(pa.schema([(column, pa.int64())]), flavor="hive")
    ds.write_dataset(log(), tmp_path / "log", format="parquet", partitioning=of_folders)
    for source in (str(tmp_path / "log"), ds.dataset(tmp_path / "log", partitioning="hive")):
        bandit = AutoML(seed=1).fit_table(source, **ROLES)
        assert f"{column}^{column}" in bandit.workspace.identities
        if column == "user":
            assert choices_of(bandit, lambda user: {"user": float(user)}) == BEST.tolist()
        else:
            assert bandit.events == 1500


def test_actions_in_lists_have_the_categories_of_dicts(tmp_path: Path) -> None:
    rows = [
        {**row, "items": [{"arm": number} for number in range(3)], "taken": row["arm"]}
        for row in log().to_pylist()
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    columns = {
        "rows": "lists", "list": "items", "chosen": "taken", "reward": "reward", "probability": "p",
        "categories": ["arm", "user"], "context": {"who": ["user"]}, "actions": {"arm": ["arm"]},
    }  # fmt: skip
    bandit = AutoML(seed=1).fit_table(str(tmp_path / "log.parquet"), columns=columns)
    assert choices_of(bandit, lambda user: {"who": {"user": user}}) == BEST.tolist()


def test_a_column_of_numbers_does_not_become_names_later(tmp_path: Path) -> None:
    pq.write_table(log(), tmp_path / "log.parquet")
    bandit = AutoML()
    bandit.learn({"user": 0}, [{"arm": 0}, {"arm": 1}], action=1, probability=0.5, reward=1)
    for source in (str(tmp_path / "log.parquet"), log()):
        with pytest.raises(InputError, match="column 'arm' has names here, and the model has learnt numbers"):
            bandit.fit_table(source, **ROLES)


@pytest.mark.parametrize("spell", [int, np.int64, str, float])
def test_ids_in_the_features_of_choices_are_names_at_every_door(tmp_path: Path, spell: Any) -> None:
    (tmp_path / "log").mkdir()
    pq.write_table(log(), tmp_path / "log" / "log.parquet")
    choices = {spell(number): {"arm": spell(number), "price": 2} for number in range(3)}
    lines = [f"[choices.{number}]\narm = {number}\nprice = 2\n" for number in range(3)]
    columns = 'rows = "events"\naction = "arm"\nreward = "reward"\nprobability = "p"\n'
    (tmp_path / "columns.toml").write_text(columns + "".join(lines) + '[context]\nuser = ["user"]\n')
    folder = str(tmp_path / "log")
    for source, how in (
        (log(), ROLES | {"choices": choices}),
        (folder, ROLES | {"choices": choices}),
        (folder, {"columns": str(tmp_path / "columns.toml")}),
    ):
        bandit = AutoML(seed=1, live_configs=None, begin_with=["user*arm"]).fit_table(source, **how)
        assert bandit.workspace.identities == {"arm^arm"}
        given = [{"arm": number, "price": 2} for number in range(3)]
        written = [{"arm": str(number), "price": 2.0} for number in range(3)]
        probabilities = bandit.predict({"user": 2}, given)
        assert probabilities.argmax() == BEST[2]
        assert probabilities.tolist() == bandit.predict({"user": 2}, written).tolist()


@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
@pytest.mark.parametrize("column", ["code", "vector", "place"])
def test_regressions_and_classes_have_the_names_of_dicts(tmp_path: Path, make: Any, column: str) -> None:
    kind = np.random.default_rng(0).integers(0, 3, 900)
    values: dict[str, list[Any]] = {
        "code": [7, 8, 9],
        "vector": [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        "place": [{"geo": {"city": name}, "tags": [name]} for name in "xyz"],
    }
    array = pa.array([values[column][each] for each in kind])
    array = array.dictionary_encode() if column == "code" else array
    labels = np.array([5.0, -3.0, 1.0])
    y = labels[kind] if make is AutoMLRegressor else labels[kind].astype(str)
    table = pa.table({column: array, "y": y})
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "t.parquet")
    sources = [table, table.to_pandas(), ds.dataset(tmp_path / "t.arrow", format="ipc")]
    for source in [*sources, str(tmp_path / "t.parquet")] if column != "code" else sources:
        model = make(seed=1).fit_table(source, label="y")
        rows = [{column: value} for value in values[column]]
        if make is AutoMLRegressor:
            assert np.allclose(model.predict(rows), labels, atol=0.5)
        else:
            found = [max(each, key=each.get) for each in map(model.predict_proba, rows)]
            assert found == labels.astype(str).tolist()
        if column == "code":
            assert model.workspace.identities == {"code^code"}
