"""The verb ``merge``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def _models(run: Command, tmp_path: Path) -> None:
    (tmp_path / "events").write_text("1 |a x\n0 |a y\n" * 10)
    run("-d events -f base --quiet")
    for name in ("one", "two"):
        run(f"-i base --preserve_performance_counters -d events -f {name} --quiet")


def test_models_become_one(run: Command, tmp_path: Path) -> None:
    printed = run("merge one two --base base -f all")
    size = (tmp_path / "all").stat().st_size
    assert printed.err == f"2 models are merged into all, of {size} bytes\n"
    run("-i all --preserve_performance_counters -d events -f later", err="number of examples = 80")


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
def test_invalid_merges_are_rejected(run: Command, words: str, message: str) -> None:
    run("-d events -q aa -f other --quiet")
    run("-d events -f small --predict_only_model --quiet")
    run(words, code=2, err=message)


def test_a_merged_run_cannot_be_resumed(run: Command) -> None:
    run("merge one two -f all --quiet")
    run("-d events -f all --resume", code=1, err="all was not saved by a run")
