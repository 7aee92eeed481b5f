"""The help and the option table are the registry's; the help needs neither NumPy nor Numba."""

from __future__ import annotations

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from onlineauto.cli.main import main
from onlineauto.cli.verb import VERBS, overview, verb_of
from onlineauto.options import title_of
from onlineauto.workspace.options import REGISTRY


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--help"], overview(80)),
        (["-h"], overview(80)),
        (["help"], overview(80)),
        (["-d", "a.txt", "-h", "-t"], overview(80)),
        (["learn", "--help"], verb_of("learn").help_text(80)),
        (["help", "learn"], verb_of("learn").help_text(80)),
        (["merge", "--help"], verb_of("merge").help_text(80)),
        (["help", "convert"], verb_of("convert").help_text(80)),
        (["inspect", "-h"], verb_of("inspect").help_text(80)),
    ],
)
def test_asking_for_help(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(words) == 0
    assert capsys.readouterr() == (text + "\n", "")


def test_the_overview_names_every_command() -> None:
    text = overview(80)
    for verb in set(VERBS) - {"learn", "help"}:
        assert f"\n  onlineauto {verb} " in text
    assert max(map(len, text.splitlines())) <= 85


def test_a_page_shows_the_options_of_its_command_alone() -> None:
    text = verb_of("merge").help_text(80)
    assert "--base FILE" in text
    assert "--epsilon" not in text


def test_nothing_typed_on_a_terminal_shows_the_overview(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("Usage: onlineauto ")


def test_help_names_every_option_and_group() -> None:
    text = verb_of("learn").help_text(100)
    for option in REGISTRY.options:
        short = rf"-{option.short}, " if option.short else "    "
        mark = " " if option.vw else r"\+"
        assert re.search(rf"^{mark} {short}{option.flag}\b", text, re.MULTILINE), option.name
    for group in REGISTRY.groups:
        assert f"\n\n{title_of(group)}:\n" in text


@pytest.mark.parametrize("width", [1, 60, 80, 110, 500])
def test_help_keeps_to_the_width(width: int) -> None:
    options = verb_of("learn").help_text(width).partition("Examples:")[0]
    assert max(len(line) for line in options.splitlines()) <= min(max(width, 70), 110)


def test_help_of_one_option() -> None:
    text = verb_of("learn").help_text(100)
    assert (
        "      --psi PSI               How much --cover rewards policies for choosing differently. [1.0]\n"
    ) in text
    assert "One of\n                              mtr, ips, dr, dm. [mtr]" in text


def test_help_needs_neither_numpy_nor_numba() -> None:
    program = """if True:
        import sys
        from onlineauto.cli.main import main
        code = main(["--help"])
        print(sorted({"numpy", "numba", "scipy", "river", "llvmlite"} & set(sys.modules)), file=sys.stderr)
        sys.exit(code)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert done.stdout.startswith("Usage: onlineauto ")
