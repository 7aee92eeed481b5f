"""The verb ``convert``: what it writes, what it refuses to write over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command

TEXT = "shared |s a\n0:-1:0.5 |x one\n|x two\n\nshared |s b\n|x one\n1:1:0.25 |x two\n\n"


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(TEXT)


def test_events_are_converted_to_blocks_and_back(run: Command, tmp_path: Path) -> None:
    printed = run("convert events.txt events.blocks --cb_adf")
    size = (tmp_path / "events.blocks").stat().st_size
    assert printed.err == f"2 events, as blocks of {size} bytes, are in events.blocks\n"
    assert run("convert events.blocks again.txt --cb_adf").err.startswith("2 events, as text of ")
    for name in ("events.txt", "events.blocks", "again.txt"):
        run(f"-d {name} --cb_adf -q :: -p {name}.p --quiet")
    assert (
        len({(tmp_path / f"{name}.p").read_text() for name in ("events.txt", "events.blocks", "again.txt")})
        == 1
    )


def test_several_files_become_one(run: Command, tmp_path: Path) -> None:
    run("convert events.txt events.txt both.blocks --cb_adf --quiet")
    run("-d both.blocks --cb_adf -p p --quiet")
    run("-d events.txt -d events.txt --cb_adf -p q --quiet")
    assert (tmp_path / "p").read_text() == (tmp_path / "q").read_text()


def test_malformed_lines_are_reported(run: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("1 |a x\none |a x\n")
    first, second, _ = run("convert bad.txt bad.blocks").err.splitlines()
    assert first == "bad.txt:2:1: label 'one' is not a number; line skipped"
    assert second == "onlineauto: warning: 1 problems in the input"
    run("convert bad.txt strict.blocks --strict_parse", code=1)
    assert not (tmp_path / "strict.blocks").exists()


def test_a_file_without_text_is_rejected(run: Command, tmp_path: Path) -> None:
    (tmp_path / "damaged.model").write_bytes(b"\x01\x02\n\x03\n")
    (tmp_path / "empty.txt").write_bytes(b"")
    run(
        "convert damaged.model made.blocks",
        code=1,
        err="no event could be read (2 problems): nothing is written",
    )
    assert not (tmp_path / "made.blocks").exists()
    run("convert empty.txt made.blocks")


@pytest.mark.parametrize(
    "words", ["convert", "convert events.txt", "convert events.txt -", "convert -- events.txt"]
)
def test_an_output_has_to_be_named(run: Command, words: str) -> None:
    run(words, code=2, err="convert takes the files to read and, last, the file to write")


def test_existing_text_is_not_overwritten(run: Command, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("mine")
    run(
        "convert events.txt other.txt --cb_adf",
        code=2,
        err="other.txt exists and would be overwritten: remove it, or name another file",
    )
    run("convert events.txt b --cb_adf")
    run("convert events.txt b --cb_adf")
    run("convert b other.txt --cb_adf", code=2)
    assert (tmp_path / "other.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["out.txt", "out.dsjson", "out.parquet"])
def test_blocks_do_not_get_the_name_of_another_format(run: Command, name: str, tmp_path: Path) -> None:
    (tmp_path / "events.vw").write_text("1 |a x\n")
    run("convert events.vw", f"{tmp_path}/{name}", code=2, err="would be a file of blocks")
    assert not (tmp_path / name).exists()


def test_missing_files_are_named(run: Command) -> None:
    assert run("convert nowhere.txt b", code=1).err == "onlineauto: error: nowhere.txt: no such file\n"
    run("convert events.txt no/b --cb_adf", code=1, err="cannot write no/b: No such file or directory")


def test_standard_input_is_converted_alone(run: Command) -> None:
    run("convert events.txt - b --cb_adf", code=2, err="standard input is converted alone")


def test_models_are_converted_to_vw_and_back(run: Command, tmp_path: Path) -> None:
    run("-d events.txt --cb_explore_adf --vw_exact -q sx -f model.oam --quiet")
    printed = run("convert model.oam model.vw")
    size = (tmp_path / "model.vw").stat().st_size
    said = f"7 learnt cells, as a model of Vowpal Wabbit of {size} bytes, are in model.vw\n"
    assert printed.err == said
    assert run("convert model.vw again.oam").err.startswith("7 learnt cells, as a model of onlineauto of ")
    for name in ("model.oam", "again.oam", "model.vw"):
        run(f"-t -i {name} -d events.txt -p {name}.p --quiet")
        assert (tmp_path / "model.oam.p").read_text() == (tmp_path / f"{name}.p").read_text()
    run("convert again.oam model.vw --quiet")  # a model may be written over one


def test_an_explorer_that_vw_lacks_is_named(run: Command, tmp_path: Path) -> None:
    run("-d events.txt --cb_explore_adf --automl 2 -f search.oam --quiet")
    assert run("convert search.oam search.vw --quiet").err == ""
    run("convert search.oam search.vw", err="Vowpal Wabbit has no --scaled_squarecb")


def test_a_search_is_converted_as_its_champion(run: Command) -> None:
    run("-d events.txt --cb_explore_adf --automl 2 --epsilon 0.05 -f search.oam --quiet")
    printed = run("convert search.oam search.vw --predict_with champion").err
    assert "warning" not in printed
    assert " learnt cells, as a model of Vowpal Wabbit, the champion alone, of " in printed
    run("-d events.txt --cb_explore_adf -f model.oam --quiet")
    assert "has no effect without --automl" in run("convert model.oam model.vw --predict_with champion").err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("convert model.oam model.oam b.vw", 2, "models are converted one by one"),
        ("convert model.oam events.txt", 2, "events.txt exists and would be overwritten"),
        ("convert model.vw model.vw", 2, "model.vw exists and would be overwritten"),
        ("convert cut.vw b.oam", 1, "cut.vw is not a whole model file of Vowpal Wabbit: it was cut off"),
        ("convert model.vw b.oam --hash all", 2, "cannot use --hash all: model.vw was made with --hash"),
    ],
)
def test_invalid_conversions_of_models_are_rejected(
    run: Command, words: str, code: int, message: str, tmp_path: Path
) -> None:
    run("-d events.txt --cb_explore_adf --hash strings -f model.oam --quiet")
    run("convert model.oam model.vw --quiet")
    (tmp_path / "cut.vw").write_bytes((tmp_path / "model.vw").read_bytes()[:90])
    run(words, code=code, err=message)
    assert not (tmp_path / "b.oam").exists()
