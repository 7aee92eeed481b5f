"""`fit` learns events and `fit_table` learns tables; each rejects the other's sources and names the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, InputError
from onlineauto.interop import from_dicts

pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")
pytestmark = pytest.mark.lane("quick")

FRAME = pandas.DataFrame({"u": ["t", "a"] * 9, "arm": ["x", "y"] * 9, "r": [1, 0] * 9, "p": [0.5] * 18})
BANDIT = r"fit_table\(table, actions=…, probability=…, reward=…\), or cost in place of reward"
LABELS = r"fit_table\(table, label=…\), or fit\(frame, y\) with separate labels"
EVENTS = "; fit learns files and iterables of events$"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(FRAME.to_dict("list")), "log.parquet")
    Path("log.csv").write_text(FRAME.to_csv())
    return tmp_path


def tables(kind: str) -> Any:
    table = pa.table(FRAME.to_dict("list"))
    return {
        "pandas": FRAME,
        "polars": polars.from_pandas(FRAME),
        "table": table,
        "batch": table.to_batches()[0],
        "path": "log.parquet",
        "pattern": Path("*.parquet"),
        "folder": ".",
        "paths": ["log.parquet"],
        "dataset": ds.dataset(table),
        "reader": table.to_reader(),
    }[kind]


@pytest.mark.parametrize("make", [AutoML, AutoMLRegressor, AutoMLClassifier])
@pytest.mark.parametrize("kind", ["pandas", "polars", "table", "batch"])
def test_fit_of_a_frame_names_fit_table_and_the_columns(make: Any, kind: str) -> None:
    call = BANDIT if make is AutoML else LABELS
    with pytest.raises(InputError, match=f"^a frame has columns: {call}; there are u, arm, r, p$"):
        make().fit(tables(kind))


@pytest.mark.parametrize("make", [AutoML, AutoMLRegressor, AutoMLClassifier])
@pytest.mark.parametrize("kind", ["path", "pattern", "folder", "paths", "dataset", "reader"])
def test_fit_of_a_dataset_names_fit_table(make: Any, kind: str, folder: Path) -> None:
    call = BANDIT if make is AutoML else LABELS
    with pytest.raises(InputError, match=f"^Parquet and Arrow have columns: {call}$"):
        make().fit(tables(kind))


@pytest.mark.parametrize("make", [AutoML, AutoMLRegressor, AutoMLClassifier])
def test_fit_table_of_events_names_fit(make: Any, folder: Path) -> None:
    blocks = from_dicts([{"context": {"x": 1}, "label": 1.0}])
    for source, what in (
        ([], "a list is no table: give a frame, a dataset of pyarrow or a path of Parquet"),
        ([{"context": {"x": 1}, "label": 1.0}], "a list is no table: give a frame"),
        (["1 |a x"], "a list is no table: its texts are no paths of Parquet"),
        (blocks, "a generator is no table: give a frame"),
        (b"1 |a x", "a bytes is no table: give a frame"),
        (np.ones((2, 2)), "a ndarray is no table: give a frame"),
        (FRAME.to_dict("list"), "a dict is no table: make a frame of it, such as pandas.DataFrame"),
        (polars.from_pandas(FRAME).lazy(), "a LazyFrame is no table: collect it, frame.collect()"),
        (pq.ParquetFile("log.parquet"), "a ParquetFile is no table: pass its path"),
        ("log.csv", "a str is no table: it is no file of Parquet; read a table, such as CSV, with pandas"),
        ("nowhere", "a str is no table: there is no file of Parquet 'nowhere', nor in a folder"),
    ):
        with pytest.raises(InputError, match=f"^{what}.*{EVENTS}"):
            make().fit_table(source)


@pytest.mark.parametrize("make", [AutoML, AutoMLRegressor, AutoMLClassifier])
def test_fit_of_what_becomes_a_table_names_fit_table(make: Any, folder: Path) -> None:
    with pytest.raises(InputError, match=r"LazyFrame is not .* frame\.collect\(\), for fit_table$"):
        make().fit(polars.from_pandas(FRAME).lazy())
    with pytest.raises(InputError, match="Parquet and Arrow have columns: fit_table"):
        make().fit(pq.ParquetFile("log.parquet"))
    with pytest.raises(InputError, match="read a table with pandas or polars, for fit_table"):
        make().fit("log.csv")


def test_a_frame_needs_the_names_of_its_columns() -> None:
    named: dict[str, Any] = {"actions": "arm", "probability": "p", "reward": "r"}
    missing = [{name: named[name] for name in named if name != absent} for absent in named]
    for names in ({}, *missing, named | {"cost": "r"}):
        with pytest.raises(
            InputError, match=f"^a frame needs the names .*: {BANDIT}; there are u, arm, r, p$"
        ):
            AutoML().fit_table(FRAME, **names)
    assert AutoML().fit_table(FRAME, **named).events == 18
    with pytest.raises(
        InputError, match=r"^fit_table\(frame, label=…\) names one of its columns: u, arm, r, p"
    ):
        AutoMLRegressor().fit_table(FRAME)


@pytest.mark.parametrize("make", [AutoML, AutoMLRegressor, AutoMLClassifier])
def test_a_frame_has_no_description_of_columns(make: Any) -> None:
    call = BANDIT if make is AutoML else LABELS
    with pytest.raises(InputError, match=f"^columns describes a dataset; .* are named: {call}$"):
        make().fit_table(FRAME, columns={"rows": "labels", "label": "r", "context": ["u"]})


@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
def test_columns_and_labels_exclude_each_other(make: Any, folder: Path) -> None:
    columns = {"rows": "labels", "label": "r", "context": ["u"]}
    assert make().fit_table("log.parquet", columns=columns).events == 18
    with pytest.raises(InputError, match="give either columns or label and weight"):
        make().fit_table("log.parquet", columns=columns, label="r")


@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
def test_a_frame_with_its_labels_is_learnt_like_one_with_separate_labels(make: Any) -> None:
    rows = FRAME[["u", "p"]]
    together, apart = make().fit_table(rows.assign(y=FRAME.r), label="y"), make().fit(rows, FRAME.r)
    assert together.events == apart.events == 18
    assert together.workspace.weights.tobytes() == apart.workspace.weights.tobytes()
