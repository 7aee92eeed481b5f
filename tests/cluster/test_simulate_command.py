"""``onlineauto simulate``: the table, and what is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from onlineauto.cli.main import main
from onlineauto.cluster import History
from onlineauto.cluster.learned import Learned

FEW = ["--traces", "4", "--jobs", "12"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", *FEW, "--policies", "fair", "--record", "log.jsonl"]) == 0
    assert "nothing to compare fair with" in capsys.readouterr().out
    return "log.jsonl"


def test_made_up_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *FEW, "--rate", "0.3"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("4 made-up traces of 12 jobs, 0.3 a slot\n")
    names = [line.split()[0] for line in said.splitlines()[3:] if line.endswith("100.0%")]
    assert sorted(names) == ["fair", "fifo", "learned", "marginal-gain", "srtf", "tetris"]
    assert "would have been faster: jobs take" in said


def test_a_log(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert History.load(log).head.policy == "fair"
    Learned.load().save("own.npz")
    words = ["--learned", "own.npz", "--policies", "learned,marginal-gain"]
    assert main(["simulate", log, "--traces", "4", *words]) == 0
    said = capsys.readouterr().out
    assert "12 jobs of 6 kinds; its own jobs, simulated, take" in said or "12 jobs of 5 kinds" in said
    assert "time / fair" in said
    assert "fifo" not in said


def test_jobs_that_never_worked_are_left_out_and_said(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    history = History.load(log)
    last = history.records[-1]
    history.add(
        msgspec.structs.replace(last, job="w", kind="waiting", workers=0, servers=0, before=0.0, done=0.0)
    )
    history.save(log)
    assert main(["simulate", log, "--traces", "4", "--policies", "fifo"]) == 0
    out, err = capsys.readouterr()
    assert "12 jobs of" in out
    assert "warning: left out 1 job of kind waiting, as none of this kind made any progress in the log" in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["a.jsonl", "b.jsonl"], 2, "simulate takes one log"),
        (["--policies", "lottery"], 2, "there is no policy 'lottery'; valid are marginal-gain, fair"),
        (["--by", "lottery"], 2, "there is no policy 'lottery'"),
        (["log.jsonl", "--record", "x"], 2, "--record writes the history of a made-up cluster"),
        (["missing.jsonl"], 1, "missing.jsonl: no such file"),
        (["bad.jsonl"], 1, "bad.jsonl:1: not a line of a cluster's history"),
        (["--rate", "0"], 2, "rate"),
    ],
)
def test_what_is_refused(
    words: list[str], code: int, message: str, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.jsonl").write_text("0 | a b\n")
    assert main(["simulate", *words]) == code
    assert message in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--help"]) == 0
    assert "Would it have been faster?" in capsys.readouterr().out


def test_a_public_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    trace, speeds = tmp_path / "a.trace", tmp_path / "speeds.json"
    trace.write_text("LM\tx\t-n\t1\t3600\t0\t1\n" * 2)
    speeds.write_text('{"v100": {"(\'LM\', 1)": {"null": 1.0}}, "k80": {"(\'LM\', 1)": {"null": 0.5}}}')
    words = ["simulate", "--workload", str(trace), "--speeds", str(speeds)]
    assert main([*words, "--gpus", "v100=1x2", "--policies", "gavel,goodput"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"2 jobs of {trace} on 2 v100\n")
    # A round of waiting, a restart of 30 s and an hour of work; rounds take 60 s and 360 s.
    rows = {line.split()[0]: float(line.split()[1]) for line in said.splitlines()[3:]}
    assert rows == {"goodput": round(3690 / 3600, 3), "gavel": round(3990 / 3600, 3)}
    assert main([*words, "--policies", "sia,magic"]) == 2
    assert "there is no policy 'magic'; valid are goodput, sia, gavel" in capsys.readouterr().err
    assert main(words[:3]) == 2
    assert "a public trace needs --workload FILE and --speeds PATH, and no log" in capsys.readouterr().err
