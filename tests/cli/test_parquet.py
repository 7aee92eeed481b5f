"""Parquet on the command line: in, out, columns, resumed runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlineauto.cli.main import main
from onlineauto.workspace.run import Run

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = """\
rows = "events"
action = "arm"
choices = ["art", "sport"]
reward = "click"
probability = "p"

[context]
user = ["name", "age"]
"""


def written(path: Path, n: int = 200, seed: int = 0, **columns: Any) -> Path:
    random = np.random.default_rng(seed)
    table = pa.table(
        {
            "name": pa.array(["tom", "ann", "eve"]).take(pa.array(random.integers(0, 3, n))),
            "age": random.integers(18, 80, n),
            "arm": pa.array(["art", "sport"]).take(pa.array(random.integers(0, 2, n))),
            "click": random.integers(0, 2, n).astype(float),
            "p": np.full(n, 0.5),
            **columns,
        }
    )
    pq.write_table(table, path, row_group_size=64)
    return path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for seed in range(3):
        written(folder / f"{seed}.parquet", seed=seed)
    return folder


def run(*words: object, code: int = 0) -> None:
    assert main([str(word) for word in words]) == code


@pytest.mark.parametrize("form", ["folder", "pattern", "files"])
def test_files_folders_and_patterns_give_the_same_predictions(
    tmp_path: Path, logs: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = tmp_path / "columns.toml"
    columns.write_text(COLUMNS)
    words: dict[str, list[object]] = {
        "folder": [logs],
        "pattern": ["-d", f"{logs}/*.parquet"],
        "files": [*sorted(logs.iterdir())],
    }
    run(*words[form], "--columns", columns, "--cb_explore_adf", "-p", tmp_path / "p.txt")
    assert "number of examples = 600" in capsys.readouterr().err
    text = "".join(text_of(path) for path in sorted(logs.iterdir()))
    (tmp_path / "events.txt").write_text(text)
    run(tmp_path / "events.txt", "--cb_explore_adf", "-p", tmp_path / "q.txt", "--quiet")
    assert (tmp_path / "p.txt").read_bytes() == (tmp_path / "q.txt").read_bytes()


def text_of(path: Path) -> str:
    events = []
    for row in pq.read_table(path).to_pylist():
        cost = f"0:{0 - row['click']}:{row['p']} "
        lines = [f"{cost if row['arm'] == arm else ''}|arm arm={arm}" for arm in ("art", "sport")]
        events.append("\n".join([f"shared |user name={row['name']} age:{row['age']}", *lines, "\n"]))
    return "".join(events)


def test_columns_prints_a_file_that_learn_reads(
    tmp_path: Path, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("columns", f"{logs}/*.parquet")
    printed = capsys.readouterr().out
    assert 'choices = ["art", "sport"]' in printed
    assert 'reward = "click"' in printed
    columns = tmp_path / "columns.toml"
    columns.write_text(printed)
    run(logs, "--cb_explore_adf", "-p", tmp_path / "inferred.txt", "--quiet")
    run(logs, "--cb_explore_adf", "-p", tmp_path / "read.txt", "--quiet", "--columns", columns)
    assert (tmp_path / "inferred.txt").read_bytes() == (tmp_path / "read.txt").read_bytes()


def test_predictions_are_written_as_parquet(tmp_path: Path, logs: Path) -> None:
    run(logs, "--cb_explore_adf", "-p", tmp_path / "p.parquet", "--quiet")
    run(logs, "--cb_explore_adf", "-p", tmp_path / "p.txt", "--quiet")
    found = pq.read_table(tmp_path / "p.parquet").to_pylist()
    lines = (tmp_path / "p.txt").read_text().split()
    assert len(found) == len(lines) == 600
    for row, line in zip(found, lines, strict=True):
        pairs = [each.split(":") for each in line.split(",")]
        assert row["actions"] == [int(action) for action, _ in pairs]
        assert row["probabilities"] == pytest.approx([float(p) for _, p in pairs], abs=1e-6)


@pytest.mark.parametrize(("words", "column"), [([], "prediction"), (["--cb_adf"], "action")])
def test_predictions_of_other_kinds_are_written_as_parquet(
    tmp_path: Path, words: list[str], column: str
) -> None:
    text = b"0:1:0.5 |a x\n|a y\n\n|a y\n|a z\n\n" if words else b"1 1 t1|a x\n0 |a y\n"
    (tmp_path / "e.txt").write_bytes(text)
    run(tmp_path / "e.txt", *words, "-p", tmp_path / "p.parquet", "--quiet")
    found = pq.read_table(tmp_path / "p.parquet")
    assert found.column_names == ["line", "tag", column]
    assert found["tag"].to_pylist() == ([None, None] if words else ["t1", None])


def test_resumed_run_is_the_uninterrupted_one(
    tmp_path: Path, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--cb_explore_adf", "--automl", "2", "--quiet"]
    run(logs, *words, "-f", tmp_path / "whole.oam", "-p", tmp_path / "whole.txt")
    words += ["-f", str(tmp_path / "m.oam"), "-p", str(tmp_path / "p.txt"), "--save_every", "333"]
    checkpoint = Run.checkpoint

    def killed(self: Run, target: Any) -> None:
        checkpoint(self, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "checkpoint", killed)
    run(logs, *words, code=130)
    monkeypatch.undo()
    assert len((tmp_path / "p.txt").read_text().split()) == 333
    run(logs, *words, "--resume")
    assert (tmp_path / "p.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()


def test_damage_in_mid_stream_is_reported_and_what_was_learnt_is_saved(
    tmp_path: Path, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (logs / "1.parquet").write_bytes(b"PAR1")
    run(logs, "--cb_explore_adf", "-f", tmp_path / "m.oam")
    err = capsys.readouterr().err
    assert f"{logs / '1.parquet'}:1:1: the file cannot be opened: " in err
    assert "number of examples = 400" in err
    run(logs, "--cb_explore_adf", "-f", tmp_path / "n.oam", "--strict_parse", code=1)
    assert (tmp_path / "n.oam").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--columns", "x.toml"], "--columns is for Parquet"),
        (["{logs}", "--columns", "no.toml", "--cb_explore_adf"], "cannot be read"),
        (["{logs}", "events.txt", "--cb_explore_adf"], "is Parquet and other files are not"),
        (["{logs}", "--cb_explore_adf", "--audit"], "--audit cannot be used with Parquet"),
        (["{logs}", "--cb_explore_adf", "--dsjson"], "--dsjson cannot be used with Parquet"),
        (["{logs}/no.parquet"], "no such file or folder of Parquet"),
        (["{logs}"], "the columns do not say which one is the label"),
        (["columns"], "columns takes files of Parquet"),
    ],
)
def test_mistakes_are_errors_of_one_line(
    logs: Path, words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("{logs}", str(logs)) for word in words]) in (1, 2)
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1


def test_parquet_is_converted_to_blocks_of_the_same_events(tmp_path: Path, logs: Path) -> None:
    run("convert", logs / "0.parquet", tmp_path / "e.blocks", "--cb_explore_adf", "--quiet")
    run(tmp_path / "e.blocks", "--cb_explore_adf", "-p", tmp_path / "p.txt", "--quiet")
    run(logs / "0.parquet", "--cb_explore_adf", "-p", tmp_path / "q.txt", "--quiet")
    assert (tmp_path / "p.txt").read_bytes() == (tmp_path / "q.txt").read_bytes()
