"""Parquet on the command line: in, out, columns, resumed runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlineauto import AutoML
from onlineauto.formats.datasets.columns import columns_of, read_columns
from onlineauto.workspace.run import Run
from tests.cli.conftest import Command

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


@pytest.mark.parametrize(
    "source", ["logs", "-d logs/*.parquet", "logs/0.parquet logs/1.parquet logs/2.parquet"]
)
def test_files_folders_and_patterns_give_the_same_predictions(
    run: Command, tmp_path: Path, logs: Path, source: str
) -> None:
    (tmp_path / "columns.toml").write_text(COLUMNS)
    report = run(f"{source} --columns columns.toml --cb_explore_adf -p p.txt").err
    assert "number of examples = 600" in report
    text = "".join(text_of(path) for path in sorted(logs.iterdir()))
    (tmp_path / "events.txt").write_text(text)
    run("events.txt --cb_explore_adf -p q.txt --quiet")
    named = (tmp_path / "q.txt").read_text().replace("0:", "art:").replace("1:", "sport:")
    assert (tmp_path / "p.txt").read_text() == named


def text_of(path: Path) -> str:
    events = []
    for row in pq.read_table(path).to_pylist():
        cost = f"0:{0 - row['click']}:{row['p']} "
        lines = [f"{cost if row['arm'] == arm else ''}|arm arm={arm}" for arm in ("art", "sport")]
        events.append("\n".join([f"shared |user name={row['name']} age:{row['age']}", *lines, "\n"]))
    return "".join(events)


def test_columns_prints_a_file_that_learn_reads(run: Command, tmp_path: Path, logs: Path) -> None:
    printed = run("columns logs/*.parquet").out
    assert 'choices = ["art", "sport"]' in printed
    assert 'reward = "click"' in printed
    (tmp_path / "columns.toml").write_text(printed)
    run("logs --cb_explore_adf -p inferred.txt --quiet")
    run("logs --cb_explore_adf -p read.txt --quiet --columns columns.toml")
    assert (tmp_path / "inferred.txt").read_bytes() == (tmp_path / "read.txt").read_bytes()


def test_predictions_are_written_as_parquet(run: Command, tmp_path: Path, logs: Path) -> None:
    run("logs --cb_explore_adf -p p.parquet --quiet")
    run("logs --cb_explore_adf -p p.txt --quiet")
    found = pq.read_table(tmp_path / "p.parquet").to_pylist()
    lines = (tmp_path / "p.txt").read_text().split()
    assert len(found) == len(lines) == 600
    for row, line in zip(found, lines, strict=True):
        pairs = [each.split(":") for each in line.split(",")]
        assert row["actions"] == [action for action, _ in pairs]
        assert row["probabilities"] == pytest.approx([float(p) for _, p in pairs], abs=1e-6)


@pytest.mark.parametrize(("flag", "column"), [("", "prediction"), ("--cb_adf", "action")])
def test_predictions_of_other_kinds_are_written_as_parquet(
    run: Command, tmp_path: Path, flag: str, column: str
) -> None:
    text = b"0:1:0.5 |a x\n|a y\n\n|a y\n|a z\n\n" if flag else b"1 1 t1|a x\n0 |a y\n"
    (tmp_path / "e.txt").write_bytes(text)
    run(f"e.txt {flag} -p p.parquet --quiet")
    found = pq.read_table(tmp_path / "p.parquet")
    assert found.column_names == ["line", "tag", column]
    assert found["tag"].to_pylist() == ([None, None] if flag else ["t1", None])


def test_resumed_run_is_the_uninterrupted_one(
    run: Command, tmp_path: Path, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "logs --cb_explore_adf --automl 2 --quiet"
    run(words, "-f whole.oam -p whole.txt")
    words += " -f m.oam -p p.txt --save_every 333"
    checkpoint = Run.checkpoint

    def killed(self: Run, target: Any) -> None:
        checkpoint(self, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Run, "checkpoint", killed)
        run(words, code=130)
    assert len((tmp_path / "p.txt").read_text().split()) == 333
    run(words, "--resume")
    assert (tmp_path / "p.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()


def test_damage_in_mid_stream_is_reported_and_what_was_learnt_is_saved(
    run: Command, tmp_path: Path, logs: Path
) -> None:
    (logs / "1.parquet").write_bytes(b"PAR1")
    err = run("logs --cb_explore_adf -f m.oam").err
    assert "logs/1.parquet:1:1: the file cannot be opened: " in err
    assert "number of examples = 400" in err
    run("logs --cb_explore_adf -f n.oam --strict_parse", code=1)
    assert (tmp_path / "n.oam").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--columns x.toml", "--columns is for Parquet"),
        ("logs --columns no.toml --cb_explore_adf", "cannot be read"),
        ("logs events.txt --cb_explore_adf", "is Parquet and other files are not"),
        ("logs --cb_explore_adf --audit", "--audit cannot be used with Parquet"),
        ("logs --cb_explore_adf --dsjson", "--dsjson cannot be used with Parquet"),
        ("logs/no.parquet", "no such file or folder of Parquet"),
        ("logs", "the columns do not say which one is the label"),
        ("columns", "columns takes files of Parquet"),
    ],
)
def test_mistakes_are_errors_of_one_line(run: Command, logs: Path, words: str, why: str) -> None:
    err = run(words, code=None).err
    assert why in err
    assert err.count("\n") == 1


def test_parquet_is_converted_to_blocks_of_the_same_events(run: Command, tmp_path: Path, logs: Path) -> None:
    run("convert logs/0.parquet e.blocks --cb_explore_adf --quiet")
    run("e.blocks --cb_explore_adf -p p.txt --quiet")
    run("logs/0.parquet --cb_explore_adf -p q.txt --quiet")
    named = (tmp_path / "p.txt").read_text().replace("0:", "art:").replace("1:", "sport:")
    assert named == (tmp_path / "q.txt").read_text()


# -- what a row is -------------------------------------------------------------------------------------


def flat(path: Path, n: int = 500, **changed: Any) -> Path:
    item = np.arange(n) % 5
    columns = {
        "request_id": [f"q{number}" for number in range(n)],
        "segment": pa.array(["a", "b"]).take(pa.array(item % 2)),
        "product": pa.array(list("vwxyz")).take(pa.array(item)),
        "click": (item == 2).astype("int8"),
        "propensity": np.full(n, 0.2),
    }
    pq.write_table(pa.table(columns | changed), path)
    return path


def nested(path: Path, index: str = "clicked_index", n: int = 200, **inside: Any) -> Path:
    fields = {"topic": ["a", "b"] * n} | inside
    structs = pa.StructArray.from_arrays(list(map(pa.array, fields.values())), names=list(fields))
    items = pa.ListArray.from_arrays(pa.array(np.arange(0, 2 * n + 1, 2), pa.int32()), structs)
    rows = {"request_id": np.arange(n), "items": items, index: np.arange(n) % 2, "click": np.ones(n)}
    pq.write_table(pa.table(rows | {"p": np.full(n, 0.5)}), path)
    return path


def test_one_row_per_request_is_one_decision(run: Command, tmp_path: Path) -> None:
    printed = run("columns", flat(tmp_path / "flat.parquet")).out
    for line in (
        'rows = "events"  # each row is a decision, with the action that was taken',
        'action = "product"  # 5 distinct values in 500 rows; 1 / propensity is 5 on average',
        'reward = "click"  # 2 distinct values in 500 rows, from 0 to 1',
        'probability = "propensity"  # 1 distinct value in 500 rows, from 0.2 to 0.2',
        'tag = "request_id"  # 500 distinct values in 500 rows: one row is one decision',
    ):
        assert line in printed.splitlines()


def test_rows_of_one_request_are_actions_of_one_decision(run: Command, tmp_path: Path) -> None:
    ids, costs = np.arange(500) // 5, [1.0, None, None, None, None] * 100
    path = flat(tmp_path / "flat.parquet", request_id=ids, click=costs)
    assert 'rows = "actions"' in run("columns", path).out


def test_a_missing_column_of_the_action_is_requested(run: Command, tmp_path: Path) -> None:
    path = flat(tmp_path / "flat.parquet", propensity=np.full(500, 0.11))
    run("columns", path, code=1, err="which column or columns describe the actions")


def test_index_of_the_action_in_a_list_is_recognised(run: Command, tmp_path: Path) -> None:
    printed = run("columns", nested(tmp_path / "nested.parquet")).out
    assert 'list = "items"  # 1 distinct length in 200 rows, from 2 to 2' in printed
    assert 'chosen = "clicked_index"' in printed
    run("nested.parquet --cb_explore_adf --quiet")


def test_outcomes_without_an_action_are_not_features(run: Command, tmp_path: Path) -> None:
    path = nested(tmp_path / "nested.parquet", "which", clicked=np.arange(400) % 2)
    printed = run("columns", path).out
    assert "#   click: an outcome needs the index of the action that was taken" in printed
    assert "#   items: clicked: an outcome needs" in printed
    assert "click" not in printed.partition("# left out")[0]
    run(
        path,
        "--cb_explore_adf --quiet",
        code=1,
        err="no event has its cost and probability; correct what the columns are",
    )


# -- runs that learn nothing ---------------------------------------------------------------------------


def test_run_over_events_with_one_action_each_ends_with_an_error(run: Command, tmp_path: Path) -> None:
    flat(tmp_path / "flat.parquet")
    (tmp_path / "columns.toml").write_text(
        'rows = "actions"\nevent = "request_id"\nreward = "click"\nprobability = "propensity"\n'
        'actions = ["product"]'
    )
    words = "flat.parquet --columns columns.toml --cb_explore_adf --quiet"
    run(words, "-f m.oam", code=1, err="each event has only one action")
    assert (tmp_path / "m.oam").exists()
    run(words, "-t")


def test_run_over_events_without_labels_ends_with_an_error(run: Command, tmp_path: Path) -> None:
    path = flat(tmp_path / "flat.parquet", click=pa.nulls(500, pa.float64()))
    run(
        path,
        "--cb_explore_adf --quiet",
        code=1,
        err="no event has its cost and probability; correct what the columns are",
    )
    run(path, "--cb_explore_adf --quiet -t")
    (tmp_path / "events.txt").write_text("|a x\n|a y\n\n" * 9)
    run("events.txt --cb_explore_adf --quiet", code=1)
    run("events.txt --cb_explore_adf --quiet -t")


# -- predictions ---------------------------------------------------------------------------------------

FLAT = """\
rows = "events"
action = "product"
reward = "click"
probability = "propensity"
tag = "request_id"

[context]
segment = ["segment"]
"""


@pytest.fixture
def scored(run: Command, tmp_path: Path) -> None:
    (tmp_path / "columns.toml").write_text(FLAT)
    run(flat(tmp_path / "log.parquet"), "--columns columns.toml --cb_explore_adf --quiet -f m.oam")


@pytest.mark.parametrize("words", ["--columns columns.toml", ""], ids=["columns", "columns of the model"])
@pytest.mark.usefixtures("scored")
def test_rows_are_scored_without_columns_of_outcomes(run: Command, tmp_path: Path, words: str) -> None:
    whole = pq.read_table(tmp_path / "log.parquet")
    pq.write_table(whole.select(["segment"]).slice(0, 7), tmp_path / "new.parquet")
    run(f"new.parquet {words} -i m.oam -t -p new.txt --quiet")
    run(f"log.parquet {words} -i m.oam -t -p p.parquet --quiet")
    found = pq.read_table(tmp_path / "p.parquet")["actions"].to_pylist()[:7]
    lines = (tmp_path / "new.txt").read_text().split()
    assert [[each.split(":")[0] for each in line.split(",")] for line in lines] == found
    assert set(found[0]) == set("vwxyz")


def test_rows_without_a_label_are_predicted(run: Command, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('{"_label": 1, "age": 2}\n{"_label": 2, "age": 4}\n' * 50)
    (tmp_path / "new.json").write_text('{"age": 3}\n{"age": 4}\n')
    pq.write_table(pa.table({"age": [3, 4]}), tmp_path / "new.parquet")
    run("log.json --json --names columns -f m.oam --quiet")
    run("new.json --json -i m.oam -t -p json.txt --quiet")
    run("new.parquet -i m.oam -t -p parquet.txt --quiet")
    assert (tmp_path / "parquet.txt").read_text() == (tmp_path / "json.txt").read_text() != ""
    assert "do not say which one is the label" in run("new.parquet -i m.oam", code=1).err


@pytest.mark.usefixtures("scored")
def test_choices_of_the_model_are_those_of_rows_that_have_fewer(run: Command, tmp_path: Path) -> None:
    few = pq.read_table(tmp_path / "log.parquet").slice(0, 2)
    pq.write_table(few, tmp_path / "few.parquet")
    run("few.parquet -i m.oam -t -p p.txt --quiet")
    assert all(len(line.split(",")) == 5 for line in (tmp_path / "p.txt").read_text().split("\n\n") if line)


@pytest.mark.usefixtures("scored")
def test_changed_type_of_a_column_is_counted_when_a_file_is_read_alone(run: Command, tmp_path: Path) -> None:
    flat(tmp_path / "next.parquet", segment=np.arange(500))
    error = run("next.parquet --columns columns.toml -i m.oam", code=1).err
    assert "column 'segment' has numbers here, and texts in files before; file skipped" in error
    run("next.parquet --columns columns.toml --cb_explore_adf --quiet")


def test_best_action_is_named(run: Command, tmp_path: Path) -> None:
    (tmp_path / "columns.toml").write_text(FLAT)
    flat(tmp_path / "log.parquet")
    for output in ("p.parquet", "p.txt"):
        run(f"log.parquet --columns columns.toml --cb_adf --quiet -p {output}")
    named = pq.read_table(tmp_path / "p.parquet")["action"].to_pylist()
    lines = (tmp_path / "p.txt").read_text().split("\n\n")[:-1]
    assert lines == [f"{name} q{row}" for row, name in enumerate(named)]
    assert set(named) <= set("vwxyz")


def test_line_breaks_in_tags_and_names_are_replaced(run: Command, tmp_path: Path) -> None:
    names = pa.array(["a b", "c:1,d"]).take(pa.array(np.arange(500) % 2))
    ids = [f"r{number}\n\n1:1 forged" for number in range(500)]
    path = flat(tmp_path / "log.parquet", product=names, request_id=ids)
    (tmp_path / "columns.toml").write_text(FLAT)
    run(path, "--columns columns.toml --cb_explore_adf --quiet -p p.txt")
    lines = (tmp_path / "p.txt").read_text().split("\n")
    assert lines[:2] == ["a_b:0.5,c_1_d:0.5 r0__1:1_forged", ""]
    assert len(lines) == 2 * 500 + 1


def test_choices_with_features_are_those_of_a_frame(run: Command, tmp_path: Path) -> None:
    path = flat(tmp_path / "log.parquet")
    features: dict[str, Any] = {
        "v": {"topic": "news", "price": 2},
        "w": {"topic": "news"},
        "x": {"topic": "art", "tags": ["new", "hot"]},
    }
    features |= {"y": {"size": {"width": 0.5, "height": 2.0}}, "z": {"price": 1.5, "new": True}}
    columns = columns_of(
        {
            "rows": "events",
            "action": "product",
            "reward": "click",
            "probability": "propensity",
            "choices": features,
            "context": ["segment"],
        }
    )
    (tmp_path / "columns.toml").write_text(columns.toml())
    assert read_columns(tmp_path / "columns.toml") == columns
    named: dict[str, Any] = {"actions": "product", "reward": "click", "probability": "propensity"}
    named["context"] = ["segment"]
    by_frame = AutoML(seed=1).fit_table(pq.read_table(path), choices=features, **named)
    for by_file in (
        AutoML(seed=1).fit_table(path, columns=tmp_path / "columns.toml"),
        AutoML(seed=1).fit_table(path, choices=features, **named),
    ):
        found, wanted = (
            each.predict({"segment": "a"}, list(features.values())) for each in (by_file, by_frame)
        )
        assert found.tobytes() == wanted.tobytes()
        assert by_file.average_reward == by_frame.average_reward
    run(path, "--columns columns.toml --cb_explore_adf --quiet -p p.txt")
    assert (tmp_path / "p.txt").read_text().startswith("v:0.2,w:0.2,x:0.2,y:0.2,z:0.2")


def test_malformed_features_of_choices_are_refused(run: Command, tmp_path: Path) -> None:
    path = flat(tmp_path / "log.parquet")
    for choices, why in (
        ("v = 3", "choices.v is a table of features, not 3"),
        ("v = { a = 1979-05-27 }", "choices.v"),
    ):
        (tmp_path / "columns.toml").write_text(f"{FLAT}[choices]\n{choices}\n")
        run(path, "--columns columns.toml --cb_explore_adf --quiet", code=1, err=why)


def test_inspect_names_the_weights_of_columns(run: Command, tmp_path: Path, logs: Path) -> None:
    run("logs --cb_explore_adf --automl -f m.oam --quiet")
    found = run("inspect m.oam logs --largest 12").out
    names = {line.split()[0] for line in found.partition("Largest weights")[2].splitlines()[2:]}
    assert names >= {"arm^arm=art", "age^age", "name^name=tom"}, names
    (tmp_path / "c.toml").write_text(COLUMNS)
    frame = pq.read_table(logs / "0.parquet").to_pandas()
    bandit = AutoML().fit_table(
        frame, context={"user": ["name", "age"]}, actions="arm", reward="click", probability="p"
    )
    bandit.save(tmp_path / "b.oam")
    found = run("inspect b.oam logs/0.parquet --columns c.toml").out
    assert "user^name=ann*arm^arm=sport" in found or "arm^arm=sport*user^name=ann" in found, found


def test_inspect_names_the_weights_of_lists_and_of_ids(run: Command, tmp_path: Path, logs: Path) -> None:
    n = 200
    lists = {
        "tags": pa.array([["new", None]] * n),
        "place": pa.array([[0.5, float(i % 3)] for i in range(n)]),
    }
    written(logs / "lists.parquet", n, arm=np.arange(n) % 2 + 7, **lists)
    run("logs/lists.parquet --cb_explore_adf --automl -f m.oam --quiet")
    found = run("inspect m.oam logs/lists.parquet --largest 40").out
    names = {line.split()[0] for line in found.partition("Largest weights")[2].splitlines()[2:]}
    assert names >= {"arm^arm=7", "tags^new", "place^[0]", "place^[1]"}, names
