"""The verb ``convert``: what it writes, what it refuses to write over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from onlineauto.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "shared |s a\n0:-1:0.5 |x one\n|x two\n\nshared |s b\n|x one\n1:1:0.25 |x two\n\n"


def run(words: str) -> int:
    return main(words.split())


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.txt").write_text(TEXT)


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("convert events.txt events.blocks --cb_adf") == 0
    size = (tmp_path / "events.blocks").stat().st_size
    assert capsys.readouterr().err == f"2 events, as blocks of {size} bytes, are in events.blocks\n"
    assert run("convert events.blocks again.txt --cb_adf") == 0
    assert capsys.readouterr().err.startswith("2 events, as text of ")
    for name in ("events.txt", "events.blocks", "again.txt"):
        assert run(f"-d {name} --cb_adf -q :: -p {name}.p --quiet") == 0
    assert (
        len({(tmp_path / f"{name}.p").read_text() for name in ("events.txt", "events.blocks", "again.txt")})
        == 1
    )


def test_several_files_become_one(tmp_path: Path) -> None:
    assert run("convert events.txt events.txt both.blocks --cb_adf --quiet") == 0
    assert run("-d both.blocks --cb_adf -p p --quiet") == 0
    assert run("-d events.txt -d events.txt --cb_adf -p q --quiet") == 0
    assert (tmp_path / "p").read_text() == (tmp_path / "q").read_text()


def test_bad_lines_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.txt").write_text("1 |a x\none |a x\n")
    assert run("convert bad.txt bad.blocks") == 0
    first, second, _ = capsys.readouterr().err.splitlines()
    assert first == "bad.txt:2:1: label 'one' is not a number; line skipped"
    assert second == "onlineauto: warning: 1 problems in the input"
    assert run("convert bad.txt strict.blocks --strict_parse") == 1
    assert not (tmp_path / "strict.blocks").exists()


def test_what_is_no_text_at_all_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "damaged.model").write_bytes(b"\x01\x02\n\x03\n")
    (tmp_path / "empty.txt").write_bytes(b"")
    assert run("convert damaged.model made.blocks") == 1
    assert "no event could be read (2 problems): nothing is written" in capsys.readouterr().err
    assert not (tmp_path / "made.blocks").exists()
    assert run("convert empty.txt made.blocks") == 0


@pytest.mark.parametrize(
    "words", ["convert", "convert events.txt", "convert events.txt -", "convert -- events.txt"]
)
def test_an_output_has_to_be_named(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    assert "convert takes the files to read and, last, the file to write" in capsys.readouterr().err


def test_no_text_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.txt").write_text("mine")
    assert run("convert events.txt other.txt --cb_adf") == 2
    assert (
        "other.txt exists and would be overwritten: remove it, or name another file"
        in capsys.readouterr().err
    )
    assert run("convert events.txt b --cb_adf") == 0
    assert run("convert events.txt b --cb_adf") == 0
    assert run("convert b other.txt --cb_adf") == 2
    assert (tmp_path / "other.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["out.txt", "out.dsjson", "out.parquet"])
def test_blocks_do_not_get_the_name_of_another_format(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.vw").write_text("1 |a x\n")
    assert main(["convert", f"{tmp_path}/events.vw", f"{tmp_path}/{name}"]) == 2
    assert "would be a file of blocks" in capsys.readouterr().err
    assert not (tmp_path / name).exists()


def test_what_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("convert nowhere.txt b") == 1
    assert capsys.readouterr().err == "onlineauto: error: nowhere.txt: no such file\n"
    assert run("convert events.txt no/b --cb_adf") == 1
    assert "cannot write no/b: No such file or directory" in capsys.readouterr().err


def test_standard_input_is_converted_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("convert events.txt - b --cb_adf") == 2
    assert "standard input is converted alone" in capsys.readouterr().err


def test_models_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-d events.txt --cb_explore_adf --vw_exact -q sx -f model.oam --quiet") == 0
    assert run("convert model.oam model.vw") == 0
    size = (tmp_path / "model.vw").stat().st_size
    said = f"7 learnt cells, as a model of Vowpal Wabbit of {size} bytes, are in model.vw\n"
    assert capsys.readouterr().err == said
    assert run("convert model.vw again.oam") == 0
    assert capsys.readouterr().err.startswith("7 learnt cells, as a model of onlineauto of ")
    for name in ("model.oam", "again.oam", "model.vw"):
        assert run(f"-t -i {name} -d events.txt -p {name}.p --quiet") == 0
        assert (tmp_path / "model.oam.p").read_text() == (tmp_path / f"{name}.p").read_text()
    assert run("convert again.oam model.vw --quiet") == 0  # a model may be written over one


def test_an_explorer_that_vw_lacks_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-d events.txt --cb_explore_adf --automl 2 -f search.oam --quiet") == 0
    assert run("convert search.oam search.vw --quiet") == 0
    assert capsys.readouterr().err == ""
    assert run("convert search.oam search.vw") == 0
    assert "Vowpal Wabbit has no --scaled_squarecb" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("convert model.oam model.oam b.vw", 2, "models are converted one by one"),
        ("convert model.oam events.txt", 2, "events.txt exists and would be overwritten"),
        ("convert model.vw model.vw", 2, "model.vw exists and would be overwritten"),
        ("convert cut.vw b.oam", 1, "cut.vw is not a whole model file of Vowpal Wabbit: it was cut off"),
        (
            "convert model.vw b.oam --hash all",
            2,
            "cannot use --hash all: model.vw was made with --hash strings",
        ),
    ],
)
def test_what_cannot_be_with_models(
    words: str, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-d events.txt --cb_explore_adf --hash strings -f model.oam --quiet") == 0
    assert run("convert model.oam model.vw --quiet") == 0
    (tmp_path / "cut.vw").write_bytes((tmp_path / "model.vw").read_bytes()[:90])
    assert run(words) == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "b.oam").exists()
