"""The verb ``learn``: what it prints and writes, and how it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from onlineauto.cli.main import main
from onlineauto.workspace.workspace import Workspace
from tests.cli.conftest import Command
from tests.waiting import PATIENCE

SIMPLE = b"""1 |a x:0.5 y
-1 2 'tagged |a x z
0.5 1 0.25 t2|b y:3
|a x
2 |a q
-0.25 |a q
1 |b x
"""

EVENTS = b"""shared tag1|s a b
0:-1:0.1 |x one
|x two
|x three

shared |s c
|x one
1:0.5:0.25 |x two

|x one
|x two

shared |s a
0:1:1 'at|x one

"""

TITLES = """\
average  since         example        example        current        current  current
loss     last          counter         weight          label        predict features
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.txt").write_bytes(SIMPLE)
    (tmp_path / "adf.txt").write_bytes(EVENTS)


def test_single_line_run(run: Command, tmp_path: Path) -> None:
    captured = run("-d s.txt --vw_exact -p p -r r")
    assert captured.out == ""
    assert captured.err == (
        """\
predictions = p
raw predictions = r
using no cache
Reading datafile = s.txt
num sources = 1
Num weight bits = 18
learning rate = 0.5
initial_t = 0
power_t = 0.5
Enabled learners: gd, scorer-identity, count_label
Input label = SIMPLE
Output pred = SCALAR
"""
        + TITLES
        + """\
1.000000 1.000000            1            1.0         1.0000         0.0000        3
1.996294 2.494441            2            3.0        -1.0000         0.5794        3
2.054908 2.142829            5            6.0         2.0000        -0.0454        2

finished run
number of examples = 7
weighted example sum = 8.000000
weighted label sum = 2.250000
average loss = 1.651548
best constant = 0.321429
total feature number = 16
"""
    )
    expected = "0\n0.579380 tagged\n0.180607 t2\n-0.132952\n-0.045396\n0.404400\n0.073686\n"
    assert (tmp_path / "p").read_text() == expected
    assert (tmp_path / "r").read_text() == expected


def test_bandit_run(run: Command, tmp_path: Path) -> None:
    flags = "--vw_exact adf.txt --cb_explore_adf --cb_type ips -p p --extra_metrics m.json"
    assert run(f"learn {flags}").err == (
        """\
predictions = p
using no cache
Reading datafile = adf.txt
num sources = 1
Num weight bits = 18
learning rate = 0.5
initial_t = 0
power_t = 0.5
cb_type = ips
Enabled learners: gd, scorer-identity, csoaa_ldf-rank, cb_adf, cb_explore_adf_greedy, \
shared_feature_merger, extra_metrics
Input label = CB
Output pred = ACTION_PROBS
"""
        + TITLES
        + """\
-3.33333 -3.33333            1            1.0       0:-1:0.1         0:0.33       12
-1.64166 0.050000            2            2.0     1:0.5:0.25         0:0.97        6
-0.76111 1.000000            4            4.0          0:1:1            0:1        3

finished run
number of examples = 4
weighted example sum = 4.000000
weighted label sum = 0.000000
average loss = -0.761111
total feature number = 25
"""
    )
    assert (tmp_path / "p").read_text() == (
        "0:0.333333,1:0.333333,2:0.333333 tag1\n\n0:0.975,1:0.025\n\n0:0.975,1:0.025\n\n0:1\n\n"
    )
    metrics = json.loads((tmp_path / "m.json").read_bytes())
    assert metrics["extra_metrics"] == {"total_learn_calls": 4, "total_predict_calls": 0}
    assert "onlineauto" not in metrics


def test_passes(run: Command) -> None:
    flags = "-d s.txt --vw_exact --passes 2 --holdout_period 2"
    table = run(flags).err.split(TITLES)[1]
    assert (
        table
        == """\
1.000000 1.000000            1            1.0         1.0000         0.0000        3
0.501617 0.003235            2            2.0         0.5000         0.4431        2
1.419008 3.253788            4            4.0         2.0000         0.1962        2
2.703357 2.703357            8            8.0        unknown         0.9205        2 h

finished run
number of examples per pass = 5
passes used = 2
weighted example sum = 10.000000
weighted label sum = 9.000000
average loss = 1.974161 h
best constant = 1.125000
total feature number = 22
"""
    )


def test_quiet_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.txt").write_bytes(b"x |a b\n1 |a b\n")
    assert main(["-d", "bad.txt", "--quiet", "-P", "10.5", "-p", "p", "--extra_metrics", "m"]) == 0
    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "p").read_bytes() == b"0\n"
    diagnostics = json.loads((tmp_path / "m").read_bytes())["onlineauto"]["diagnostics"]
    assert diagnostics == {"label_not_a_number": 1}


def test_predictions_on_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-d", "s.txt", "--quiet", "-p", "stdout"]) == 0
    assert capfd.readouterr().out.splitlines()[:2] == ["0", "0.579380 tagged"]


def test_diagnostics_are_located_and_counted(run: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"1 |a b\nx |a c\n1 2 3 4 |a b\nfoo\n-1 |a b\n")
    lines = run("-d bad.txt").err.splitlines()
    assert [line for line in lines if line.startswith("bad.txt:")] == [
        "bad.txt:2:1: label 'x' is not a number; line skipped",
        "bad.txt:3:7: '4' after label, weight and initial prediction; line skipped",
        "bad.txt:4:1: no '|' in 'foo'; line skipped",
    ]
    assert lines[lines.index("finished run") - 2] == (
        "onlineauto: warning: 3 problems in the input: 1 x no '|'; 1 x label is not a number; "
        "1 x ... after label, weight and initial prediction"
    )
    assert "number of examples = 2" in lines


def test_exact_mode_locates_what_vw_warns_of(run: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"1 |a b\nx |a c\n")
    captured = run("-d bad.txt --vw_exact")
    assert captured.out == ""
    assert "bad.txt:2:1: 'x' is not a good float; 0 used instead" in captured.err.splitlines()
    assert (
        "onlineauto: warning: 1 problem in the input: 1 x ... is not a good float"
        in captured.err.splitlines()
    )


def test_many_problems_are_counted_beyond_those_shown(run: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"x |a b\n" * 250 + b"1 |a b\n")
    lines = run("-d bad.txt").err.splitlines()
    assert sum(line.startswith("bad.txt:") for line in lines) == 100
    assert (
        "onlineauto: warning: 250 problems in the input, the first 100 shown: 250 x label is not a number"
        in lines
    )


def test_strict_parse_stops_and_reports_the_events_before(run: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"1 |a b\n2 |a b\nx |a c\n3 |a b\n")
    lines = run("-d bad.txt --strict_parse -p p", code=1).err.splitlines()
    assert "number of examples = 2" in lines
    assert lines[-1].startswith("onlineauto: error: bad.txt:3:1: label 'x' is not a number")
    assert (tmp_path / "p").read_text().count("\n") == 2


def test_a_missing_file_has_no_summary(run: Command) -> None:
    error = run("-d missing.txt", code=1).err
    assert error.endswith("onlineauto: error: missing.txt: no such file\n")
    assert "finished run" not in error


def test_a_prediction_file_that_cannot_be_written(run: Command) -> None:
    assert run("-d s.txt -p missing/p", code=1).err.startswith(
        "onlineauto: error: cannot write missing/p: No such file"
    )


def test_a_large_progress_factor_causes_a_warning(run: Command) -> None:
    first = run("-d s.txt -P 100.0").err.splitlines()[0]
    assert first.startswith("onlineauto: warning: --progress 100.0 is a factor")


def test_standard_input_from_a_pipe() -> None:
    script = "import sys; from onlineauto.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "--vw_exact", "-p", "stdout"]
    done = subprocess.run(command, input=SIMPLE, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1] == b"0.579380 tagged"
    assert b"Reading datafile = stdin" in done.stderr
    assert done.stderr.endswith(b"total feature number = 16\n")


def test_no_standard_input(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run(code=1).err.endswith("there is no standard input; -d names a file to read\n")


def test_a_closed_reader_ends_the_run_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_bytes(SIMPLE * 20_000)
    script = "import sys; from onlineauto.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "-d", "long.txt", "-p", "stdout"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(timeout=300) == 141
    assert b"Traceback" not in error
    assert b"Exception ignored" not in error


def _interrupted_stream(
    monkeypatch: pytest.MonkeyPatch, *, times: int, number: int = signal.SIGINT
) -> list[int]:
    """Make the workspace repeat one block, and raise the signal `times` times during the second one."""
    taken: list[int] = []
    real = Workspace.stream

    def stream(workspace: Workspace, *arguments: object, **options: object) -> Iterator[object]:
        (pair,) = real(workspace, *arguments, **options)  # type: ignore[arg-type]
        while len(taken) < 100:
            taken.append(len(taken))
            if len(taken) == 2:
                for _ in range(times):
                    signal.raise_signal(number)
            yield pair

    monkeypatch.setattr(Workspace, "stream", stream)
    return taken


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_interrupt_finishes_the_block(
    run: Command, number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = _interrupted_stream(monkeypatch, times=1, number=number)
    printed = run("-d s.txt -p p --extra_metrics m", code=code)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert taken == [0, 1]
    error = printed.err
    assert "interrupted after 14 events\nnumber of examples = 14\n" in error
    assert (tmp_path / "p").read_text().count("\n") == 14
    assert json.loads((tmp_path / "m").read_bytes())["extra_metrics"]["total_learn_calls"] == 12
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_interrupt_stops_at_once(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupted_stream(monkeypatch, times=2)
    assert "finished run" not in run("-d s.txt -p p", code=130).err
    assert (tmp_path / "p").read_text().count("\n") == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(os.name == "nt", reason="named pipes and their select are POSIX")
def test_an_interrupt_while_waiting_learns_the_received_events(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    done, waits = threading.Event(), threading.Event()
    ended: list[bool] = []
    wait = select.select

    def noted_wait(*files: Any) -> Any:
        if (tmp_path / "p").stat().st_size:  # all that came in is read, so nothing but the signal ends it
            waits.set()
        return wait(*files)

    monkeypatch.setattr(select, "select", noted_wait)

    def feed() -> None:
        with (tmp_path / "pipe").open("wb") as pipe:
            pipe.write(EVENTS + b"0:1:0.5 |a b\n|a c\n")  # the last event is not complete yet
            pipe.flush()
            assert waits.wait(PATIENCE)
            os.kill(os.getpid(), signal.SIGINT)
            ended.append(done.wait(PATIENCE))

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        printed = run("-d pipe --cb_explore_adf -p p", code=130)
    finally:
        done.set()
        feeder.join(PATIENCE)
    assert ended == [True]  # before the pipe was closed
    assert "number of examples = 5\n" in printed.err
    assert (tmp_path / "p").read_text().splitlines()[-2] == "0:0.5,1:0.5"


def test_ignored_interrupts_stay_ignored(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = _interrupted_stream(monkeypatch, times=1)

    def stop(*_: object, **__: object) -> None:
        if len(taken) == 5:
            raise OSError("enough")

    monkeypatch.setattr("onlineauto.engine.report.progress.ProgressTable.update", stop)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run("-d s.txt --quiet", code=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(taken) == 5


def test_outside_the_main_thread(run: Command) -> None:
    with ThreadPoolExecutor(1) as pool:
        report = pool.submit(run, "-d s.txt --vw_exact").result().err
    assert "number of examples = 7" in report


def test_predictions_never_overwrite_the_input(run: Command, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("1 |a x\n")
    run("-d", data, "-p", data, code=2, err="is the input: it would be lost")
    assert data.read_text() == "1 |a x\n"


def test_a_missing_input_does_not_change_old_predictions(run: Command, tmp_path: Path) -> None:
    predictions = tmp_path / "predictions.txt"
    predictions.write_text("old\n")
    run("-d missing.txt -p", predictions, code=1)
    assert predictions.read_text() == "old\n"


def test_the_first_word_may_be_a_file(run: Command, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("1 |a x\n")
    run(data, err="number of examples = 1")


def test_several_files_are_one_run(run: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("x |a b\n1 |a b\n")
    error = run("-d s.txt -d bad.txt s.txt -p p").err
    assert (
        "Reading datafile = s.txt\nReading datafile = bad.txt\nReading datafile = s.txt\nnum sources = 3\n"
        in error
    )
    assert "bad.txt:1:1: label 'x' is not a number; line skipped\n" in error
    assert "number of examples = 15\n" in error
    (tmp_path / "one.txt").write_bytes(SIMPLE + b"1 |a b\n" + SIMPLE)
    run("-d one.txt --quiet -p q")
    assert (tmp_path / "p").read_text() == (tmp_path / "q").read_text()


def test_missing_files_are_reported_before_any_event_is_learnt(run: Command, tmp_path: Path) -> None:
    assert run("-d s.txt -d nowhere.txt -p p", code=1).err == "onlineauto: error: nowhere.txt: no such file\n"
    assert not (tmp_path / "p").exists()
    run("-d adf.txt -d s.txt -p s.txt", code=2, err="--predictions s.txt is the input: it would be lost")


def test_blocks_and_their_text_give_the_same_output(run: Command, tmp_path: Path) -> None:
    run("convert adf.txt adf.blocks --cb_explore_adf --quiet")
    text = run("-d adf.txt --cb_explore_adf -q :: -p p").err.replace("adf.txt", "DATA")
    assert (
        run("-d adf.blocks --cb_explore_adf -q :: -p q")
        .err.replace("adf.blocks", "DATA")
        .replace(" q\n", " p\n")
        == text
    )
    assert (tmp_path / "p").read_text() == (tmp_path / "q").read_text()
    data = (tmp_path / "adf.blocks").read_bytes()
    (tmp_path / "cut.blocks").write_bytes(data[:-1])
    error = run("-d cut.blocks --cb_explore_adf", code=1).err
    assert "finished run\nnumber of examples = 4\n" in error
    assert "onlineauto: error: cut.blocks: this file of blocks is damaged: it ends within block 2" in error
