"""The harness of the speed table: what it runs, in which order, and what it makes of the numbers."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pytest

from bench import base_against_head
from bench.speed import __main__ as speed
from bench.speed import readme_table
from bench.speed.our_worker import OneByOne, one_event_blocks, predict
from bench.speed.report import figures_of, printed
from bench.speed.table import CONTENDERS, ROWS, STREAMS, contenders_of
from bench.speed.workers import OUR_WORKER, WHEEL_WORKER, Worker, WorkerError
from datasets.generate import text, write

if TYPE_CHECKING:
    from pathlib import Path

    from bench.speed.table import Contender

BY_NAME = {row.name: row for row in ROWS}


class Recorder:
    """A field on which nothing runs: it notes who was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, contender: Contender) -> dict[str, float]:
        self.asked.append(contender.name)
        return {"seconds": float(len(self.asked)), "missed": 0.0}


def measure(*names: str, rounds: int) -> tuple[list[str], dict[str, dict[str, list[float]]]]:
    recorder = Recorder()
    rows = [BY_NAME[name] for name in names]
    samples = speed.measure(rows, rounds=rounds, field=cast("speed.Field", recorder), say=str)
    return recorder.asked, samples


@pytest.mark.ci
def test_rows_are_made_of_what_runs() -> None:
    assert len(BY_NAME) == len(ROWS)
    needed = contenders_of(ROWS)
    assert {contender.name for contender in needed} == set(CONTENDERS)
    assert all(contender.stream in STREAMS for contender in needed)
    assert [contender.name for contender in contenders_of((BY_NAME["narrow"], BY_NAME["exact"]))] == [
        "vw narrow automl 4",
        "ours narrow automl 4",
        "ours exact automl 4",
    ]


@pytest.mark.ci
def test_runs_alternate_and_the_first_of_each_is_not_counted() -> None:
    asked, samples = measure("narrow", rounds=3)
    wheel, ours = "vw narrow automl 4", "ours narrow automl 4"
    assert asked == [ours, wheel, wheel, ours, ours, wheel, wheel, ours]
    assert samples[wheel]["seconds"] == [3, 6, 7]
    assert samples[ours]["seconds"] == [4, 5, 8]


@pytest.mark.ci
def test_a_cold_start_runs_three_times_at_most() -> None:
    asked, samples = measure("cold", "help", rounds=5)
    assert asked.count("cold") == len(samples["cold"]["seconds"]) == 3
    assert asked.count("help") == 6
    assert len(samples["help"]["seconds"]) == 5


@pytest.mark.ci
@pytest.mark.parametrize(("wheel", "met"), [(120.0, True), (119.0, False)])
def test_a_figure_is_a_ratio_of_medians(wheel: float, met: bool) -> None:
    samples = {
        "vw narrow automl 4": {"seconds": [wheel, 1.0, 1000.0]},
        "ours narrow automl 4": {"seconds": [3.0, 2.0, 300.0]},
    }
    [figure] = figures_of([BY_NAME["narrow"]], samples)
    assert (figure.figure, figure.met) == (wheel / 3, met)
    assert ("NO" in printed([figure], start_up={}, samples=samples)) is not met


@pytest.mark.ci
def test_a_figure_of_its_own_and_the_most_that_will_do() -> None:
    samples = {"ours predict": {"p50": [14.0, 15.0, 99.0], "p99": [60.5, 60.5, 1.0]}}
    rows = [BY_NAME["predict-p50"], BY_NAME["predict-p99"]]
    assert [(figure.figure, figure.met) for figure in figures_of(rows, samples)] == [
        (15, True),
        (60.5, False),
    ]


@pytest.mark.ci
def test_kernels_that_a_warm_up_missed_are_told() -> None:
    samples = {"cold": {"seconds": [9.0], "warmup": [1.0], "missed": [7.0]}}
    table = printed(figures_of([BY_NAME["cold"]], samples), start_up={}, samples=samples)
    assert "compiled 7 kernels more" in table


def document() -> dict[str, Any]:
    samples = {
        "vw reading": {"seconds": [0.5]},
        "ours reading": {"seconds": [0.1], "mb_per_second": [149.0]},
    }
    rows = [BY_NAME["reading"], BY_NAME["reading-mb"]]
    return {
        "command": "python -m bench.speed --rounds 1",
        "rounds": 1,
        "commit": "0123",
        "machine": {"cpu": "Some processor", "cores": 2, "system": "Linux"},
        "versions": {"python": "3.11", "numba": "0.61"},
        "start_up": {"import onlineauto": 0.25},
        "rows": [figure.as_json() for figure in figures_of(rows, samples)],
    }


@pytest.mark.ci
def test_readme_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, readme = tmp_path / "speed.json", tmp_path / "README.md"
    source.write_text(json.dumps(document()), encoding="utf-8")
    readme.write_text(f"before\n{readme_table.BEGIN}\nold\n{readme_table.END}\nafter\n", encoding="utf-8")
    assert readme_table.main([str(source), str(readme), "--check"]) == 1
    assert "not current" in capsys.readouterr().err
    assert readme_table.main([str(source), str(readme)]) == 0
    assert readme_table.main([str(source), str(readme), "--check"]) == 0
    made = readme.read_text(encoding="utf-8")
    assert made.startswith("before\n")
    assert made.endswith("after\n")
    assert "old" not in made
    times = "\N{MULTIPLICATION SIGN}"
    assert f"| 0.500 s / 0.100 s | 5.00 {times} | ≥ 4 {times} | yes |" in made
    assert "|  | 149 MB/s | ≥ 150 MB/s | **no** |" in made
    for part in ("2 cores of Some processor", "numba 0.61", "commit 0123", document()["command"]):
        assert part in made


@pytest.mark.ci
@pytest.mark.parametrize("markers", ["", readme_table.BEGIN, readme_table.END + readme_table.BEGIN])
def test_markers_are_needed(markers: str) -> None:
    with pytest.raises(ValueError, match="each once"):
        readme_table.update(markers, document=document())


@pytest.mark.ci
def test_slower_beyond_the_tolerance() -> None:
    seconds = {
        "same": {"base": [1.0, 1.0, 1.0], "head": [1.0, 1.09, 9.0]},
        "late": {"base": [1.0, 1.0, 1.0], "head": [0.5, 1.11, 1.2]},
        "quick": {"base": [1.0], "head": [0.1]},
    }
    assert base_against_head.slower(seconds, tolerance=0.1) == ["late"]


class Turns:
    """A worker that notes its turns."""

    def __init__(self, name: str, turns: list[str]) -> None:
        self._name, self._turns = name, turns

    def ask(self, **request: Any) -> dict[str, float]:
        assert request["task"] == "fit"
        self._turns.append(self._name)
        return {"seconds": 1.0}


@pytest.mark.ci
def test_commits_take_turns(tmp_path: Path) -> None:
    turns: list[str] = []
    workers = {name: cast("Worker", Turns(name, turns)) for name in ("base", "head")}
    seconds = base_against_head.compare(
        workers, names=["narrow automl 4"], rounds=4, directory=tmp_path, share=0.001
    )
    assert turns == ["head", "base", "base", "head", "head", "base", "base", "head", "head", "base"]
    assert seconds == {"narrow automl 4": {"base": [1.0] * 4, "head": [1.0] * 4}}
    assert text("narrow", events=20) == (tmp_path / "narrow.txt").read_bytes()


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    path = tmp_path / "narrow.txt"
    write(path, kind="narrow", events=20)
    return path


@pytest.mark.ci
def test_wheel_worker(stream: Path) -> None:
    with Worker(WHEEL_WORKER) as worker:
        flags = CONTENDERS["vw reading"].flags
        assert worker.greeting["import_seconds"] > 0
        assert worker.ask(argv=[*flags, "-d", str(stream)], directory=str(stream.parent))["seconds"] > 0
        with pytest.raises(WorkerError, match="no_such_flag"):
            worker.ask(argv=["--no_such_flag"], directory=str(stream.parent))
        assert worker.ask(argv=["-d", stream.name, *flags], directory=str(stream.parent))["seconds"] > 0


@pytest.mark.ci
def test_our_worker(stream: Path) -> None:
    with Worker(OUR_WORKER) as worker:
        read = worker.ask(task="read", options={"cb_adf": True}, file=str(stream))
        assert read["mb_per_second"] * read["seconds"] == pytest.approx(stream.stat().st_size / 1e6)
        with pytest.raises(WorkerError, match="no_such_option"):
            worker.ask(task="fit", options={"no_such_option": 1}, file=str(stream))
        assert worker.ask(task="fit", options={"cb_explore_adf": True}, file=str(stream))["seconds"] > 0


@pytest.mark.ci
def test_blocks_of_one_event_each(stream: Path) -> None:
    assert OneByOne(str(stream)).read() == stream.read_bytes()
    blocks = list(one_event_blocks({"cb_explore_adf": True, "automl": 4}, file=str(stream)))
    assert [len(block) for block in blocks] == [1] * 20
    assert [block.n_lines for block in blocks] == [9] * 20
    assert all(one.namespaces is other.namespaces for one, other in pairwise(blocks))


@pytest.mark.ci
def test_percentiles_are_in_order(stream: Path) -> None:
    times = predict({"cb_explore_adf": True}, file=str(stream), calls=50)
    assert 0 < times["p50"] <= times["p99"]


@pytest.mark.bench
def test_the_whole_table_on_short_streams(tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    rows = [row.name for row in ROWS if row.name != "cold"]
    assert speed.main(["--rounds", "1", "--share", "0.02", "--only", *rows, "--json", str(path)]) in (0, 1)
    written = json.loads(path.read_text(encoding="utf-8"))
    assert [row["name"] for row in written["rows"]] == rows
    assert all(row["figure"] > 0 for row in written["rows"])


@pytest.mark.bench
def test_a_commit_is_as_fast_as_itself() -> None:
    arguments = ["HEAD", "HEAD", "--rounds", "3", "--only", "reading", "--tolerance", "1"]
    assert base_against_head.main(arguments) == 0
