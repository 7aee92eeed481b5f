"""A vector has the same features, in order of position, and the same predictions by every source type."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import onlineauto
from onlineauto import AutoML, InputError, Workspace
from onlineauto.engine.stream.event_readers import event_readers
from onlineauto.engine.stream.source import event_rules
from onlineauto.features.block import Block
from onlineauto.formats.mappings.encoded_event import EncodedEvent
from onlineauto.formats.text.writer import block_text
from onlineauto.interop import event_dsjson, event_text, from_dicts, from_frame
from onlineauto.interop.datasets import decisions_in
from onlineauto.workspace.options import REGISTRY
from tests.naive.hashing import hash_name

Numbers = list[float | None]
ARMS = [{"arm": "a"}, {"arm": "b"}]
CONFIGURATION = REGISTRY.from_keywords(cb_explore_adf=True)


class Tensor:
    """An array of a library that only NumPy's protocol knows."""

    ndim = 1

    def __init__(self, values: Numbers) -> None:
        self._values = np.array(values, np.float32)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._values, dtype)


ARRAYS: dict[str, Callable[[Numbers], Any]] = {
    "list": list,
    "tuple": tuple,
    "float16": lambda values: np.array(values, np.float16),
    "float32": lambda values: np.array(values, np.float32),
    "float64": lambda values: np.array(values, np.float64),
    "NumPy's numbers": lambda values: [np.float32(value) for value in np.array(values, float)],
    "objects": lambda values: np.array(values, object),
    "masked": lambda values: np.ma.masked_invalid(np.array(values, float)),
    "pandas": lambda values: pandas.Series(values, dtype=float),
    "polars": lambda values: polars.Series(values, dtype=polars.Float64),
    "arrow": lambda values: pa.array(values, pa.float32()),
    "tensor": Tensor,
}
TABLES: dict[str, Callable[[Numbers], Any]] = {
    "list of float32": lambda values: _table(values, pa.list_(pa.float32())),
    "large list of float64": lambda values: _table(values, pa.large_list(pa.float64())),
    "fixed size": lambda values: _table(values, pa.list_(pa.float32(), len(values))),
    "polars": lambda values: polars.DataFrame(_table(values, pa.list_(pa.float32(), len(values)))),
    "pandas": lambda values: pandas.DataFrame({"v": [np.array(values, float)] * 2, **_ROLES}),
}
_ROLES: dict[str, list[Any]] = {"arm": ["a", "b"], "reward": [1.0, 0.0], "p": [0.5, 0.5]}


def _table(values: Numbers, kind: pa.DataType) -> pa.Table:
    return pa.table({"v": pa.array([values] * 2, kind), **_ROLES})


def drawn(random: Random, n: int) -> Numbers:
    """Draw numbers that each type has, with zeros and missing ones."""
    return [random.choice([0.0, None, random.randrange(-40, 40) / 4]) for _ in range(n)]


def blocks_of(values: Numbers, folder: Path) -> Iterable[tuple[str, Block]]:
    """Yield a block with the numbers in namespace ``v`` of the shared line, from each source type."""
    mapping = event_readers(CONFIGURATION).mapping
    for name, array_of in ARRAYS.items():
        event: dict[str, Any] = {"context": {"v": array_of(values)}, "actions": ARMS}
        yield f"dict of {name}", mapping.parse_one(event)
        yield f"dicts of {name}", next(from_dicts([event]))
        yield f"nested {name}", mapping.parse_one(event | {"context": {"u": {"v": array_of(values)}}})
        yield f"ranked {name}", mapping.parse_one(EncodedEvent(event["context"], ARMS))
        yield f"log of {name}", _only(event_dsjson(event) + "\n", dsjson=True)
        yield f"text of {name}", _only(event_text(event))
        log = folder / f"{name}.dsjson"
        AutoML(decision_log=log).rank(event["context"], ARMS)
        yield f"decisions of {name}", _only(log.read_text(), dsjson=True)
    features = json.dumps({"v": values, "_multi": [{"arm": {"arm=a": 1}}, {"arm": {"arm=b": 1}}]})
    yield "JSON", _only(features + "\n", json=True)
    yield "dsjson", _only(f'{{"a":[1,2],"p":[0.5,0.5],"c":{features}}}\n', dsjson=True)
    words = " ".join(f":{value or 0}" for value in values)
    text = _only(f"shared |v {words}\n|arm arm=a\n|arm arm=b\n\n")
    yield "text", text
    yield "text of a block", _only(block_text(text, multiline=True).decode())
    roles: dict[str, Any] = {"actions": "arm", "reward": "reward", "probability": "p", "choices": ["a", "b"]}
    for name, table_of in TABLES.items():
        table = table_of(values)
        yield f"frame of {name}", next(from_frame(table, context=["v"], **roles)).head(1)
        if isinstance(table, pa.Table):
            pq.write_table(table, folder / "table.parquet")
            found = decisions_in(folder / "table.parquet", None, context=["v"], **roles)
            yield f"Parquet of {name}", next(iter(found.open(event_rules(CONFIGURATION)))).head(1)


def _only(text: str, **form: bool) -> Block:
    [block] = onlineauto.read(text.encode(), cb_explore_adf=True, **form)
    return block


def expected(values: Numbers) -> tuple[list[int], list[float]]:
    """Return hashes and values by the rule: a list of 16 numbers or more keeps all positions."""
    numbers = [float(value or 0) for value in values]
    retained = [i for i, number in enumerate(numbers) if number or len(numbers) >= 16]
    seed = hash_name(b"v", 0, False)
    return [(seed + i) % 2**32 for i in retained], [numbers[i] for i in retained]


@pytest.mark.parametrize("n", [1, 15, 16, 40])
def test_a_vector_is_the_same_at_every_door(n: int, tmp_path: Path) -> None:
    random = Random(n)
    model = Workspace(cb_explore_adf=True, quadratic=["::"])
    for cost in (0, -1, -1):
        model.learn(
            {"context": {"v": [1.0] * n}, "actions": ARMS, "chosen": 1, "cost": cost, "probability": 0.5}
        )
    values = [*drawn(random, n - 1), 0.75]
    predictions = set()
    for door, block in blocks_of(values, tmp_path):
        spans = [
            i for i in range(block.line_start[1]) if block.namespaces.names[block.span_namespace[i]] == b"v"
        ]
        [span] = spans
        features = slice(*block.span_start[span : span + 2])
        assert (block.hash[features].tolist(), block.value[features].tolist()) == expected(values), door
        predictions.add(model.predict_block(block).score.tobytes())
    assert len(predictions) == 1


@pytest.mark.parametrize("value", [np.inf, -1e39])
def test_a_number_that_is_too_large_is_located(value: float) -> None:
    vector = np.zeros(20)
    vector[7] = value
    for array in (vector, vector.tolist()):
        with pytest.raises(InputError, match="v: 7: value"):
            AutoML().rank({"v": array}, ARMS)
