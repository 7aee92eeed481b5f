"""The fixture `run`: the command in an empty folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from onlineauto.cli.main import main

if TYPE_CHECKING:
    from _pytest.capture import CaptureResult


class Command:
    """Runs commands, and returns what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(
        self, *words: str | Path | Sequence[str], code: int | None = 0, err: str = ""
    ) -> CaptureResult[str]:
        """Run a command line, and return what it prints as ``out`` and ``err``.

        A text is split into words; a path, and an item of a list, is one word. The test fails if the exit
        code is another one than `code`, where None stands for any error, or if standard error lacks `err`.
        """
        line: list[str] = []
        for part in words:
            line += part.split() if isinstance(part, str) else [str(part)] if isinstance(part, Path) else part
        self._capsys.readouterr()
        found = main(line)
        printed = self._capsys.readouterr()
        assert found == code or (code is None and found), printed.err
        assert err in printed.err
        return printed


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command, with the temporary folder as the working folder."""
    monkeypatch.chdir(tmp_path)
    return Command(capsys)
