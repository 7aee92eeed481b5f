"""The help and the option table are the registry's; the help needs neither NumPy nor Numba."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from onlineauto.cli.verb import VERBS, overview, verb_of
from onlineauto.options import title_of
from onlineauto.workspace.options import REGISTRY
from tests.cli.conftest import Command
from tests.processes import python


@pytest.mark.parametrize(
    ("words", "text"),
    [
        *((words, overview(80)) for words in ("--help", "-h", "help", "-d a.txt -h -t")),
        ("learn --help", verb_of("learn").help_text(80)),
        ("help learn", verb_of("learn").help_text(80)),
        ("merge --help", verb_of("merge").help_text(80)),
        ("help convert", verb_of("convert").help_text(80)),
        ("inspect -h", verb_of("inspect").help_text(80)),
    ],
)
def test_each_way_to_request_help_prints_it(
    run: Command, words: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(words) == (text + "\n", "")


def test_the_overview_names_every_command() -> None:
    text = overview(80)
    for verb in set(VERBS) - {"learn", "help"}:
        assert f"\n  onlineauto {verb} " in text
    assert max(map(len, text.splitlines())) <= 85


def test_the_help_of_a_command_has_only_its_options() -> None:
    text = verb_of("merge").help_text(80)
    assert "--base FILE" in text
    assert "--epsilon" not in text


def test_a_command_without_words_on_a_terminal_prints_the_overview(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    assert run().out.startswith("Usage: onlineauto ")


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
    done = python("-c", program)
    assert done.stderr == "[]\n"
    assert done.stdout.startswith("Usage: onlineauto ")
