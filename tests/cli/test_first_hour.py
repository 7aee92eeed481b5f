"""What a new user tries first: ``demo``, ``doctor``, ``plot`` and the shell's completion."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from onlineauto.cli import demo, doctor
from onlineauto.cli.main import main
from onlineauto.cli.verb import VERBS
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Path:
    """Return the folder of a short demo."""
    monkeypatch.setattr(demo, "_VISITS", 2500)
    monkeypatch.setattr(demo, "_LAST", 500)
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    return tmp_path / "onlineauto-demo"


def test_demo(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = capsys.readouterr().out
    assert {path.name for path in made.iterdir()} == {"log.txt", "journal.jsonl", "demo.model", "story.svg"}
    worth = {line[5:47].strip(): float(line[47:53]) for line in said.splitlines() if line.endswith("#")}
    lot, plain, found, best = worth.values()
    assert lot < plain < found <= best
    assert "onlineauto-demo/story.svg: open it in a browser" in " ".join(said.split())
    assert main(["inspect", str(made / "demo.model"), str(made / "log.txt")]) == 0
    assert "article" in capsys.readouterr().out
    assert main(["demo"]) == 0, "its own folder may be written again"


def test_demo_without_matplotlib(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_VISITS", 50)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "--into", str(tmp_path / "new")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "pip install '.[plot]' in a checkout of onlineauto. Then: onlineauto plot" in said


def test_demo_leaves_other_folders_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["demo", "--into", str(tmp_path)]) == 2
    assert "not the folder of a demo" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_plot(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = str(made / "journal.jsonl")
    for words in (["--dark"], ["--crossings", "--heading", "Mine"]):
        assert main(["plot", journal, "-o", "p.svg", *words]) == 0
        assert (tmp_path / "p.svg").stat().st_size > 1000
    capsys.readouterr()
    assert main([str(made / "log.txt"), "--cb_explore_adf", "-P", "1.5"]) == 0
    (tmp_path / "run.txt").write_text(capsys.readouterr().err)
    assert main(["plot", "run.txt", "run.txt", "-o", "p.png", "--loss"]) == 0
    assert capsys.readouterr().out == "the picture is in p.png\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "plot takes a journal and -o"),
        (["missing", "-o", "p.svg"], 1, "missing: no such file"),
        (["some.txt", "-o", "p.doc"], 2, "ends with .svg, .png or .pdf"),
        (["some.txt", "-o", "p.svg"], 1, "not a line of a journal"),
        (["metrics", "-o", "p.svg"], 1, "give its journal"),
        (["some.txt", "some.txt", "-o", "p.svg"], 2, "plot takes one journal"),
    ],
)
def test_what_cannot_be_plotted(
    words: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.txt").write_text("1 |a b\n")
    (tmp_path / "metrics").write_text('{"total_log_calls":0}')
    assert main(["plot", *words]) == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "p.svg").exists()


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    names = [line.partition(":")[0] for line in said.splitlines()]
    assert {"onlineauto", "Python", "numpy", "processor", "kernels", "cache", "self-test"} <= set(names)
    assert said.endswith("\nall is well\n")


def test_doctor_finds_what_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    answers = iter([b"1", b"2"])
    monkeypatch.setattr(doctor, "_learn", lambda: lambda: next(answers))
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "problem: xxhash cannot be imported" in said
    assert "problem: the same events have different predictions" in said
    assert said.endswith("onlineauto does not work as it should, see above\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for option in REGISTRY.options:
        assert (f"-l {option.name} " if shell == "fish" else f"--{option.name}") in script
    for verb in VERBS:
        assert verb in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("pl", {"plot"}),
        ("--initial_t", {"--initial_t"}),
        ("log.txt --cb_type d", {"dr", "dm"}),
        ("plot --da", {"--dark"}),
        ("evaluate --min", {"--min_prob"}),
        ("REA", {"README"}),
    ],
)
def test_bash_completes(
    words: str, completed: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README").touch()
    assert main(["completion", "bash"]) == 0
    ask = f"COMP_WORDS=(onlineauto {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _onlineauto; "
    script = capsys.readouterr().out + ask + 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    done = subprocess.run(
        ["bash", "--norc"], input=script, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert set(done.stdout.split()) == completed
