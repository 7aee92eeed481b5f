"""Bad rows of a dataset are located and counted, or raise an error that names them; other rows are read."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from onlineauto import AutoMLRegressor, Workspace
from onlineauto.errors import InputError, OptionError, ParseError
from onlineauto.formats.datasets.columns import columns_of, read_columns
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.formats.datasets.inference import evidence_of, infer_columns
from onlineauto.formats.lines.diagnostics import ProblemCode
from tests.formats.datasets.test_resume import LABELS, labels

pytestmark = pytest.mark.lane("sampled")

EVENTS = {
    "rows": "events",
    "action": "arm",
    "choices": ["a", "b"],
    "cost": "cost",
    "probability": "p",
    "context": ["x"],
}


def learnt(source: Any, **options: Any) -> Workspace:
    workspace = Workspace(**options)
    workspace.events = 0  # type: ignore[attr-defined]
    for block, _ in workspace.stream(source):
        workspace.events += len(block)  # type: ignore[attr-defined]
    return workspace


def written(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


def damaged(path: Path, group: int, *, column: int = 1) -> Path:
    """Overwrite the pages of a column of a row group."""
    found = pq.ParquetFile(path).metadata.row_group(group).column(column)
    start = found.dictionary_page_offset or found.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + found.total_compressed_size] = b"\xff" * found.total_compressed_size
    path.write_bytes(data)
    return path


def test_damaged_row_group_is_counted_and_skipped(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path / f"{number}.parquet", labels(100, 100 * number), row_group_size=25)
    damaged(tmp_path / "1.parquet", 2)
    found = learnt(DatasetSource(tmp_path, LABELS))
    assert found.events == 275  # type: ignore[attr-defined]
    assert found.diagnostics.counts == {ProblemCode.ROW_GROUP: 1}
    [problem] = found.diagnostics.kept
    assert str(problem).startswith(f"{tmp_path / '1.parquet'}:51:1: row group cannot be read: 3 of 4: ")


def test_flipped_bit_in_a_page_with_a_checksum_is_noticed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    path = written(tmp_path / "data.parquet", labels(100, 0), row_group_size=25, **options)
    column = pq.ParquetFile(path).metadata.row_group(2).column(1)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 3] ^= 1
    path.write_bytes(data)
    found = learnt(DatasetSource(path, LABELS))
    assert found.events == 75  # type: ignore[attr-defined]
    assert found.diagnostics.counts == {ProblemCode.ROW_GROUP: 1}


def test_file_that_is_not_parquet_is_counted_and_skipped(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path / f"{number}.parquet", labels(100, 100 * number))
    (tmp_path / "1.parquet").write_bytes(b"PAR1, and then a transfer that broke off")
    (tmp_path / "3.parquet").write_bytes(b"")
    found = learnt(DatasetSource(tmp_path, LABELS))
    assert found.events == 200  # type: ignore[attr-defined]
    assert found.diagnostics.counts == {ProblemCode.NOT_PARQUET: 2}
    assert "1.parquet:1:1: the file cannot be opened: " in str(found.diagnostics.kept[0])


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"y": [1.0], "x": [0.5]}, "there is no column 'word' (features)"),
        ({"y": [1.0], "x": ["a"], "word": ["b"]}, "column 'x' has texts here, and numbers in files before"),
        ({"y": ["a"], "x": [1.0], "word": ["b"]}, "column 'y' (label) is of string, not of numbers"),
    ],
)
def test_file_with_other_columns_is_counted_and_skipped(tmp_path: Path, other: Any, why: str) -> None:
    written(tmp_path / "0.parquet", labels(50))
    written(tmp_path / "1.parquet", pa.table(other))
    written(tmp_path / "2.parquet", labels(50, 50).set_column(2, "x", pa.array(range(50), pa.int16())))
    found = learnt(DatasetSource(tmp_path, LABELS))
    assert found.events == 100  # type: ignore[attr-defined]
    assert found.diagnostics.counts == {ProblemCode.OTHER_COLUMNS: 1}
    assert why in str(found.diagnostics.kept[0])


def test_strict_parse_stops_at_the_first_problem_and_keeps_what_came_before(tmp_path: Path) -> None:
    written(tmp_path / "0.parquet", labels(50))
    (tmp_path / "1.parquet").write_bytes(b"PAR1")
    workspace = Workspace(strict_parse=True)
    with pytest.raises(ParseError, match=r"1\.parquet:1:1: the file cannot be opened"):
        workspace.fit(DatasetSource(tmp_path, LABELS))
    assert workspace.position.events == 50


def test_column_that_is_not_there_is_an_error_before_anything_is_learnt(tmp_path: Path) -> None:
    path = written(tmp_path / "0.parquet", labels(5))
    with pytest.raises(InputError, match=r"0\.parquet: there is no column 'age' \(features\); there are y, "):
        Workspace().fit(DatasetSource(path, {"rows": "labels", "label": "y", "context": ["age"]}))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())), "is of map<string, int32"),
        (pa.array([1], pa.timestamp("us")), r"is of timestamp\[us\], which has no features; cast it"),
        (pa.array([5], pa.duration("s")), r"is of duration\[s\]"),
        (
            pa.array([{"a": 1}]),
            "is of struct<a: int64>, which has no features; name its fields, as column.field",
        ),
        (pa.array([[[1]]]), "is of lists of list<"),
    ],
)
def test_type_without_features_is_named(tmp_path: Path, values: pa.Array, why: str) -> None:
    path = written(tmp_path / "0.parquet", pa.table({"y": [1.0], "m": values}))
    with pytest.raises(InputError, match=f"column 'm' {why}"):
        Workspace().fit(DatasetSource(path, {"rows": "labels", "label": "y", "context": ["m"]}))


def test_inferred_columns_leave_out_such_a_type_and_count_it(tmp_path: Path) -> None:
    times = pa.array([1, 2], pa.timestamp("us"))
    path = written(tmp_path / "0.parquet", pa.table({"y": [1.0, 0.0], "x": [1, 2], "t": times}))
    found = learnt(path)
    assert found.events == 2  # type: ignore[attr-defined]
    assert found.diagnostics.counts == {ProblemCode.COLUMN_LEFT_OUT: 1}


def test_bad_rows_are_located_and_left_out(tmp_path: Path) -> None:
    inf, nan = float("inf"), float("nan")
    rows = [
        ("a", -1.0, 0.5, 1.0, None),
        ("a", None, None, 1.0, None),
        ("c", -1.0, 0.5, 1.0, ProblemCode.JSON_LABEL_INDEX),
        (None, -1.0, 0.5, 1.0, ProblemCode.JSON_LABEL_INDEX),
        ("a", inf, 0.5, 1.0, ProblemCode.COST_NOT_FINITE),
        ("a", -1.0, None, 1.0, ProblemCode.NO_PROBABILITY),
        ("a", -1.0, 0.0, 1.0, ProblemCode.PROBABILITY_ZERO),
        ("a", -1.0, -0.5, 1.0, ProblemCode.PROBABILITY_NEGATIVE),
        ("a", -1.0, 1.5, 1.0, ProblemCode.PROBABILITY_ABOVE_ONE),
        ("b", -1.0, 0.5, inf, ProblemCode.VALUE_NOT_FINITE),
        ("b", -1.0, 0.5, nan, None),
    ]
    names = ("arm", "cost", "p", "x")
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    found = learnt(DatasetSource(written(tmp_path / "0.parquet", table), EVENTS), cb_explore_adf=True)
    assert found.events == 3  # type: ignore[attr-defined]
    bad = {(number, row[4]) for number, row in enumerate(rows, 1) if row[4] is not None}
    assert {(each.line, each.code) for each in found.diagnostics.kept} == bad
    assert found.diagnostics.total == len(bad)


def test_missing_probabilities_are_uniform_if_the_option_says_so(tmp_path: Path) -> None:
    table = pa.table({"arm": ["a", "b"], "cost": [-1.0, 0.0], "p": [None, 0.5], "x": [1, 2]})
    path = written(tmp_path / "0.parquet", table)
    by_rows = learnt(DatasetSource(path, EVENTS), cb_explore_adf=True, missing_probability="uniform")
    assert by_rows.diagnostics.counts == {ProblemCode.TAKEN_AS_UNIFORM: 1}
    text = b"shared |x x:1\n0:-1 |arm arm=a\n|arm arm=b\n\nshared |x x:2\n|arm arm=a\n0:0:0.5 |arm arm=b\n"
    by_text = learnt(text, cb_explore_adf=True, missing_probability="uniform")
    assert by_rows.weights.tobytes() == by_text.weights.tobytes()


def test_event_whose_rows_are_apart_is_counted(tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "a", "b", "a", None], "w": ["x", "y", "z", "x", "y"]})
    columns = {"rows": "actions", "event": "id", "actions": ["w"]}
    found = learnt(DatasetSource(written(tmp_path / "0.parquet", table), columns), cb_explore_adf=True)
    assert found.diagnostics.counts == {ProblemCode.EVENT_AGAIN: 1, ProblemCode.EVENT_MISSING: 1}
    assert found.events == 2  # type: ignore[attr-defined]


def test_files_without_rows_are_no_problem(tmp_path: Path) -> None:
    written(tmp_path / "0.parquet", labels(0))
    written(tmp_path / "1.parquet", labels(7))
    found = learnt(DatasetSource(tmp_path, LABELS))
    assert found.events == 7  # type: ignore[attr-defined]
    assert not found.diagnostics.total


def test_column_of_nulls_alone_fits_every_type(tmp_path: Path) -> None:
    none = pa.nulls(3)
    written(tmp_path / "0.parquet", pa.table({"y": [1.0] * 3, "word": none, "x": none}))
    written(tmp_path / "1.parquet", labels(7))
    written(tmp_path / "2.parquet", pa.table({"y": none, "word": none, "x": none}))
    found = learnt(DatasetSource(tmp_path, LABELS))
    assert found.events == 13  # type: ignore[attr-defined]
    assert not found.diagnostics.total


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "no.parquet", tmp_path / "*.parquet", tmp_path):
        with pytest.raises(InputError, match=r"no such file|there is no file"):
            DatasetSource(path)


def test_parquet_in_a_stream_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "0.parquet", labels(5))
    with path.open("rb") as file, pytest.raises(InputError, match="Parquet is read from a file"):
        Workspace().fit(file)
    with pytest.raises(InputError, match="Parquet is read from a file"):
        Workspace().fit(path.read_bytes())


def test_rows_must_fit_the_kind_of_learning(tmp_path: Path) -> None:
    path = written(tmp_path / "0.parquet", labels(5))
    with pytest.raises(OptionError, match=r'rows = "labels" is for single lines'):
        Workspace(cb_explore_adf=True).fit(DatasetSource(path, LABELS))
    with pytest.raises(OptionError, match="not for --cb"):
        Workspace(cb=2).fit(DatasetSource(path, LABELS))
    with pytest.raises(OptionError, match="--vw_exact"):
        Workspace(vw_exact=True).fit(DatasetSource(path, LABELS))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({}, "rows is missing"),
        ({"rows": "row"}, "rows cannot be 'row'"),
        ({"rows": "labels", "lable": "y"}, "unknown key 'lable'"),
        ({"rows": "labels", "cost": "y"}, 'cost cannot be used with rows = "labels"'),
        ({"rows": "lists", "list": "a"}, 'rows = "lists" needs actions'),
        ({"rows": "actions", "event": "a"}, 'rows = "actions" needs actions'),
        ({"rows": "events", "action": "a", "choices": ["x", "x"]}, "each action once"),
        ({"rows": "events", "action": "a", "cost": "c", "reward": "r"}, "exclude each other"),
        (
            {"rows": "lists", "list": "a", "actions": ["b"], "cost": "c"},
            "name the column of that action in chosen",
        ),
        (
            {"rows": "labels", "categories": ["a"]},
            "categories has 'a', which is not a column of any namespace",
        ),
        ({"rows": "labels", "label": 3}, "label is a text, not 3"),
        ({"rows": "labels", "context": {"a": 3}}, "context.a is a list of columns"),
    ],
)
def test_malformed_columns_are_refused(found: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        columns_of(found)


def test_actions_without_features_have_an_empty_table() -> None:
    columns = columns_of({"rows": "actions", "event": "id", "actions": {}})
    assert columns_of(tomllib.loads(columns.toml())) == columns


def test_file_of_columns_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_columns(tmp_path / "no.toml")
    path = tmp_path / "bad.toml"
    path.write_text("rows = labels")
    with pytest.raises(InputError, match=r"bad\.toml: the file of columns is not TOML"):
        read_columns(path)


def test_whole_numbers_named_as_ids_are_inferred_as_categories(tmp_path: Path) -> None:
    numbers = {name: [1, 2] for name in ("user_id", "id", "geo_ids", "itemId", "paid", "grid", "n")}
    path = written(tmp_path / "0.parquet", pa.table({"y": [1.0, 0.0], "x_id": [0.5, 1.5], **numbers}))
    assert DatasetSource(path).columns().categories == ("user_id", "id", "geo_ids", "itemId")


def test_printed_columns_are_read_again(tmp_path: Path) -> None:
    columns = columns_of(EVENTS | {"categories": ["w"], "context": {"a b": ['x"', "y\\", "z\n"], "é": ["w"]}})
    path = tmp_path / "columns.toml"
    path.write_text(columns.toml(name="a\nb"), "utf-8")
    assert read_columns(path) == columns


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ({"a.b": [1], "a": [{"b": 2}]}, "a.b"),
        ({"a": [{"b": {"c": 1}, "b.c": 2}]}, "a.b.c"),
        ({"a": [{"b.c": 1}], "a.b": [{"c": 2}]}, "a.b.c"),
    ],
)
def test_a_name_of_two_columns_is_refused(tmp_path: Path, table: Any, name: str) -> None:
    path = tmp_path / "twice.parquet"
    pq.write_table(pa.table(table | {"label": [1.0], "other": [2.0]}), path)
    for columns in (None, {"rows": "labels", "label": "label", "context": [name]}):
        with pytest.raises(InputError, match=f"there are 2 columns and fields of structs '{name}': rename"):
            AutoMLRegressor().fit_table(str(path), columns=columns)
    columns = {"rows": "labels", "label": "label", "context": ["other"]}
    assert AutoMLRegressor().fit_table(str(path), columns=columns).events == 1


def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (folder := tmp_path / "log").mkdir()
    path = folder / os.fsdecode(b"\xff.parquet")
    with path.open("wb") as file:
        pq.write_table(pa.table({"x": [1.0], "label": [1.0]}), file)
    for source in (path, folder, f"{folder}/*.parquet", [path]):
        with pytest.raises(InputError, match=r"'.*\\udcff.parquet': .* not UTF-8: rename it"):
            DatasetSource(source)


def test_an_action_that_is_not_there_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"arm": ["a"], "reward": [1.0], "p": [0.5]}), tmp_path / "log.parquet")
    columns = {"rows": "events", "action": "nope", "reward": "reward", "probability": "p", "context": []}
    with pytest.raises(
        InputError, match=r"log\.parquet: there is no column 'nope' \(action\); there are arm"
    ):
        DatasetSource(tmp_path / "log.parquet", columns).columns()


@pytest.mark.parametrize("with_nulls", [False, True])
def test_a_flag_of_the_chosen_action_is_no_feature(tmp_path: Path, with_nulls: bool) -> None:
    flag = [1, 0, 0, 1] * 100
    table = {
        "decision_id": [row // 2 for row in range(400)],
        "item": ["a", "b"] * 200,
        "chosen": flag,
        "reward": [1.0 if each or not with_nulls else None for each in flag],
        "p": [0.5] * 400,
    }
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    columns = DatasetSource(tmp_path / "log.parquet").columns()
    assert (columns.rows, columns.event) == ("actions", "decision_id")
    assert not columns.context
    assert columns.actions == {"item": ("item",)}
    assert columns.left_out[0].startswith("chosen: it says which action was taken")


def test_rewards_that_are_all_missing_have_no_range() -> None:
    table = pa.table({"arm": ["a", "b"], "reward": [float("nan")] * 2, "p": [0.5] * 2})
    columns = infer_columns(table.schema, table.to_batches()[0], decides=True)
    assert evidence_of(columns, table.to_batches()[0])["reward"] == "1 distinct value in 2 rows"
    costs = pa.table({"id": [1, 1, 2, 2], "cost": [0.5, None, None, 1.0], "p": [0.5, None, None, 0.5]})
    roles = {"rows": "actions", "event": "id", "actions": {}, "cost": "cost", "probability": "p"}
    source = DatasetSource(pyarrow.dataset.dataset(costs), roles, predicts=True)
    learnt(source, cb_explore_adf=True)
    assert source.like(source.description).columns() == columns_of(roles)
