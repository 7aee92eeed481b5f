"""Rows of Parquet are the events that the same text has: names, hashes, numbers, predictions."""

from __future__ import annotations

import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.formats.lines.event_source import EventRules
from tests.formats.datasets.drawn_datasets import datasets, write
from tests.naive.datasets import naive_events, text_of_events
from tests.naive.lines import unpack
from tests.property.test_extremes import OUTLIERS

pytestmark = pytest.mark.lane("sampled")

ODD_WORDS = st.text(max_size=12).filter(
    lambda text: max(text, default="a") < "\ud800" or max(text) > "\udfff"
)
WORDS = st.sampled_from(["tom", "ann", "x1", "12", "a=b", "Straße", "verylongwordoverhere"])
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


def kind_of(columns: Any) -> str:
    return "cb_explore_adf" if columns.decides else "simple"


@settings(max_examples=60, deadline=None, suppress_health_check=QUIET)
@given(datasets(ODD_WORDS), st.booleans())
def test_rows_are_the_events_of_the_reference_implementation(drawn: Any, dictionary: bool) -> None:
    table, columns, size = drawn
    with TemporaryDirectory() as folder:
        path = write(table, Path(folder) / "a.parquet", size, dictionary=dictionary)
        reader = DatasetSource(path, columns).open(EventRules(kind_of(columns)))
        found = unpack(reader)
    assert repr(found) == repr(naive_events(table.to_pylist(), columns))


@settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
@given(datasets(WORDS), st.booleans())
def test_predictions_are_those_of_the_text_bit_for_bit(drawn: Any, dictionary: bool) -> None:
    table, columns, size = drawn
    options: dict[str, Any] = {"cb_explore_adf": True} if columns.decides else {}
    options |= {"interactions": ["::"], "quiet": True}
    by_text, by_rows = Workspace(**options), Workspace(**options)
    text = text_of_events(table.to_pylist(), columns)
    with TemporaryDirectory() as folder:
        path = write(table, Path(folder) / "a.parquet", size, dictionary=dictionary)
        assert predictions(by_rows, DatasetSource(path, columns)) == predictions(by_text, text)
    assert by_rows.weights.tobytes() == by_text.weights.tobytes()


def predictions(workspace: Workspace, source: Any) -> list[bytes]:
    found = []
    for _, outcomes in workspace.stream(source):
        scores = outcomes.score if workspace.kind != "simple" else outcomes.prediction
        found += [struct.pack("f", each) for each in scores.tolist()]
    assert workspace.diagnostics.counts.keys() <= OUTLIERS
    return found


@pytest.mark.parametrize("hash_rule", ["strings", "all"])
def test_names_are_hashed_as_the_options_say(tmp_path: Path, hash_rule: str) -> None:
    import pyarrow as pa

    table = pa.table({"y": [1.0, 0.0], "12": ["a", "b"], "7": [2.0, 3.0]})
    path = write(table, tmp_path / "a.parquet", 10)
    columns = {"rows": "labels", "label": "y", "context": {"n": ["12", "7"]}}
    by_rows, by_text = (Workspace(hash=hash_rule, hash_seed=5) for _ in range(2))
    predictions(by_rows, DatasetSource(path, columns))
    predictions(by_text, b"1 |n 12=a 7:2\n0 |n 12=b 7:3\n")
    assert by_rows.weights.tobytes() == by_text.weights.tobytes()
