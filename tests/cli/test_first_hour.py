"""The commands that a new user tries first: ``demo``, ``doctor``, ``plot`` and the shell's completion."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onlineauto.cli import demo, doctor
from onlineauto.cli.verb import VERBS
from onlineauto.workspace.options import REGISTRY
from tests.cli.conftest import Command


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command) -> Path:
    """Return the folder of a short demo."""
    monkeypatch.setattr(demo, "_VISITS", 2500)
    monkeypatch.setattr(demo, "_LAST", 500)
    run("demo")
    return tmp_path / "onlineauto-demo"


def test_demo(run: Command, made: Path) -> None:
    output = run("demo").out  # into the same folder, which may be written again
    assert {path.name for path in made.iterdir()} == {"log.txt", "journal.jsonl", "demo.model", "story.svg"}
    worth = {line[5:47].strip(): float(line[47:53]) for line in output.splitlines() if line.endswith("#")}
    lot, plain, found, best = worth.values()
    assert lot < plain < found <= best
    assert "onlineauto-demo/story.svg: open it in a browser" in " ".join(output.split())
    assert "article" in run("inspect", made / "demo.model", made / "log.txt").out


def test_demo_without_matplotlib(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_VISITS", 50)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    output = " ".join(run("demo --into new").out.split())
    assert "pip install '.[plot]' in a checkout of onlineauto. Then: onlineauto plot" in output


def test_demo_leaves_other_folders_alone(run: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    run("demo --into", tmp_path, code=2, err="not the folder of a demo")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_plot(run: Command, made: Path, tmp_path: Path) -> None:
    journal = str(made / "journal.jsonl")
    for words in (["--dark"], ["--crossings", "--heading", "Mine"]):
        run("plot", journal, "-o p.svg", *words)
        assert (tmp_path / "p.svg").stat().st_size > 1000
    (tmp_path / "run.txt").write_text(run(made / "log.txt", "--cb_explore_adf -P 1.5").err)
    assert run("plot run.txt run.txt -o p.png --loss").out == "the picture is in p.png\n"


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
def test_invalid_input_of_plot_is_rejected(
    run: Command, words: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.txt").write_text("1 |a b\n")
    (tmp_path / "metrics").write_text('{"total_log_calls":0}')
    run("plot", *words, code=code, err=message)
    assert not (tmp_path / "p.svg").exists()


def test_doctor(run: Command) -> None:
    output = run("doctor").out
    names = [line.partition(":")[0] for line in output.splitlines()]
    assert {"onlineauto", "Python", "numpy", "processor", "kernels", "cache", "self-test"} <= set(names)
    assert output.endswith("\nall is well\n")


def test_doctor_reports_problems(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    answers = iter([b"1", b"2"])
    monkeypatch.setattr(doctor, "_learn", lambda: lambda: next(answers))
    output = run("doctor", code=1).out
    assert "problem: xxhash cannot be imported" in output
    assert "problem: the same events have different predictions" in output
    assert output.endswith("onlineauto does not work as it should, see above\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_option(run: Command, shell: str) -> None:
    script = run("completion", shell).out
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
def test_bash_completes(run: Command, words: str, completed: set[str], tmp_path: Path) -> None:
    (tmp_path / "README").touch()
    printed = run("completion bash")
    ask = f"COMP_WORDS=(onlineauto {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _onlineauto; "
    script = printed.out + ask + 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    done = subprocess.run(
        ["bash", "--norc"], input=script, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert set(done.stdout.split()) == completed
