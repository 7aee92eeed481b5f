"""The verb ``merge``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from onlineauto.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def run(words: str) -> int:
    return main(words.split())


@pytest.fixture(autouse=True)
def _models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events").write_text("1 |a x\n0 |a y\n" * 10)
    assert run("-d events -f base --quiet") == 0
    for name in ("one", "two"):
        assert run(f"-i base --preserve_performance_counters -d events -f {name} --quiet") == 0


def test_models_become_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("merge one two --base base -f all") == 0
    size = (tmp_path / "all").stat().st_size
    assert capsys.readouterr().err == f"2 models are merged into all, of {size} bytes\n"
    assert run("-i all --preserve_performance_counters -d events -f later") == 0
    assert "number of examples = 80" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("merge one -f all", "merge takes two models or more, and -f"),
        ("merge one two", "merge takes two models or more, and -f"),
        ("merge one other -f all", "models with different options cannot be merged"),
        ("merge one small -f all", "it cannot learn, be merged or be converted"),
        ("-d events --base base", "--base is for merge"),
    ],
)
def test_what_cannot_be_is_said(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-d events -q aa -f other --quiet") == 0
    assert run("-d events -f small --predict_only_model --quiet") == 0
    capsys.readouterr()
    assert run(words) == 2
    assert message in capsys.readouterr().err


def test_a_merged_run_cannot_be_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("merge one two -f all --quiet") == 0
    assert run("-d events -f all --resume") == 1
    assert "all was not saved by a run" in capsys.readouterr().err
