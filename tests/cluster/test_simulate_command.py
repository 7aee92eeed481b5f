"""``onlineauto simulate``: tables and errors."""

from __future__ import annotations

import sys
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
    Learned.load().save("own.oam")
    words = ["--learned", "own.oam", "--policies", "learned,marginal-gain"]
    assert main(["simulate", log, "--traces", "4", *words]) == 0
    said = capsys.readouterr().out
    assert "12 jobs of 6 kinds; its own jobs, simulated, take" in said or "12 jobs of 5 kinds" in said
    assert "time / fair" in said
    assert "fifo" not in said


def test_a_warning_names_kinds_that_are_left_out(log: str, capsys: pytest.CaptureFixture[str]) -> None:
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
        (
            ["log.jsonl", "--record", "x"],
            2,
            "--record is for made-up clusters: leave out --record, or the log",
        ),
        (["log.jsonl", "--rate", "0.5"], 2, "--rate is for made-up clusters: leave out --rate, or the log"),
        (["log.jsonl", "--jobs", "40"], 2, "--jobs is for made-up clusters"),
        (["missing.jsonl"], 1, "missing.jsonl: no such file"),
        (["bad.jsonl"], 1, "bad.jsonl:1: not a line of a cluster's history"),
        (["--rate", "0"], 2, "rate"),
        (["--policies", "fair", "--learned", "x"], 2, "--learned is for the policy learned: add it to"),
        (["--gpus", "rtx=3x8"], 2, "--gpus is for a public trace: it needs --workload FILE and"),
    ],
)
def test_invalid_commands_are_rejected(
    words: list[str], code: int, message: str, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.jsonl").write_text("0 | a b\n")
    assert main(["simulate", *words]) == code
    assert message in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--help"]) == 0
    assert "Would it have been faster?" in capsys.readouterr().out


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    pytest.importorskip("scipy")
    file, speeds = tmp_path / "a.trace", tmp_path / "speeds.json"
    file.write_text("LM\tx\t-n\t1\t3600\t0\t1\n" * 2)
    speeds.write_text('{"v100": {"(\'LM\', 1)": {"null": 1.0}}, "k80": {"(\'LM\', 1)": {"null": 0.5}}}')
    return ["simulate", "--workload", str(file), "--speeds", str(speeds)]


def test_a_public_trace(trace: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*trace, "--gpus", "v100=1x2", "--policies", "gavel,goodput"]) == 0
    out, err = capsys.readouterr()
    assert not err, "a pipe gets no progress"
    assert out.startswith(f"2 jobs of {trace[2]} on 2 v100\n")
    # A round of waiting, a restart of 30 s and an hour of work; rounds take 60 s and 360 s.
    rows = {line.split()[0]: float(line.split()[1]) for line in out.splitlines()[3:]}
    assert rows == {"goodput": round(3690 / 3600, 3), "gavel": round(3990 / 3600, 3)}
    assert main([*trace, "--policies", "sia,magic"]) == 2
    assert "there is no policy 'magic'; valid are goodput, sia, gavel" in capsys.readouterr().err
    assert main([*trace, "--policies", "sia,sia"]) == 0
    assert capsys.readouterr().out.count("\nsia ") == 1
    assert main(trace[:3]) == 2
    assert "--workload is for a public trace: it needs --workload FILE and --spe" in capsys.readouterr().err
    assert main([*trace, "log.jsonl"]) == 2
    assert "a public trace has no log: leave out log.jsonl, or --speeds" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--traces", "32"], ["--rate", "0.5"], ["--jobs", "40"], ["--seed", "0"], ["--by", "fair"]]
)
def test_options_without_effect_on_a_trace_are_rejected(
    words: list[str], trace: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each value is the default of its option."""
    assert main([*trace, *words]) == 2
    expected = f"{words[0]} is for simulated clusters: leave out {words[0]}, or --workload"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("replays", [True, False])
def test_a_terminal_displays_the_progress(
    replays: bool, trace: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = trace if replays else ["simulate", *FEW]
    monkeypatch.setattr("onlineauto.cli.terminal._PAUSE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert (
        main([*words, "--policies", "fair,marginal-gain", *(["--gpus", "v100=1x2"] if replays else [])]) == 0
    )
    out, err = capsys.readouterr()
    first = "fair" if replays else "marginal-gain"  # the order of the command line, and of the registry
    assert err.startswith(f"\r\x1b[Konlineauto: {first}, policy 1 of 2: ")
    assert "policy 2 of 2: 100% done, about 0 s left" in err
    assert err.endswith("\r\x1b[K")
    assert "fair" in out
    assert "\x1b" not in out
    assert main([*words, "--policies", "fair", "--quiet"]) == 0
    assert not capsys.readouterr().err
