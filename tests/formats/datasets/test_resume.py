"""A run over a dataset continues at the event, the row and the file at which a checkpoint was written."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlineauto import Workspace
from onlineauto.errors import InputError
from onlineauto.formats.datasets import files
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.formats.lines.event_source import EventRules, EventSource
from onlineauto.workspace.run import Run

pytestmark = pytest.mark.lane("sampled")

LABELS = {"rows": "labels", "label": "y", "context": {"a": ["word", "x"]}}
ACTIONS = {
    "rows": "actions",
    "event": "id",
    "cost": "cost",
    "probability": "p",
    "context": {"u": ["user"]},
    "actions": {"a": ["word"]},
}


def labels(n: int, first: int = 0) -> pa.Table:
    rows = range(first, first + n)
    words = [f"w{i % 7}" for i in rows]
    return pa.table({"y": [float(i % 3) for i in rows], "word": words, "x": [i / 7 for i in rows]})


def actions(n: int, first: int = 0) -> pa.Table:
    """Return `n` events of one to three rows."""
    rows = []
    for i in range(first, first + n):
        for k in range(1 + i % 3):
            chosen = k == i % (1 + i % 3)
            cost, p = (float(i % 2), 0.5) if chosen else (None, None)
            rows.append({"id": i, "user": f"u{i % 5}", "word": f"w{k}", "cost": cost, "p": p})
    return pa.Table.from_pylist(rows)


def three_files(folder: Path, make: Any) -> Path:
    for number in range(3):
        pq.write_table(make(100, 100 * number), folder / f"part-{number}.parquet", row_group_size=30)
    return folder


@pytest.mark.parametrize(("make", "columns"), [(labels, LABELS), (actions, ACTIONS)])
@pytest.mark.parametrize("done", [0, 1, 29, 30, 100, 137, 299, 300])
def test_resumed_run_learns_what_an_uninterrupted_one_does(
    tmp_path: Path, make: Any, columns: Any, done: int
) -> None:
    folder = three_files(tmp_path, make)
    options: dict[str, Any] = {} if make is labels else {"cb_explore_adf": True}
    whole = Workspace(**options)
    assert Run(whole, DatasetSource(folder, columns)).step() == 300
    run, file = Run(Workspace(**options), DatasetSource(folder, columns)), io.BytesIO()
    assert run.step(done) == done
    run.checkpoint(file)
    resumed = Run.resume(file.getvalue(), DatasetSource(folder, columns))
    assert resumed.position.events == done
    assert resumed.step() == 300 - done
    assert resumed.workspace.weights.tobytes() == whole.weights.tobytes()
    assert resumed.progress.example_number == 300


def test_second_pass_is_resumed(tmp_path: Path) -> None:
    folder = three_files(tmp_path, labels)
    options: dict[str, Any] = {"passes": 2, "holdout_off": True}
    whole = Workspace(**options)
    assert Run(whole, DatasetSource(folder, LABELS)).step() == 600
    run, file = Run(Workspace(**options), DatasetSource(folder, LABELS)), io.BytesIO()
    run.step(444)
    run.checkpoint(file)
    resumed = Run.resume(file.getvalue(), DatasetSource(folder, LABELS), **options)
    assert resumed.step() == 156
    assert resumed.workspace.weights.tobytes() == whole.weights.tobytes()


def test_row_groups_before_the_position_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read = three_files(tmp_path, labels), []
    batches = files.ParquetPart.batches

    def noting(self: Any, group: int, columns: Any) -> Any:
        read.append(group)
        return batches(self, group, columns)

    source = DatasetSource(folder, LABELS)
    blocks = list(source.open(EventRules("simple")))
    position = source.position(295)
    assert sum(map(len, blocks)) == 300
    assert position["file"] == 2
    assert position["row"] == 95
    monkeypatch.setattr(files.ParquetPart, "batches", noting)
    source.seek(position)
    assert sum(len(block) for block in source.open(EventRules("simple"))) == 5
    assert read == [3]


def test_examples_are_counted_over_both_runs(tmp_path: Path) -> None:
    folder = three_files(tmp_path, labels)
    run, file = Run(Workspace(examples=150), DatasetSource(folder, LABELS)), io.BytesIO()
    assert run.step(120) == 120
    run.checkpoint(file)
    assert Run.resume(file.getvalue(), DatasetSource(folder, LABELS), examples=150).step() == 30


@pytest.mark.parametrize("change", ["more", "fewer", "other"])
def test_changed_list_of_files_is_an_error(tmp_path: Path, change: str) -> None:
    folder = three_files(tmp_path, labels)
    run, file = Run(Workspace(), DatasetSource(folder, LABELS)), io.BytesIO()
    run.step(150)
    run.checkpoint(file)
    if change == "more":
        pq.write_table(labels(5), folder / "part-3.parquet")
    elif change == "fewer":
        (folder / "part-2.parquet").unlink()
    else:
        pq.write_table(labels(99), folder / "part-1.parquet")
    with pytest.raises(InputError, match=r"the files have changed since the checkpoint: .*files|another"):
        Run.resume(file.getvalue(), DatasetSource(folder, LABELS)).step()


def test_checkpoint_of_a_text_is_refused_for_a_dataset(tmp_path: Path) -> None:
    folder = three_files(tmp_path, labels)
    run, file = Run(Workspace(), ["1 |a x"] * 9), io.BytesIO()
    run.step(5)
    run.checkpoint(file)
    with pytest.raises(InputError, match="was not written by a run over a dataset"):
        Run.resume(file.getvalue(), DatasetSource(folder, LABELS)).step()


def test_dataset_source_is_an_event_source(tmp_path: Path) -> None:
    assert isinstance(DatasetSource(three_files(tmp_path, labels), LABELS), EventSource)
    assert not isinstance(io.BytesIO(), EventSource)
