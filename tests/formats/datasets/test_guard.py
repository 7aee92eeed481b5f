"""Damaged buffers, texts that are not UTF-8, huge lists and links are counted or refused, at every door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor
from onlineauto.errors import InputError, ParseError
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.formats.lines.diagnostics import ProblemCode
from onlineauto.interop import from_frame
from tests.formats.datasets.test_bad_datasets import learnt

pytestmark = pytest.mark.lane("sampled")

N = 60
COLUMNS: dict[str, Any] = {
    "rows": "events",
    "action": "arm",
    "choices": ["art", "news", "sport"],
    "reward": "click",
    "probability": "p",
    "context": ["x"],
}
NAMED: dict[str, Any] = {"actions": "arm", "reward": "click", "probability": "p"}


def rows(**changed: Any) -> dict[str, Any]:
    arms = pa.array(["art", "news", "sport"]).take(pa.array(np.arange(N) % 3))
    return {
        "x": pa.array(["u", "v"] * (N // 2)),
        "arm": arms,
        "click": np.ones(N),
        "p": np.full(N, 1 / 3),
    } | changed


def batch(**changed: Any) -> pa.RecordBatch:
    return pa.record_batch(rows(**changed))


def of_buffers(kind: Any, *buffers: Any, children: Any = None) -> pa.Array:
    made = [None if each is None else pa.py_buffer(np.ascontiguousarray(each).tobytes()) for each in buffers]
    return pa.Array.from_buffers(kind, N, made, children=children)


def offsets(kind: Any, bad: int, step: int = 2) -> Any:
    found = (np.arange(N + 1) * step).astype(kind)
    found[30] = bad
    return found


def coded(bad: int, values: Any = None) -> pa.Array:
    codes = np.zeros(N, np.int32)
    codes[5] = bad
    values = pa.array(["tom", "ann"]) if values is None else values
    return pa.DictionaryArray.from_arrays(pa.array(codes), values, safe=False)


LETTERS, ONES = np.frombuffer(b"ab" * N, np.uint8), pa.array(np.ones(2 * N))
VIEWS = np.zeros((N, 4), np.int32)
VIEWS[5] = [40, 0, 7, 0]  # a text of 40 bytes in a buffer that does not exist
DAMAGED = {
    "dictionary": coded(7),
    "dictionary far": coded(2_000_000_000),
    "dictionary negative": coded(-3),
    "text": of_buffers(pa.string(), None, offsets(np.int32, 2_000_000_000), LETTERS),
    "text negative": of_buffers(pa.string(), None, offsets(np.int32, -5), LETTERS),
    "large text": of_buffers(pa.large_string(), None, offsets(np.int64, 1 << 60), LETTERS),
    "bytes": of_buffers(pa.binary(), None, offsets(np.int32, 1 << 30), LETTERS),
    "text view": of_buffers(pa.string_view(), None, VIEWS),
    "list": of_buffers(pa.list_(pa.float64()), None, offsets(np.int32, 2_000_000_000), children=[ONES]),
    "list negative": of_buffers(pa.list_(pa.float64()), None, offsets(np.int32, -4), children=[ONES]),
    "large list": of_buffers(pa.large_list(pa.float64()), None, offsets(np.int64, 1 << 50), children=[ONES]),
    "list of codes": of_buffers(
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
        None,
        np.arange(N + 1, dtype=np.int32),
        children=[coded(9)],
    ),
}


def reader(*batches: pa.RecordBatch) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches)


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("inside", [False, True], ids=["column", "field"])
def test_damaged_buffer_is_counted_and_the_other_batches_are_learnt(name: str, inside: bool) -> None:
    bad, column = DAMAGED[name], "x"
    whole = pa.array(["u"] * N) if pa.types.is_dictionary(bad.type) else pa.nulls(N, bad.type)
    if pa.types.is_dictionary(bad.type):
        whole = whole.dictionary_encode()
    if inside:
        column = "x.field"
        bad, whole = (pa.StructArray.from_arrays([each], ["field"]) for each in (bad, whole))
    batches = [batch(x=whole), batch(x=bad), batch(x=whole)]
    found = learnt(DatasetSource(reader(*batches), COLUMNS | {"context": [column]}), cb_explore_adf=True)
    assert found.events == 2 * N  # type: ignore[attr-defined]
    assert found.diagnostics.counts == {ProblemCode.ROW_GROUP: 1}
    assert str(found.diagnostics.kept[0]).startswith(
        f"<reader>:{N + 1}:1: row group cannot be read: 1 of 1: "
    )


@pytest.mark.parametrize("name", ["dictionary far", "text", "list"])
def test_damaged_buffer_of_a_filtered_dataset_is_found_before_the_filter(name: str) -> None:
    table = pa.Table.from_batches([batch(x=DAMAGED[name])])
    source = ds.dataset(table).filter(ds.field("x").is_valid() & (ds.field("click") > 0))
    with pytest.raises(InputError, match="nothing was learnt"):
        AutoML().fit_table(source, columns=COLUMNS)


def test_column_of_a_type_without_features_is_refused_before_it_is_read() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([N], pa.int32()), pa.array(["a"]))
    nested = coded(0, values=coded(0).cast(pa.string())[:1].dictionary_encode())
    for values in (pa.nulls(N, pa.list_view(pa.float64())), runs, nested):
        with pytest.raises(InputError, match="has no features"):
            AutoML().fit_table(reader(batch(x=values)), columns=COLUMNS)


def test_strict_parse_stops_at_a_damaged_batch() -> None:
    source = DatasetSource(reader(batch(x=coded(0)), batch(x=coded(9))), COLUMNS)
    with pytest.raises(ParseError, match=rf"<reader>:{N + 1}:1: row group cannot be read"):
        learnt(source, cb_explore_adf=True, strict_parse=True)


@pytest.mark.parametrize("name", ["dictionary far", "text", "list"])
def test_damaged_frame_is_refused(name: str) -> None:
    table = pa.Table.from_batches([batch(x=DAMAGED[name])])
    for frame in (table, batch(x=DAMAGED[name])):
        with pytest.raises(InputError, match="nvalid"):
            AutoML().fit_table(frame, **NAMED)
        with pytest.raises(InputError, match="nvalid"):
            list(from_frame(frame, **NAMED))
    with pytest.raises(InputError, match="nvalid"):
        AutoMLClassifier().fit([{"a": 1}] * N, y=DAMAGED["dictionary far"])


def test_batch_is_a_frame() -> None:
    assert AutoML().fit_table(batch(), **NAMED).events == N


def test_batch_with_other_columns_than_its_reader_is_counted() -> None:
    other = pa.record_batch({"x": [1.5]})
    found = learnt(DatasetSource(reader(batch(), other), COLUMNS), cb_explore_adf=True)
    assert found.events == N  # type: ignore[attr-defined]
    assert "a batch has other columns than its reader" in str(found.diagnostics.kept[0])


def test_error_of_a_reader_is_a_counted_problem() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch()
        raise RuntimeError("the server has gone")

    source = pa.RecordBatchReader.from_batches(batch().schema, batches())
    with pytest.warns(UserWarning, match="the server has gone"):
        assert AutoML().fit_table(source, columns=COLUMNS).events == N


# -- texts that are not UTF-8 --------------------------------------------------------------------------


def latin(values: list[bytes]) -> pa.Array:
    """Return texts that may not be UTF-8, as other programs write them."""
    return pa.array(values, pa.binary()).view(pa.string())


BAD = latin([b"art", b"caf\xe9", b"news"] * (N // 3))


def as_source(form: str, table: pa.Table, path: Path) -> Any:
    if form == "parquet":
        pq.write_table(table, path / "t.parquet")
        return path / "t.parquet"
    return table.to_reader()


@pytest.mark.parametrize("form", ["parquet", "reader"])
def test_context_and_tag_that_are_not_utf8_are_bytes(form: str, tmp_path: Path) -> None:
    source = as_source(form, pa.table(rows(x=BAD, id=BAD)), tmp_path)
    found = learnt(DatasetSource(source, COLUMNS | {"tag": "id"}), cb_explore_adf=True)
    assert found.events == N  # type: ignore[attr-defined]
    assert not found.diagnostics.total


@pytest.mark.parametrize("choices", [["art", "news"], None])
def test_action_that_is_not_utf8_is_counted_with_its_row(choices: Any, tmp_path: Path) -> None:
    source = as_source("parquet", pa.table(rows(arm=BAD)), tmp_path)
    columns = {name: value for name, value in COLUMNS.items() if name != "choices" or choices}
    found = learnt(
        DatasetSource(source, columns | ({"choices": choices} if choices else {})), cb_explore_adf=True
    )
    assert found.events == 40  # type: ignore[attr-defined]
    assert found.diagnostics.counts == {ProblemCode.JSON_LABEL_INDEX: 20}
    assert r"t.parquet:2:1: 'caf\xe9' labels an action that the event does not have" in str(
        found.diagnostics.kept[0]
    )


@pytest.mark.parametrize("form", ["parquet", "reader"])
def test_label_that_is_not_utf8_is_missing_and_a_feature_is_bytes(form: str, tmp_path: Path) -> None:
    columns = {"y": BAD, "word": BAD, "words": pa.array([["a"]] * N)}
    source = as_source(form, pa.table(columns), tmp_path)
    with pytest.warns(UserWarning, match="20, of which the first: event 1: the label is missing"):
        assert AutoMLClassifier().fit_table(source, label="y").events == 40


def test_csv_that_is_not_utf8_is_bytes(tmp_path: Path) -> None:
    lines = [b"x,arm,click,p", *[b"caf\xe9,art,1,0.5", b"u,news,,0.5"] * 50]
    (tmp_path / "log.csv").write_bytes(b"\n".join(lines))
    read = ds.CsvFragmentScanOptions(convert_options=pa.csv.ConvertOptions(null_values=["u", ""]))
    schema = pa.schema({"x": pa.string(), "arm": pa.string(), "click": pa.float64(), "p": pa.float64()})
    source = ds.dataset(
        tmp_path / "log.csv", schema, format=ds.CsvFileFormat(default_fragment_scan_options=read)
    )
    found = learnt(DatasetSource(source, COLUMNS), cb_explore_adf=True)
    assert (found.events, found.diagnostics.total) == (100, 0)  # type: ignore[attr-defined]


def test_name_of_a_column_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = as_source("parquet", pa.table(rows(caff=["x"] * N)), tmp_path)
    path.write_bytes(path.read_bytes().replace(b"caff", b"caf\xe9"))
    with pytest.raises(InputError, match=r"t\.parquet: cannot be read"):
        AutoML().fit_table(path, **NAMED)


# -- lists ---------------------------------------------------------------------------------------------


def test_event_with_a_huge_list_is_counted_and_skipped(tmp_path: Path) -> None:
    huge = pa.array([[0.5]] * (N - 1) + [np.zeros(70_000)], pa.list_(pa.float32()))
    path = as_source("parquet", pa.table(rows(x=huge, y=np.arange(N))), tmp_path)
    found = learnt(DatasetSource(path, COLUMNS), cb_explore_adf=True)
    assert found.events == N - 1  # type: ignore[attr-defined]
    assert "a list of 'x' has more than 65,536 elements; event skipped" in str(found.diagnostics.kept[0])
    columns = {"rows": "labels", "label": "y", "context": ["x"]}
    with pytest.warns(UserWarning, match=rf"t\.parquet:{N}:1: a list of 'x' has more"):
        assert AutoMLRegressor().fit_table(path, columns=columns).events == N - 1


def test_event_with_too_many_actions_is_counted_and_skipped() -> None:
    many = 140_000
    lists = pa.array([[{"a": "x"}] * 2, [{"a": "x"}] * many, [{"a": "y"}] * 2])
    columns: dict[str, Any] = {"rows": "lists", "list": "of", "actions": ["a"]}
    found = learnt(DatasetSource(pa.table({"of": lists}).to_reader(), columns), cb_explore_adf=True)
    assert (found.events, found.diagnostics.counts) == (2, {ProblemCode.LIST_TOO_LONG: 1})  # type: ignore[attr-defined]
    table = pa.table({"id": ["a", "a"] + ["b"] * many + ["c", "c"], "a": ["x", "y"] * (2 + many // 2)})
    columns = {"rows": "actions", "event": "id", "actions": ["a"]}
    found = learnt(DatasetSource(table.to_reader(20_000), columns), cb_explore_adf=True)
    assert (found.events, found.diagnostics.counts) == (2, {ProblemCode.LIST_TOO_LONG: 1})  # type: ignore[attr-defined]


# -- links ---------------------------------------------------------------------------------------------


def test_links_are_followed_once(tmp_path: Path) -> None:
    folder, outside = tmp_path / "logs", tmp_path / "outside"
    for each in (folder / "one", folder / "two", outside):
        each.mkdir(parents=True)
        pq.write_table(pa.table(rows()), each / "part.parquet")
    (folder / "latest").symlink_to("two")
    (folder / "one" / "up").symlink_to("..")
    (folder / "self").symlink_to(".")
    (folder / "file.parquet").symlink_to("one/part.parquet")
    (folder / "elsewhere").symlink_to(outside)
    for source in (str(folder), f"{folder}/**/*.parquet"):
        assert AutoML().fit_table(source, **NAMED).events == 3 * N, source
    for link in ("self", "file.parquet"):
        (folder / link).unlink()
    (folder / "one" / "up").unlink()
    days = [folder / "one", folder / "two", folder / "latest"]
    assert len(DatasetSource(days).files) == 2
    assert AutoML().fit_table(days, **NAMED).events == 2 * N
    assert AutoML().fit_table(f"{folder}/l*/*.parquet", **NAMED).events == N
    assert AutoML().fit_table(ds.dataset(folder, format="parquet"), **NAMED).events == 3 * N


def test_folder_of_links_alone_is_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    pq.write_table(pa.table(rows()), tmp_path / "real" / "part.parquet")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "day").symlink_to(tmp_path / "real")
    assert AutoML().fit_table(tmp_path / "links", **NAMED).events == N


# -- what fit says -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["timestamp", "duration", "map", "lists of lists", "lists of structs"])
@pytest.mark.parametrize("model", [AutoMLRegressor, AutoMLClassifier])
def test_columns_left_out_are_named_in_a_warning(kind: str, model: Any, tmp_path: Path) -> None:
    values = {
        "timestamp": pa.array([5] * N, pa.timestamp("us")),
        "duration": pa.array([5] * N, pa.duration("s")),
        "map": pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int32())),
        "lists of lists": [[[1.0]]] * N,
        "lists of structs": [[{"a": 1}]] * N,
    }
    path = as_source(
        "parquet", pa.table({"y": [0.0, 1.0] * (N // 2), "x": ["a"] * N, "day": values[kind]}), tmp_path
    )
    with pytest.warns(UserWarning, match="column cannot be a feature: day: "):
        model().fit_table(path, label="y")


def test_sources_that_are_no_frames_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pa.table({"a": ["x", "y"] * 9, "y": [1.0, 2.0] * 9})
    pq.write_table(table, "t.parquet")
    pq.write_table(pa.table([["x"], ["y"], [1.0]], names=["a", "a", "y"]), "twice.parquet")
    (tmp_path / "q.csv").write_text("a,y\nx,1\n")
    (tmp_path / "empty").mkdir()
    for source, label, why in (
        ("q.csv", "y", "read a table, such as CSV, with pandas or polars and pass the frame"),
        ({"a": ["x"]}, "y", "make a frame of it"),
        (pq.ParquetFile("t.parquet"), "y", "pass its path"),
        ("empty", "y", "there is no file of Parquet 'empty', nor in a folder"),
        ("twice.parquet", "y", "there are 2 columns 'a': rename them"),
        ("t.parquet", "yy", r"there is no column 'yy' \(label\); there are a, y"),
        (["1 |a x"], "y", "its texts are no paths of Parquet"),
    ):
        with pytest.raises(InputError, match=why):
            AutoMLRegressor().fit_table(source, label=label)
    assert AutoMLRegressor().fit_table(["t.parquet"], label="y").events == 18


def test_damaged_columns_of_arrow_in_pandas_are_refused() -> None:
    damaged = pa.DictionaryArray.from_arrays(pa.array([0, 7, -5], pa.int32()), pa.array(["a"]), safe=False)
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([damaged])))
    frame = pd.DataFrame({"x": column, "arm": ["art"] * 3, "click": 1.0, "p": 1 / 3})
    for fit in (
        lambda: AutoML().fit_table(frame, **NAMED),
        lambda: AutoMLRegressor().fit_table(frame, label="click"),
        lambda: AutoMLClassifier().fit(frame[["x"]], ["a", "b", "c"]),
    ):
        with pytest.raises(InputError, match=r"column 'x': .*indices"):
            fit()
    with pytest.raises(InputError, match="out-of-bounds"):
        AutoMLClassifier().fit(frame[["p"]], column)


def test_names_of_columns_that_are_not_utf8_are_refused() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.table(rows(zzzz=np.ones(N))).schema) as file:
        file.write_table(pa.table(rows(zzzz=np.ones(N))))
    table = pa.ipc.open_file(sink.getvalue().to_pybytes().replace(b"zzzz", b"zz\xff\xfe")).read_all()
    for source in (table, table.to_batches()[0]):
        with pytest.raises(InputError, match="can't decode"):
            AutoML().fit_table(source, **NAMED)
        with pytest.raises(InputError, match="can't decode"):
            AutoMLRegressor().fit_table(source, label="click")
