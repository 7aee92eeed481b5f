"""Datasets at random: tables of each kind of rows, with their columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from onlineauto.formats.datasets.columns import DatasetColumns

NUMBERS = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1.0, 1e-3, float("nan")]) | st.none()
COUNTS = st.integers(-(10**6), 10**6) | st.none()
CONTEXT = {"user": ("name", "age"), "hour": ("hour",), "place": ("geo.city", "geo.lat"), "tags": ("tags",)}
ACTIONS = {"article": ("topic", "price"), "vector": ("vector",)}
TEXTS = pa.dictionary(pa.int32(), pa.string())


def context_schema() -> list[Any]:
    geo = pa.struct([("city", pa.string()), ("lat", pa.float64())])
    return [
        ("name", pa.string()),
        ("age", pa.int64()),
        ("hour", pa.float32()),
        ("geo", geo),
        ("tags", pa.list_(pa.string())),
    ]


def action_schema() -> list[Any]:
    return [("topic", pa.string()), ("price", pa.float64()), ("vector", pa.list_(pa.float32()))]


def contexts(words: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "name": words | st.none(),
            "age": COUNTS,
            "hour": NUMBERS,
            "geo": st.none() | st.fixed_dictionaries({"city": words | st.none(), "lat": NUMBERS}),
            "tags": st.none() | st.lists(words | st.none(), max_size=3),
        }
    )


def actions(words: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    vector = st.none() | st.lists(NUMBERS, max_size=3)
    return st.fixed_dictionaries({"topic": words | st.none(), "price": NUMBERS, "vector": vector})


@st.composite
def datasets(
    draw: Callable[[Any], Any], words: st.SearchStrategy[str]
) -> tuple[pa.Table, DatasetColumns, int]:
    """Return a table, what its columns are, and the size of a row group."""
    kind = draw(st.sampled_from(["labels", "events", "actions", "lists"]))
    rows = draw(st.lists(contexts(words), min_size=1, max_size=12))
    schema = context_schema()
    context = draw(st.sampled_from([CONTEXT, {"user": ("name",)}] + [{}] * (kind != "labels")))
    columns: dict[str, Any] = {"rows": kind, "context": context}
    if context is CONTEXT and draw(st.booleans()):
        columns["categories"] = ("age",)
    cost = st.floats(-2, 2, width=32) | st.none()
    if kind == "labels":
        rows = [{**row, "y": draw(cost)} for row in rows]
        schema.append(("y", pa.float64()))
        columns["label"] = "y"
    else:
        named = draw(st.sampled_from(["cost", "reward"]))
        schema += [(named, pa.float64()), ("p", pa.float64())]
        columns |= {named: named, "probability": "p"}
        rows = [{**row, named: draw(cost), "p": draw(st.sampled_from([0.25, 0.5, 1.0]))} for row in rows]
    if kind == "events":
        rows = [{**row, "arm": draw(st.sampled_from([1, 7, 30]))} for row in rows]
        schema.append(("arm", pa.int32()))
        columns |= {"action": "arm", "choices": ("1", "7", "30")}
    elif kind == "lists":
        of_each = [draw(st.lists(actions(words), min_size=1, max_size=4)) for _ in rows]
        rows = [
            {**row, "of": each, "chosen": draw(st.integers(0, len(each) - 1))}
            for row, each in zip(rows, of_each, strict=True)
        ]
        schema += [("of", pa.list_(pa.struct(action_schema()))), ("chosen", pa.int64())]
        columns |= {"list": "of", "chosen": "chosen", "actions": ACTIONS}
    elif kind == "actions":
        rows = _action_rows(draw, rows, words)
        schema += [*action_schema(), ("id", pa.string())]
        columns |= {"event": "id", "actions": ACTIONS}
    table = pa.Table.from_pylist(rows, schema=pa.schema(schema))
    return table, DatasetColumns(**columns), draw(st.integers(1, 13))


def _action_rows(
    draw: Callable[[Any], Any], rows: list[dict[str, Any]], words: st.SearchStrategy[str]
) -> list[dict[str, Any]]:
    found = []
    for number, row in enumerate(rows):
        each = draw(st.lists(actions(words), min_size=1, max_size=4))
        chosen = draw(st.integers(0, len(each) - 1))
        none = {name: None for name in ("cost", "reward", "p") if name in row}
        found += [
            {**row, **({} if i == chosen else none), **action, "id": f"e{number}"}
            for i, action in enumerate(each)
        ]
    return found


def write(table: pa.Table, path: Path, size: int, *, dictionary: bool = True) -> Path:
    """Write a table to a file of Parquet, and return its path."""
    pq.write_table(table, path, row_group_size=size, use_dictionary=dictionary)
    return path
