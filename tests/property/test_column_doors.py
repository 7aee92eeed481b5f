"""A column of any type has the same features by every source type of tables, or an error.

A table has the columns ``c`` (of the context), ``a`` (the action that was taken), ``reward`` and ``p``.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from onlineauto import InputError, Workspace
from onlineauto.engine.stream.event_readers import event_readers
from onlineauto.engine.stream.source import event_rules, open_lines
from onlineauto.features.block import NAMES, Block
from onlineauto.formats.mappings.identities import name_values, numbers_in
from onlineauto.interop import event_dsjson, from_dicts, from_frame
from onlineauto.interop.datasets import decisions_in
from onlineauto.options import Configuration
from onlineauto.workspace.names import follow_names
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("sampled")

WORDS = ["tom", "ann", "7", "dark blue", "", "naïve", "a|b", "true", "1.5"]
GEO = pa.struct([("city", pa.string()), ("lat", pa.float64())])
ACTIONS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [0, 1, 2]),
    "int8": (pa.int8(), [-1, 1, 100]),
    "float64": (pa.float64(), [0.0, 1.0, 2.5]),
    "float32": (pa.float32(), [0.0, 1.0, float(np.float32(0.1))]),
    "bool": (pa.bool_(), [False, True]),
    "string": (pa.string(), ["0", "x", "1.5"]),
    "categories of integers": (pa.dictionary(pa.int32(), pa.int64()), [0, 1, 2]),
}
Door = "Callable[[pa.Table, list[Any], Model, Path], Iterable[Block]]"
_ROLES: dict[str, Any] = {"actions": "a", "reward": "reward", "probability": "p"}
FEATURE = np.dtype([("event", "i8"), ("line", "i8"), ("namespace", "u4"), ("hash", "u4"), ("value", "f4")])


def _number(random: Random) -> float:
    return random.choice([0.0, 1.0, -2.5, 0.1, 1e-3, 3e5, random.gauss(0, 10), float(random.randrange(100))])


def _listed(value: Callable[[Random], Any], size: int | None = None) -> Callable[[Random], Any]:
    return lambda random: [value(random) for _ in range(random.randrange(4) if size is None else size)]


def _int(random: Random) -> int:
    return random.choice([0, 1, 2, random.randrange(100)])


def _word(random: Random) -> str:
    return random.choice(WORDS)


def _truth(random: Random) -> bool:
    return random.random() < 0.5


def _decimal(random: Random) -> Decimal:
    return Decimal(random.randrange(-500, 500)) / 100


def _struct(random: Random) -> dict[str, Any]:
    return {"city": _word(random), "lat": _number(random)}


def _nested(random: Random) -> dict[str, Any]:
    return {"age": _int(random), "geo": _struct(random), "tags": _listed(_word)(random)}


CONTEXTS: dict[str, tuple[pa.DataType, Callable[[Random], Any]]] = {
    "int64": (pa.int64(), _int),
    "int8": (pa.int8(), _int),
    "uint32": (pa.uint32(), _int),
    "float64": (pa.float64(), _number),
    "float32": (pa.float32(), _number),
    "bool": (pa.bool_(), _truth),
    "decimal": (pa.decimal128(8, 2), _decimal),
    "string": (pa.string(), _word),
    "large string": (pa.large_string(), _word),
    "categories": (pa.dictionary(pa.int32(), pa.string()), _word),
    "categories of integers": (pa.dictionary(pa.int32(), pa.int64()), _int),
    "words": (pa.list_(pa.string()), _listed(_word)),
    "numbers": (pa.list_(pa.float32()), _listed(_number)),
    "integers": (pa.list_(pa.int64()), _listed(_int)),
    "truths": (pa.list_(pa.bool_()), _listed(_truth)),
    "vector": (pa.list_(pa.float32(), 3), _listed(_number, 3)),
    "struct": (GEO, _struct),
    "nested struct": (
        pa.struct([("age", pa.int64()), ("geo", GEO), ("tags", pa.list_(pa.string()))]),
        _nested,
    ),
}


def drawn_table(random: Random, context: str, action: str, rows: int) -> tuple[pa.Table, list[Any]]:
    """Draw a table, and return it with its choices."""
    kind, draw = CONTEXTS[context]
    of_action, choices = ACTIONS[action]
    values = [None if random.random() < 0.05 else draw(random) for _ in range(rows)]
    if context == "vector":  # a fixed-size list of pandas and polars has no missing values
        values = [value or [0.0, 0.0, 0.0] for value in values]
    taken = choices + [random.choice(choices) for _ in range(rows - len(choices))]
    columns = {
        "c": _array(values, kind),
        "a": _array(taken, of_action),
        "reward": pa.array([float(random.random() < 0.5) for _ in range(rows)]),
        "p": pa.array([0.5] * rows),
    }
    return pa.table(columns), choices


def _array(values: list[Any], kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    return pa.array(values, kind)


@dataclass
class Model:
    """The names of a model: its options, and the columns that it has learnt as numbers."""

    configuration: Configuration = field(
        default_factory=lambda: REGISTRY.from_keywords(cb_explore_adf=True, json=True)
    )
    numbers: set[str] = field(default_factory=set)

    @property
    def identities(self) -> frozenset[str]:
        found: Any = self.configuration.get("name_columns")
        return frozenset(found)


def _events(table: pa.Table, choices: list[Any]) -> list[dict[str, Any]]:
    rows = table.to_pylist()
    return [
        {
            "context": {"c": row["c"]},
            "actions": [{"a": each} for each in choices],
            "chosen": choices.index(row["a"]),
            "cost": -row["reward"],
            "probability": row["p"],
        }
        for row in rows
    ]


def _dicts(table: pa.Table, choices: list[Any], model: Model, folder: Path) -> Iterable[Block]:
    del folder
    return from_dicts(_events(table, choices), name_columns=model.identities)


def _one_by_one(table: pa.Table, choices: list[Any], model: Model, folder: Path) -> Iterable[Block]:
    del folder
    reader = event_readers(model.configuration).mapping
    for event in _events(table, choices):
        block = reader.parse_one(event)
        numbers = {name for part in (event["context"], *event["actions"]) for name in numbers_in(part)}
        object.__setattr__(
            block, "rules", {**block.rules, "number_columns": tuple(numbers - model.identities)}
        )
        yield block


def _frame(convert: Callable[[pa.Table], Any]) -> Any:
    def door(table: pa.Table, choices: list[Any], model: Model, folder: Path) -> Iterable[Block]:
        del folder
        return from_frame(
            convert(table), context=["c"], choices=choices, name_columns=model.identities, **_ROLES
        )

    return door


def _rows(source: Callable[[pa.Table, Path], Any]) -> Any:
    def door(table: pa.Table, choices: list[Any], model: Model, folder: Path) -> Iterable[Block]:
        found = decisions_in(
            source(table, folder), None, context=["c"] if _is_flat(table) else None, choices=choices, **_ROLES
        )
        return found.open(event_rules(model.configuration))

    return door


def _is_flat(table: pa.Table) -> bool:
    return not pa.types.is_struct(table.schema.field("c").type)


def _parquet(table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "t.parquet")
    return str(folder / "t.parquet")


def _ipc(table: pa.Table, folder: Path) -> Any:
    with pa.OSFile(str(folder / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return ds.dataset(folder / "t.arrow", format="ipc")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal):
        return float(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _lines(table: pa.Table, choices: list[Any], model: Model, folder: Path) -> Iterable[Block]:
    del folder
    lines = []
    for event in _events(table, choices):
        label = {
            "_label_cost": event["cost"],
            "_label_probability": event["probability"],
            "_labelIndex": event["chosen"],
        }
        lines.append(json.dumps({**label, **_plain(event["context"]), "_multi": _plain(event["actions"])}))
    return open_lines("\n".join(lines).encode(), _of_format(model, "json"))


def _of_format(model: Model, name: str) -> Configuration:
    supplied = {each: model.configuration.get(each) for each in model.configuration.supplied}
    return REGISTRY.from_keywords(**supplied | {"json": name == "json", "dsjson": name == "dsjson"})


def _log(table: pa.Table, choices: list[Any], model: Model, folder: Path) -> Iterable[Block]:
    """Return the log of `AutoML`, read by the same model."""
    del folder
    head = f'{{"NameColumns":{json.dumps(sorted(model.identities))},'
    lines = [head + event_dsjson(name_values(each, model.identities))[1:] for each in _events(table, choices)]
    return open_lines("".join(lines).encode(), _of_format(model, "dsjson"))


DOORS: dict[str, Any] = {
    "dicts": _dicts,
    "one by one": _one_by_one,
    "pandas": _frame(lambda table: table.to_pandas()),
    "polars": _frame(polars.from_arrow),
    "arrow": _frame(lambda table: table),
    "parquet": _rows(_parquet),
    "ipc": _rows(_ipc),
    "reader": _rows(lambda table, _: table.to_reader(max_chunksize=7)),
    "json": _lines,
    "log": _log,
}


def features_at(
    door: str, table: pa.Table, choices: list[Any], model: Model, folder: Path
) -> np.ndarray[Any, Any] | None:
    """Return the features of all events, as a model reads them; None if they are refused."""
    found, n_events = [], 0
    try:
        for block in DOORS[door](table, choices, model, folder):
            if not NAMES.isdisjoint(block.rules):
                follow_names(model.configuration, set(model.numbers), block.rules, learns=False)
            found.append(_features_of(block, n_events))
            n_events += len(block)
    except InputError:
        return None
    return np.concatenate(found) if found else None


def _features_of(block: Block, first: int) -> np.ndarray[Any, Any]:
    """Return the features of a block by event, line, namespace and hash."""
    lines = np.repeat(np.arange(block.n_lines), np.diff(block.line_start))
    of_span = np.repeat(np.arange(len(lines)), np.diff(block.span_start))
    line = lines[of_span]
    event = np.searchsorted(block.event_start, line, side="right") - 1
    codes = np.array([zlib.crc32(name) for name in block.namespaces.names], np.uint32)
    found = np.zeros(len(line), FEATURE)
    found["event"], found["line"] = event + first, line - block.event_start[event]
    found["namespace"] = codes[block.span_namespace[of_span]]
    found["hash"], found["value"] = block.hash, block.value
    return np.sort(found)


def learnt_at(door: str, table: pa.Table, choices: list[Any], folder: Path) -> Model | None:
    """Return the state of a model that learnt a table at a door."""
    model = Model()
    try:
        for block in DOORS[door](table, choices, Model(), folder):
            if not NAMES.isdisjoint(block.rules):
                model.configuration = follow_names(
                    model.configuration, model.numbers, block.rules, learns=True
                )
    except InputError:
        return None
    return model


def check_pairs(
    random: Random, context: str, action: str, rows: int, folder: Path, counts: dict[str, int]
) -> None:
    """Learn a table at each door, and ask for it at each other door."""
    table, choices = drawn_table(random, context, action, rows)
    asked: dict[Any, Any] = {}
    for door in DOORS:
        model = learnt_at(door, table, choices, folder)
        learnt = None if model is None else features_at(door, table, choices, Model(), folder)
        if model is None or learnt is None:
            counts["refused at the first door"] += rows
            continue
        for other in DOORS:
            key = other, model.configuration, frozenset(model.numbers)
            if key not in asked:
                asked[key] = features_at(other, table, choices, model, folder)
            found = asked[key]
            counts["errors" if found is None else "equal"] += rows
            if found is not None:
                assert np.array_equal(found, learnt), (
                    context,
                    action,
                    door,
                    other,
                    first_difference(table, learnt, found),
                )


def first_difference(table: Any, learnt: Any, found: Any) -> Any:
    """Return the first row whose features differ, with its features at both doors."""
    for number, row in enumerate(table.to_pylist()):
        one, two = (each[each["event"] == number].tolist() for each in (learnt, found))
        if one != two:
            return row, one, two
    return None


def pass_through(values: int, rows: int, folder: Path, *, seed: int) -> dict[str, int]:
    """Pass random values of every type through all pairs of doors; return what became of how many."""
    random, done = Random(seed), 0
    counts = dict.fromkeys(("equal", "errors", "refused at the first door"), 0)
    while done < values:
        for context in CONTEXTS:
            check_pairs(random, context, random.choice(list(ACTIONS)), rows, folder, counts)
            done += 2 * rows  # of the context and of the actions
    return counts


def test_every_pair_of_doors_has_the_same_features(tmp_path: Path) -> None:
    counts = pass_through(1, 12, tmp_path, seed=1)
    assert counts["equal"] > 2 * counts["errors"] > 0, counts


@pytest.mark.fuzz
def test_every_pair_of_doors_has_the_same_features_a_hundred_thousand_times(tmp_path: Path) -> None:
    n, begin = int(os.environ.get("ONLINEAUTO_DOOR_EVENTS", "100000")), time.monotonic()
    counts = pass_through(n, 200, tmp_path, seed=10**6)
    sys.stdout.write(f"{n} values in {time.monotonic() - begin:.0f} s: {counts}\n")


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:[0-9]+ problem:UserWarning")
@pytest.mark.parametrize("action", ["int64", "bool", "string", "categories of integers"])
@pytest.mark.parametrize("context", ["float64", "categories of integers", "words", "vector", "nested struct"])
def test_every_pair_of_doors_has_the_same_probabilities(tmp_path: Path, context: str, action: str) -> None:
    table, choices = drawn_table(Random(3), context, action, 60)
    for door in ("dicts", "pandas", "parquet", "ipc", "json", "log"):
        options: dict[str, Any] = {"cb_explore_adf": True, "quadratic": ["::"], "dsjson": True}
        model = Workspace(**options)
        model.fit(list(DOORS[door](table, choices, Model(), tmp_path)))
        expected = None
        for other in (door, *DOORS):
            found = []
            try:
                blocks = list(DOORS[other](table, choices, Model(model.configuration), tmp_path))
                found += [model.predict_block(block).score for block in blocks]
            except InputError:
                assert other != door
                continue
            scores = np.concatenate(found)
            expected = scores if expected is None else expected
            assert np.allclose(scores, expected, rtol=1e-3, atol=1e-4), (door, other)
        assert expected is not None
        assert expected.std() > 0
