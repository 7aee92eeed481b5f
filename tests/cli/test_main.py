"""The command: verbs, exit codes, and what is said on standard error."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from onlineauto import Workspace
from onlineauto.cli.main import main
from onlineauto.errors import InputError, OptionError, ParseError
from tests.processes import python

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.options import Configuration
    from tests.cli.conftest import Command

    Learn = Callable[[Callable[[Configuration], int]], None]


@pytest.fixture
def learn(monkeypatch: pytest.MonkeyPatch) -> Learn:
    """Put a function in the place of the verb ``learn``."""

    def replace(run: Callable[[Configuration], int]) -> None:
        module = ModuleType("onlineauto.cli.learn")
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "onlineauto.cli.learn", module)

    return replace


@pytest.mark.parametrize(
    "words",
    [["-d", "a.txt", "-t"], ["learn", "-d", "a.txt", "-t"], ["learn", "a.txt", "-t"], ["-t", "a.txt"]],
)
def test_the_verb_learn_may_be_omitted(words: list[str], learn: Learn) -> None:
    seen = []

    def note(configuration: Configuration) -> int:
        seen.append(configuration.command())
        return 0

    learn(note)
    assert main(words) == 0
    assert seen == ["--data a.txt --testonly"]


def test_without_words_the_command_learns_from_standard_input(learn: Learn) -> None:
    learn(lambda configuration: 7 + len(configuration.supplied))
    assert main([]) == 7


def test_the_default_words_are_those_of_the_process(learn: Learn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["onlineauto", "--passes", "3"])
    learn(lambda configuration: len(configuration.supplied))
    assert main() == 1


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OptionError("--l1 is odd"), 2, "onlineauto: error: --l1 is odd\n"),
        (InputError("a.txt: is a directory"), 1, "onlineauto: error: a.txt: is a directory\n"),
        (ParseError("a.txt:1:2: bad", line=1, column=2), 1, "onlineauto: error: a.txt:1:2: bad\n"),
        (FileNotFoundError(2, "No such file", "a.txt"), 1, "onlineauto: error: a.txt: no such file\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_exit_codes(run: Command, error: BaseException, code: int, message: str, learn: Learn) -> None:
    def fail(configuration: Configuration) -> int:
        raise error

    learn(fail)
    assert run("-d a.txt", code=code) == ("", message)


def test_unexpected_exceptions_are_raised(learn: Learn) -> None:
    def fail(configuration: Configuration) -> int:
        raise ZeroDivisionError

    learn(fail)
    with pytest.raises(ZeroDivisionError):
        main(["-d", "a.txt"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--epsilom", "1"], "unknown option --epsilom; did you mean --epsilon?"),
        (["--wqzx"], "unknown option --wqzx; `onlineauto learn --help` lists them all"),
        (["warmup", "--wqzx"], "unknown option --wqzx; `onlineauto warmup --help` lists them all"),
        (["learn", "--epsilon", "2"], "--epsilon cannot be 2; it takes a number from 0 to 1"),
        (["lern", "-d", "a.txt"], "unknown command 'lern'; did you mean learn?"),
        (["a.txt", "-t"], "there is no command and no file 'a.txt'; onlineauto --help lists the commands"),
        ([""], "there is no command and no file ''; onlineauto --help lists the commands"),
    ],
)
def test_a_wrong_command_line(run: Command, words: list[str], message: str) -> None:
    assert run(words, code=2) == ("", f"onlineauto: error: {message}\n")


def test_warnings_of_options_without_effect(run: Command, tmp_path: Path) -> None:
    (tmp_path / "log.txt").touch()
    run("-d log.txt --cb_explore_adf -f bandit --quiet")
    run("-d log.txt -f lines --quiet")
    needed = "--cb_explore or --cb_explore_adf or --ccb_explore_adf"
    warning = f"onlineauto: warning: --epsilon has no effect without {needed}\n"
    for more, warns in ("", True), ("-i lines", True), ("-i bandit", False), ("--quiet", False):
        assert (warning in run(f"-d log.txt --epsilon 0.1 {more}").err) == warns
    run("convert --epsilon 0.1 log.txt blocks", err=warning)


def test_version(run: Command) -> None:
    assert run("--version") == (f"onlineauto {version('onlineauto')}\n", "")


def test_as_a_module() -> None:
    done = python("-m", "onlineauto", "--epsilom", code=2)
    assert done.stdout == ""
    assert done.stderr == "onlineauto: error: unknown option --epsilom; did you mean --epsilon?\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "onlineauto", "--help"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("target", ["closed", "full", "gone"])
def test_messages_that_cannot_be_written_do_not_cost_the_model(tmp_path: Path, target: str) -> None:
    events, model = tmp_path / "events.txt", tmp_path / "my.oam"
    events.write_text("".join(f"{number % 3} |a x{number % 3}\n" for number in range(100)))
    reader, writer = os.pipe()
    os.close(reader)
    redirection = {"closed": "2>&-", "full": "2>/dev/full", "gone": f"2>&{writer}"}[target]
    command = f"exec {sys.executable} -m onlineauto -d {events} -f {model} {redirection}"
    done = subprocess.run(["bash", "-c", command], pass_fds=[writer], check=False)
    os.close(writer)
    assert done.returncode == 0
    assert Workspace.load(model).predict("|a x1").shape == (1,)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["doctor"], 1, "onlineauto: error: standard output is closed\n"),
        (["-d", os.devnull, "--quiet"], 0, ""),
    ],
)
def test_a_closed_standard_output_is_an_error_of_what_prints(
    words: list[str], code: int, message: str
) -> None:
    command = f"exec {sys.executable} -m onlineauto {' '.join(words)} >&-"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, message)


def test_characters_outside_the_output_encoding_are_escaped(run: Command, tmp_path: Path) -> None:
    events, model = tmp_path / "events.txt", tmp_path / "my.oam"
    events.write_text("1 |имя да\n0 |имя нет\n")
    run("-d", events, "-f", model, "--quiet")
    for encoding in ("latin-1", "ascii"):
        done = python("-m", "onlineauto", "inspect", str(model), str(events), PYTHONIOENCODING=encoding)
        assert "\\u0438" in done.stdout


@pytest.mark.parametrize("option", ["-p", "--journal"])
def test_an_output_name_may_have_bytes_that_are_not_utf8(run: Command, tmp_path: Path, option: str) -> None:
    (tmp_path / "events.txt").write_text("shared |u a\n0:-1:0.5 |a x\n|a y\n\n" * 3)
    output = Path(os.fsdecode(os.fsencode(tmp_path) + b"/p\xff.txt"))
    words = "-d events.txt --cb_explore_adf --automl -f my.oam --quiet", option, output
    run(*words)
    before = output.read_bytes()
    run(*words, "--resume")
    assert output.read_bytes() == before != b""
