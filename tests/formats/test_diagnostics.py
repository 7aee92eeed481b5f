"""The words of diagnostics."""

from __future__ import annotations

import pytest

from onlineauto.formats.lines.diagnostics import ProblemCode, make_diagnostic

pytestmark = pytest.mark.lane("quick")


def worded(code: ProblemCode, text: bytes) -> str:
    return str(make_diagnostic(code, file="f", line=3, column=7, text=text, unit="event"))


@pytest.mark.parametrize("code", [code for code in ProblemCode if code != ProblemCode.FINE])
def test_every_code_has_words(code: ProblemCode) -> None:
    said = worded(code, b"what")
    assert said.startswith("f:3:7: ")
    assert "; " in said
    assert "{" not in said


def test_long_text_is_shortened_and_what_cannot_be_shown_is_escaped() -> None:
    assert worded(ProblemCode.NO_BAR, b"a" * 61) == f"f:3:7: no '|' in '{'a' * 60}...'; event skipped"
    assert worded(ProblemCode.NO_BAR, b"a" * 60) == f"f:3:7: no '|' in '{'a' * 60}'; event skipped"
    assert worded(ProblemCode.NO_BAR, b"\xff\x00\t") == "f:3:7: no '|' in '\\xff\\x00\\x09'; event skipped"
    assert (
        worded(ProblemCode.NO_BAR, "日".encode() * 30) == f"f:3:7: no '|' in '{'日' * 20}...'; event skipped"
    )


def test_a_fatal_problem_stops_the_reading() -> None:
    diagnostic = make_diagnostic(
        ProblemCode.NO_VALUE, file="f", line=1, column=1, text=b"x:", unit="line", fatal=True
    )
    assert str(diagnostic) == "f:1:1: no value after the ':' of feature 'x:'; reading stopped"
