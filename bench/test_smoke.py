"""One smoke test of each area: benches run on a few events, and write what they print."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlineauto
from bench import base_against_head, native_digests, partitions, scale
from bench.champion import real_pairs
from bench.drift import __main__ as drift
from bench.formats import blocks, dsjson
from bench.publish import __main__ as publish
from bench.publish import figures
from bench.quality import __main__ as quality
from bench.quality import off_policy, on_policy
from bench.quality.columns import save_columns
from bench.quality.logs import drawn, head, load, names_in, relogged, unlabelled
from bench.quality.peer_worker import Columns
from bench.quality.runs import run_best_mean_action
from bench.regression import moa, single_line
from bench.service import topics
from bench.speed import prices, vectors
from bench.speed.__main__ import Field
from bench.speed.process import run
from bench.speed.table import CONTENDERS, ROWS, contenders_of, figures_of
from bench.speed.workers import OUR_WORKER, VW_WORKER, Worker, WorkerError
from bench.speed_kinds.__main__ import report
from bench.speed_kinds.streams import KINDS
from bench.tune.suites import __main__ as suites
from bench.tune.suites import running
from datasets.convert import FOLDER
from datasets.generate import text, write
from onlineauto.cluster.partitions.coordinator import RoundSchedule

pytestmark = pytest.mark.ci

BY_NAME = {row.name: row for row in ROWS}


def document_of(main: Callable[[Sequence[str]], Any], path: Path, *words: str) -> Any:
    """Run a bench with ``--json`` and return what it has written."""
    assert main([*words, "--json", str(path)]) in (0, 1, None)
    return json.loads(path.read_text())


def peak_mb(path: Path, events: int) -> float:
    """Return the peak memory of learning events; the first run of all compiles what is not compiled yet."""
    write(path, kind="narrow", events=events)
    return run(["learn", "--cb_explore_adf", "--quiet", "-d", str(path)])["peak_mb"]


def test_partitions(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    write(path, kind="planted", events=1500)
    single, workers = scale.measure(path, 0), scale.measure(path, 1)
    assert (single.events, single.loss) == (workers.events, workers.loss)  # so few events are learnt alone
    schedule = RoundSchedule(alone=256, head=8, shortest=256, longest=128)
    for servers in (None, 2):
        costs = scale.measure_costs(path, schedule=schedule, partitions=2, servers=servers)
        assert costs.share > 0
        assert scale.simulate(costs, 2, events=256) * costs.event / 2 < 1  # the efficiency
    truth = partitions.write_stream(path, 2, 1500, changes=False)
    one, several = partitions.earned(path, truth, 0), partitions.earned(path, truth, 4)
    assert (one.rewards == several.rewards).all()


def test_native_digests(tmp_path: Path) -> None:
    write(tmp_path / "narrow.txt", kind="narrow", events=20)
    found = native_digests.digest(tmp_path / "narrow.txt", "--cb_explore_adf --automl 2")
    assert [len(digest) for digest in found.split()] == [16, 16]


def test_speed_workers(tmp_path: Path) -> None:
    stream = tmp_path / "narrow.txt"
    write(stream, kind="narrow", events=20)
    with Worker(VW_WORKER) as worker:
        argv = [*CONTENDERS["vw reading"].flags, "-d", str(stream)]
        assert worker.ask(argv=argv, directory=str(tmp_path))["seconds"] > 0
    with Field(tmp_path, share=0.001) as field:
        assert field.run(CONTENDERS["memory 100,000"])["peak_mb"] > 10
    with Worker(OUR_WORKER) as worker:
        read = worker.ask(task="read", options={"cb_adf": True}, file=str(stream))
        assert read["mb_per_second"] * read["seconds"] == pytest.approx(stream.stat().st_size / 1e6)
        with pytest.raises(WorkerError, match="no_such_option"):
            worker.ask(task="fit", options={"no_such_option": 1}, file=str(stream))


def test_speed_figures_are_ratios_of_medians() -> None:
    assert {contender.name for contender in contenders_of(ROWS)} == set(CONTENDERS)
    samples = {
        "vw narrow automl 4": {"seconds": [120.0, 1.0, 1000.0]},
        "ours narrow automl 4": {"seconds": [3.0, 2.0, 300.0]},
    }
    [figure] = figures_of([BY_NAME["narrow"]], samples)
    assert (figure.figure, figure.met) == (40, True)
    seconds = {"same": {"base": [1.0], "head": [1.09]}, "late": {"base": [1.0], "head": [1.11]}}
    assert base_against_head.slower(seconds, tolerance=0.1) == ["late"]


def test_speed_kinds(tmp_path: Path) -> None:
    for stream in KINDS.values():
        assert stream.write(tmp_path / "stream.txt", share=3 / stream.events) == 3
        for event in onlineauto.read(tmp_path / "stream.txt", cb_explore_adf=True).events():
            assert event.shared is not None
            assert len(event.actions) == stream.actions
            assert len(event.shared.features) == sum(part.many for part in stream.context)
    taken = {"VW -q ::": 8.0, "VW --automl 4": 100.0, "ensemble": 4.0, "champion": 2.0}
    sides = {side: [[{"wall": 2 * cpu, "cpu": cpu, "reward": 0.5}]] for side, cpu in taken.items()}
    lines, _ = report({"tiny": sides}, [1.0])
    assert "- VW -q :: / ensemble, first events: 2.00 (geometric mean), 2.00 (worst)" in lines
    assert lines[2].endswith("| 0.500, 0.500, 0.500, 0.500 |")


def test_speed_of_vectors(tmp_path: Path) -> None:
    words = ["--numbers", "16", "--actions", "2", "--events", "20", "--rounds", "1"]
    rows = document_of(vectors.main, tmp_path / "vectors.json", *words)
    assert [row["contender"] for row in rows] == ["LinUCB", "array", "list", "4 numbers"]


def test_calibration_of_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--check", "--kinds", "tiny", "--rounds", "1", "--events", "1536"]
    rows = document_of(prices.main, tmp_path / "prices.json", *words)
    assert {"features", "crosses in pairs", "trees"} < {row["score"] for row in rows}
    assert "| score | factor |" in capsys.readouterr().out
    rows = [
        prices.Measured(str(work), "means", 3.0 * (5 + work), 10.0 + work, work, work)
        for work in (2, 90, 800)
    ]
    assert max(prices.calibrate(rows).errors(rows)) < 1.2
    assert prices.text_of(prices.CURRENT) == prices.FILE.read_text("utf-8")


def test_formats(tmp_path: Path) -> None:
    rows = document_of(blocks.main, tmp_path / "b.json", "--rounds", "2", "--scale", "0.01")["rows"]
    assert [row["stream"] for row in rows] == list(blocks.STREAMS)
    events = text("narrow", events=20)
    log = "".join(f"{line}\n" for line in dsjson.log_of(events)).encode()
    [one], [other] = onlineauto.read(events, cb_adf=True), onlineauto.read(log, dsjson=True, cb_adf=True)
    for name in ("event_start", "shared", "cost", "probability", "cost_start"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_memory_does_not_grow_with_the_stream(tmp_path: Path) -> None:
    peaks = [peak_mb(tmp_path / "stream.txt", events) for events in (100, 10_000, 50_000)]
    assert peaks[2] < 1.1 * peaks[1]


def test_quality(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--sets", "letter", "--kinds", "u", "--events", "600", "--seeds", "1", "--peer-seeds", "0"]
    words += ["--cache", str(tmp_path / "cache.jsonl"), "--ours", "--automl 2"]
    first = document_of(quality.main, tmp_path / "1.json", *words)
    assert document_of(quality.main, tmp_path / "2.json", *words) == first  # from the cache
    assert {row["who"] for row in first["rows"]} >= {"--automl 2", "-q :: -l .05", "best mean action"}
    assert "letter-u" in capsys.readouterr().out
    words = ["--logs", "surveys-e", "--events", "600", "--seeds", "5"]
    for row in document_of(off_policy.main, tmp_path / "3.json", *words)["rows"]:
        assert row["errors"]["dr"] < row["widths"]["dr"]
    words = ["--sets", "surveys", "--events", "300", "--seeds", "2"]
    for row in document_of(on_policy.main, tmp_path / "4.json", *words)["rows"]:
        assert 0 < row["reward"]["low"] <= row["reward"]["high"] < 1


def test_quality_logs_are_drawn_again(tmp_path: Path) -> None:
    assert len(names_in(FOLDER)) == 11
    log = load("penbased-u")
    again = drawn(log, 0)
    assert np.array_equal(again.actions, log.actions)
    assert np.allclose(again.probabilities, log.probabilities)
    log = head(load("surveys-u"), 300)
    other = relogged(log, 1)
    assert list(map(unlabelled, other.events)) == list(map(unlabelled, log.events))
    assert not np.array_equal(other.actions, log.actions)
    save_columns(log, tmp_path / "log.npz")
    columns = Columns(str(tmp_path / "log.npz"))
    assert columns.shared.shape == (300, 7)
    assert columns.nominal.tolist() == [3, 7]  # the sex, and the action


def test_best_mean_action_is_that_of_the_largest_weighted_mean() -> None:
    log = head(load("route-u"), 400)
    run = run_best_mean_action(log)
    weights = [log.observed[log.actions == action] for action in range(3)]
    assert run.greedy[-1] == np.argmax([rewards.mean() for rewards in weights])
    assert len(set(run.greedy)) > 1


def test_drift(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--before", "1000", "--after", "1000", "--regime", "1000", "--runs", "2", "--events", "2000"]
    rows = document_of(drift.main, tmp_path / "rows.json", "--seeds", "1", *sizes)
    assert [len(rows[part]) for part in ("flip", "return", "stationary")] == [1, 1, 2]
    assert "2 stationary runs of 2,000 events" in capsys.readouterr().out


def test_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    words = ["--lines", "200", "--seeds", "1", "--sets", "flights", "--peer-python", str(python)]
    rows = document_of(single_line.main, tmp_path / "1.json", *words, "--table-python", str(python))
    assert [run["lines"] for run in rows["runs"]] == [200] * 5
    assert "AutoVW is left out" in capsys.readouterr().out
    pytest.importorskip("river")
    from bench.regression import learners

    words = ["--events", "500", "--orders", "2", "--sets", "Phishing", "--learners", "onlineauto"]
    results = document_of(learners.main, tmp_path / "2.json", *words, "river linear")["Phishing"]
    native, linear = (sum(right for right, *_ in results[name]) for name in ("onlineauto", "river linear"))
    assert native > linear


def test_streams_beside_capymoa(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[dict[str, Any], int]] = [({"a b": 1.5, "word": "x,y"}, 0), ({"a b": -2.0}, 1)]
    path = tmp_path / "stream.arff"
    moa.write_arff(rows, path)
    assert moa.read_arff(path) == [({"x0": 1.5, "x1": "x_y"}, "0"), ({"x0": -2.0}, "1")]
    moa.write_arff(moa.SETS["weather"]()[:600], path)
    run = moa.run_ours(moa.read_arff(path), seed=1)
    assert 0 < run["kappa"] < run["right"] < 1
    words = ["--quick", "--peers", sys.executable, "--data", str(tmp_path), "--only", "capymoa"]
    assert publish.main(words) == 0
    assert "The section capymoa is left out: " in capsys.readouterr().err
    assert not [*tmp_path.glob("*.csv")]


def test_service_topics(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("confluent_kafka")
    rows = topics.messages(400)
    assert 680 < np.mean([len(row[0]) for row in rows]) < 700
    topics.main(["--decisions", "400", "--rounds", "1"])
    assert re.fullmatch(r"file +[\d.]+\ntopic +[\d.]+\nlearnt +[\d.]+\n", capsys.readouterr().out)


def test_champion(tmp_path: Path) -> None:
    words = ["--logs", "penbased-u", "--events", "1500"]
    assert len(document_of(real_pairs.main, tmp_path / "2.json", *words)["pairs"]) == 5


def test_publish(tmp_path: Path) -> None:
    words = [
        "--quick",
        "--peers",
        sys.executable,
        "--data",
        str(tmp_path),
        "--only",
        "one-event",
        "off-policy",
    ]
    assert publish.main(words) == 0
    names = {"one-event", "off-policy-errors", "off-policy-intervals"}
    assert {path.stem for path in tmp_path.glob("*.csv")} == names
    assert figures.read_run(tmp_path)["sections"].keys() == {"one-event", "off-policy"}
    time, *_ = figures.read("one-event", tmp_path)
    assert time.low <= time.median <= time.high


def test_tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(running, "MULTI", 1)
    file = tmp_path / "runs.jsonl"
    words = ["run", str(file), "--who", "random", "our DEHB", "--only", "MF-Hartmann: 3", "--seeds"]
    assert suites.main([*words, "1"]) == 0
    before = file.read_text("utf-8")
    assert suites.main([*words, "2"]) == 0
    assert file.read_text("utf-8").startswith(before)  # runs are resumed
    assert suites.main(["table", str(file)]) == 0
    assert "| MF-Hartmann | our DEHB | 2 | 2 |" in capsys.readouterr().out
