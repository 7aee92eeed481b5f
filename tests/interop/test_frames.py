"""Frames beside text with the same names and values, for pandas, polars and arrow alike."""

from __future__ import annotations

import builtins
import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto import InputError, Workspace, convert, read
from onlineauto.features.block import UNLABELLED
from onlineauto.features.event import events
from onlineauto.formats.datasets.frame import FrameColumns
from onlineauto.interop import event_dsjson, from_dicts, from_frame, write_text
from tests.interop.learnt import ADF, lines_of, lines_of_text, predictions

Data = dict[str, list[Any]]

LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "pandas": pandas.DataFrame,
    "pandas nullable": lambda data: pandas.DataFrame(data).convert_dtypes(),
    "pandas arrow": lambda data: pandas.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda data: polars.DataFrame(data, strict=False),
    "pyarrow": pyarrow.table,
}
each_library = pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES.keys())

COLORS = ["red", "green", "dark blue", "7", None]
ROW = st.fixed_dictionaries(
    {
        "age": st.one_of(st.none(), st.floats(-100, 100, width=32), st.floats(-1, 1)),
        "n": st.integers(-3, 2**40),
        "new": st.booleans(),
        "color": st.sampled_from(COLORS),
        "arm": st.sampled_from(["a", "b", "c"]),
        "cost": st.one_of(st.none(), st.floats(-2, 2)),
        "p": st.floats(0.01, 1),
    }
)


def columns_of(rows: Sequence[Mapping[str, Any]]) -> Data:
    return {name: [row[name] for row in rows] for name in rows[0]}


def is_there(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def as_dict(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event whose actions are the arms, as a mapping."""
    context = {"who": {name: row[name] for name in ("age", "n", "new")}, "color": {"color": row["color"]}}
    event: dict[str, Any] = {"context": context, "actions": [{"arm": arm} for arm in "abc"]}
    if is_there(row["cost"]):
        event |= {"chosen": "abc".index(row["arm"]), "cost": row["cost"], "probability": row["p"]}
    return event


WIDE: dict[str, Any] = {
    "context": {"who": ["age", "n", "new"], "color": ["color"]},
    "actions": "arm",
    "choices": ["a", "b", "c"],
    "cost": "cost",
    "probability": "p",
}


@each_library
@given(rows=st.lists(ROW, min_size=1, max_size=6), size=st.integers(1, 4))
def test_rows_that_are_events(make: Callable[[Any], Any], rows: list[dict[str, Any]], size: int) -> None:
    rows[0] |= {
        "age": 0.5,
        "color": "red",
        "cost": 0.25,
    }  # libraries tell the type of a column by what is there
    blocks = list(from_frame(make(columns_of(rows)), **WIDE, events_per_block=size))
    expected = list(from_dicts(map(as_dict, rows)))  # which are those of the text
    assert lines_of(blocks) == lines_of(expected)
    assert predictions(blocks, **ADF) == predictions(expected, **ADF)


@each_library
@given(events=st.lists(st.lists(ROW, min_size=1, max_size=3), min_size=1, max_size=4), size=st.integers(1, 3))
@pytest.mark.parametrize("shared", [True, False])
def test_rows_that_are_actions(
    make: Callable[[Any], Any], events: list[list[dict[str, Any]]], size: int, shared: bool
) -> None:
    dicts, rows = [], []
    for number, event in enumerate(events):
        chosen = next((i for i, row in enumerate(event) if row["cost"] is not None), None)
        for i, row in enumerate(event):
            rows.append(row | {"id": f"e{number}", "age": 0.5, "color": row["color"] or "red"})
            if i != chosen:
                rows[-1]["cost"] = None
        mine = rows[-len(event) :]
        made: dict[str, Any] = {"actions": [{"arm": row["arm"], "n": row["n"]} for row in mine]}
        if shared:
            made["context"] = {"color": mine[0]["color"], "new": mine[0]["new"]}
        if chosen is not None:
            made |= {"chosen": chosen, "cost": event[chosen]["cost"], "probability": event[chosen]["p"]}
        dicts.append(made)
    if all(row["cost"] is None for row in rows):
        return  # no library knows that these are numbers
    blocks = list(
        from_frame(
            make(columns_of(rows)),
            context=["color", "new"] if shared else [],
            actions=["arm", "n"],
            event="id",
            cost="cost",
            probability="p",
            events_per_block=size,
        )
    )
    assert lines_of(blocks) == lines_of(from_dicts(dicts))
    assert predictions(blocks, **ADF) == predictions(from_dicts(dicts), **ADF)


def test_choices_may_have_features() -> None:
    choices: dict[str, dict[str, Any]] = {"a": {"kind": "news", "size": {"px": 0.5}}, "b": {"kind": "ad"}}
    frame = polars.DataFrame({"u": ["x", "y"], "arm": ["b", "a"], "c": [1, 0], "p": [1, 1]})
    blocks = from_frame(frame, context=["u"], actions="arm", choices=choices, cost="c", probability="p")
    text = (
        "shared |u u=x\n|kind kind=news |size px:0.5\n0:1:1 |kind kind=ad\n\n"
        "shared |u u=y\n0:0:1 |kind kind=news |size px:0.5\n|kind kind=ad\n\n"
    )
    assert lines_of(blocks) == lines_of_text(text, "cb_adf")


def test_events_without_a_log_are_to_predict() -> None:
    frame = polars.DataFrame({"u": ["x"], "arm": ["a"]})
    [block] = from_frame(frame, context=["u"], actions="arm", choices=["a", "b"])
    assert Workspace(cb_explore_adf=True).predict_block(block).score.tolist() == [0.5, 0.5]


def test_frames_without_columns_have_rows() -> None:
    frame = pandas.DataFrame(index=range(4))
    assert list(FrameColumns(frame).rows()) == [{}] * 4
    assert sum(map(len, from_frame(frame, context=[]))) == 4


@pytest.mark.filterwarnings("ignore:.*problem:UserWarning")  # of numbers far beyond all before
@given(rows=st.lists(ROW, min_size=1, max_size=5))
def test_frames_text_and_binary_lose_nothing(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    directory = tmp_path_factory.mktemp("round")
    rows[0] |= {"age": 0.5, "color": "red", "cost": 0.25}
    blocks = list(from_frame(polars.DataFrame(columns_of(rows)), **WIDE))
    convert(blocks, directory / "1.blocks", cb_explore_adf=True)
    convert(directory / "1.blocks", directory / "2.txt", cb_explore_adf=True)
    convert(directory / "2.txt", directory / "3.blocks", cb_explore_adf=True)
    write_text(map(as_dict, rows), directory / "4.txt")
    models = [Workspace(**ADF).fit(path).weights.tobytes() for path in sorted(directory.iterdir())]
    assert len(models) == 4
    assert len({*models, Workspace(**ADF).fit(blocks).weights.tobytes()}) == 1


GOOD: Data = {
    "u": ["x", "y"],
    "arm": ["a", "b"],
    "c": [0.5, 1.0],
    "p": [0.5, 1.0],
    "id": [1, 2],
    "when": [datetime.date(2020, 1, 1)] * 2,
}
LOGS: dict[str, Any] = {"actions": "arm", "cost": "c", "probability": "p"}


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"context": ["v"]}, "there is no column 'v'; there are u, arm, c, p, id, when"),
        ({}, {"context": "u"}, "context must be a list of columns or a dict of lists, not 'u': ['u']"),
        (
            {},
            {"context": ["when"]},
            "row 0: when: datetime.date(2020, 1, 1) is a date or a time, which is no feature",
        ),
        (
            {"c": [1, float("inf")]},
            {"context": ["c"]},
            "row 1: c: value 'inf' of a feature is infinite, NaN or too large",
        ),
        ({}, {"label": "u"}, "column 'u' (label) is of large_string, not of numbers"),
        ({"c": [1, float("inf")]}, {"label": "c"}, "row 1: c: label 'inf' is infinite, NaN or too large"),
        ({"c": [1, -1]}, {"label": "p", "weight": "c"}, "row 1: c: importance weight '-1' is negative"),
        ({}, {"cost": "c"}, "cost and probability go together"),
        ({}, {"event": "id"}, 'event cannot be used with rows = "labels"'),
        ({}, LOGS | {"label": "c"}, 'label cannot be used with rows = "events"'),
        ({}, LOGS | {"actions": ["arm"]}, "rows are events if actions is one column"),
        ({}, LOGS | {"choices": ["a"]}, "row 1: arm: 'b' labels an action that the event does not have"),
        (
            {"c": [1, None]},
            LOGS | {"choices": ["a"]},
            "row 1: arm: 'b' labels an action that the event does not have",
        ),
        ({}, LOGS | {"choices": []}, "there is no action: choices is empty"),
        ({}, {"actions": "arm"}, "without costs, list the actions in choices"),
        ({"p": [1, 0]}, LOGS, "row 1: p: probability '0' is 0: the logged action cannot have been chosen"),
        ({"c": [float("inf"), 1]}, LOGS, "row 0: c: cost 'inf' is infinite, NaN or too large"),
        ({}, LOGS | {"event": "id", "choices": ["a"]}, 'choices cannot be used with rows = "actions"'),
        ({"id": [1, 1]}, LOGS | {"event": "id"}, "row 0: label 'c' on a second line of the event"),
        ({"id": [1, None]}, LOGS | {"event": "id"}, "row 1: the column 'id' of events is null"),
    ],
)
def test_what_is_refused(changes: Data, options: dict[str, Any], message: str) -> None:
    frame = polars.DataFrame(GOOD | changes, strict=False)
    with pytest.raises(InputError) as caught:
        list(from_frame(frame, **({"context": []} | options)))
    assert str(caught.value).startswith(message)


def test_rows_of_an_event_have_to_be_together() -> None:
    frame = polars.DataFrame({"id": [1, 2, 1], "x": [1, 2, 3]})
    with pytest.raises(InputError, match="row 2: event of column 'id' occurs again"):
        list(from_frame(frame, actions=["x"], event="id"))


def merged(line: Any) -> dict[bytes, list[Any]]:
    """Return the features of a line by namespace, in any order."""
    found: dict[bytes, list[Any]] = {}
    for namespace, features in line.spans:
        found[namespace] = sorted([*found.get(namespace, []), *features])
    return found


MIXED = ["a", 1, 2.5, None, True, False, Decimal("0.5"), pandas.NA, [1, None, "b"], {"c": 2}, np.float32(3)]


@pytest.mark.parametrize("context", [["x"], {"who": ["x", "n"]}])
def test_a_column_of_several_kinds_is_read_value_by_value(context: Any) -> None:
    frame = pandas.DataFrame({"x": pandas.Series(MIXED, dtype=object), "n": range(len(MIXED))})
    who = isinstance(context, dict)
    rows = [{"who": {"x": x, "n": n}} if who else {"x": x} for n, x in enumerate(MIXED)]
    found = lines_of(from_frame(frame, context=context))
    expected = lines_of(from_dicts([{"context": row} for row in rows]))
    assert [merged(line) for [line] in found] == [merged(line) for [line] in expected]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10, 2, None, 2.5], ("2", "2.5", "10")),
        ([10, "x", 2, True], ("2", "10", "True", "x")),
        (["10", "2"], ("10", "2")),
    ],
)
def test_choices_of_several_kinds_are_numbers_by_size_then_texts(
    values: list[Any], expected: tuple[str, ...]
) -> None:
    n = len(values)
    data = {"arm": pandas.Series(values, dtype=object), "cost": [1.0] * n, "p": [0.5] * n}
    roles: dict[str, Any] = {"context": [], "actions": "arm", "cost": "cost", "probability": "p"}
    inferred = lines_of(from_frame(pandas.DataFrame(data), **roles))
    assert inferred == lines_of(from_frame(pandas.DataFrame(data), choices=expected, **roles))


@pytest.mark.parametrize("values", [[["a"], ["b"]], [{"a": 1}, {"a": 2}]])
def test_an_action_that_is_a_list_or_a_struct_is_refused(values: list[Any]) -> None:
    frame = polars.DataFrame({"arm": values, "cost": [0.0, 1.0], "p": [0.5, 0.5]})
    with pytest.raises(InputError, match=r"column 'arm' \(action\) is of .*, not of texts or numbers"):
        list(from_frame(frame, actions="arm", cost="cost", probability="p"))


def test_actions_may_have_no_features() -> None:
    frame = polars.DataFrame(
        {"id": [1, 1, 2, 2], "cost": [0.5, None, None, 1.0], "p": [0.5, None, None, 0.5]}
    )
    [block] = from_frame(frame, context=[], actions=[], event="id", cost="cost", probability="p")
    assert (len(block), block.n_lines, len(block.features)) == (2, 4, 0)


def test_a_row_whose_label_is_missing_has_none() -> None:
    frame = pandas.DataFrame({"x": [1, 2, 3], "y": [1.0, float("nan"), 2.0]})
    assert [line.label for [line] in lines_of(from_frame(frame, label="y"))] == [1.0, UNLABELLED, 2.0]


def test_columns_may_have_names_that_are_no_text() -> None:
    frame = pandas.DataFrame([[1.0, 2.0], [3.0, 4.0]])
    found = lines_of(from_frame(frame))
    assert [line.spans for [line] in found] == [
        line.spans for [line] in lines_of(from_dicts([{"context": {"0": a, "1": a + 1}} for a in (1, 3)]))
    ]


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_two_columns_of_one_name_are_refused(kind: str) -> None:
    twice = pandas.DataFrame([[1, 2, 3]], columns=["u", "v", "u"])
    table = pyarrow.Table.from_arrays([pyarrow.array([1])] * 3, names=["u", "v", "u"])
    with pytest.raises(InputError, match="the frame has 2 columns with the name 'u': rename or drop"):
        list(from_frame(twice if kind == "pandas" else table, context=["v"]))


def test_a_frame_without_rows_is_an_error() -> None:
    frame = polars.DataFrame(GOOD).head(0)
    with pytest.raises(InputError, match="there is no action: no value of arm can be read"):
        list(from_frame(frame, context=["u"], **LOGS))
    assert not list(from_frame(frame, context=["u"], **LOGS, choices=["a", "b"]))


class Capsules:
    """A frame that has Arrow's PyCapsule interface and nothing else."""

    def __init__(self, table: Any) -> None:
        self.__arrow_c_stream__ = table.__arrow_c_stream__


VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3) - 5


@pytest.mark.parametrize("make", [
    Capsules,
    polars.from_arrow,
    lambda table: table,
    lambda table: table.to_pandas(),
    lambda _: pandas.DataFrame({"v": VECTORS.tolist(), "y": range(4)}),
    lambda _: pandas.DataFrame({"v": [*VECTORS], "y": range(4)}),
])  # fmt: skip
def test_vectors_are_read_from_buffers(make: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(VECTORS.ravel()), 3)
    monkeypatch.setattr(FrameColumns, "values", None)  # which reads values one by one
    found = lines_of(from_frame(make(pyarrow.table({"v": vectors, "y": range(4)})), label="y"))
    assert found == lines_of(from_dicts({"context": {"v": v}, "label": y} for y, v in enumerate(VECTORS)))


def test_other_objects_are_no_frames() -> None:
    with pytest.raises(InputError, match="a dict is not a frame of pandas, polars or arrow"):
        from_frame({"a": [1]}, context=["a"])
    with pytest.raises(InputError, match="an object is not a frame of pandas, polars or arrow"):
        from_frame(object(), context=["a"])
    with pytest.raises(InputError, match="a LazyFrame is not a frame"):
        from_frame(polars.LazyFrame({"a": [1]}), context=["a"])


def test_error_without_pyarrow_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "pyarrow":
            raise ModuleNotFoundError("No module named 'pyarrow'", name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[frames\]'"):
        from_frame(None)


def test_events_have_weights() -> None:
    frame = pandas.DataFrame({"x": [1, 2, 3], "arm": ["a", "b", "a"], "id": [7, 7, 8], "w": [1, 2, 4]})
    [block] = from_frame(frame, context=["x"], actions="arm", choices=["a", "b"], weight="w")
    assert block.weight.tolist() == [1, 1, 1, 2, 2, 2, 4, 4, 4]
    [block] = from_frame(frame, context=["x"], actions=["arm"], event="id", weight="w")
    assert block.weight.tolist() == [1, 1, 1, 4, 4]
    again = read("".join(map(event_dsjson, events(block))).encode(), **ADF, dsjson=True)
    assert [line.weight for event in again.events() for line in event.lines] == [1, 1, 1, 4, 4]


UNUSUAL: dict[str, Callable[[Any], Any]] = {
    "sparse": lambda x: pandas.DataFrame({"x": pandas.arrays.SparseArray(x)}),
    "long double": lambda x: pandas.DataFrame({"x": x.astype(np.longdouble)}),
    "run ends": lambda x: pyarrow.table(
        {"x": pyarrow.RunEndEncodedArray.from_arrays(np.arange(len(x), dtype=np.int32) + 1, pyarrow.array(x))}
    ),
    "decimal256": lambda x: pyarrow.table({"x": pyarrow.array(x).cast(pyarrow.decimal256(50, 2))}),
    "int128": lambda x: polars.DataFrame({"x": polars.Series(x).cast(polars.Int128)}),
    "arrow in pandas": lambda x: pandas.DataFrame({"x": pandas.arrays.ArrowExtensionArray(
        pyarrow.chunked_array([pyarrow.array(x).cast(pyarrow.decimal256(50, 2))]))}),
}  # fmt: skip


@pytest.mark.parametrize("make", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_numbers_of_unusual_types_are_numbers(make: Callable[[Any], Any]) -> None:
    x = np.array([0, 2, -3])
    found = [*from_frame(make(x), context=["x"], label="x")]
    assert lines_of(found) == lines_of(from_frame(pandas.DataFrame({"x": x}), context=["x"], label="x"))
    assert found[0].label.tolist() == [0, 2, -3]


def test_lists_of_unusual_types_are_lists() -> None:
    x = np.eye(3, dtype=np.float32)
    usual = lines_of(from_frame(pyarrow.table({"x": x.tolist()}), context=["x"]))
    tensor = pyarrow.FixedShapeTensorArray.from_numpy_ndarray(x)
    for array in (tensor, pyarrow.array(x.tolist(), pyarrow.list_view(pyarrow.float64()))):
        assert lines_of(from_frame(pyarrow.table({"x": array}), context=["x"])) == usual


@pytest.mark.parametrize(
    "values",
    [
        np.array([1j, 2j]),
        pandas.arrays.IntervalArray.from_breaks([0, 1, 2]),
        pandas.PeriodIndex.from_ordinals([1, 2], freq="D"),
        pandas.Categorical(pandas.to_datetime([1, 2])),
        pandas.Categorical([("a", "b"), ("c", "d")]),
        pandas.cut(pandas.Series([0.5, 1.5]), [0, 1, 2]),
        pandas.array([[("k", 1)], []], pandas.ArrowDtype(pyarrow.map_(pyarrow.string(), pyarrow.int64()))),
    ],
    ids=lambda values: str(values.dtype),
)
def test_values_that_are_no_features_are_refused_in_a_frame(values: Any) -> None:
    with pytest.raises(InputError, match=r"row 0: x: .*(no feature|in a list)"):
        list(from_frame(pandas.DataFrame({"x": values}), context=["x"]))
