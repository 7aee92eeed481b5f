"""The cache: ``-c -k --passes 5`` gives what the text gives, and a stale or foreign cache is not used."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from onlineauto.cli.main import main
from onlineauto.workspace.conversion import has_blocks

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "".join(f"{i % 3} 'tag{i} |a x{i % 5} y:{i} |b z\n" for i in range(60))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.txt").write_text(TEXT)


def outcome(words: str, capsys: pytest.CaptureFixture[str], path: Path) -> tuple[str, bytes, list[str]]:
    """Return VW's line about the cache, the predictions, and the rest of what was said."""
    assert main([*words.split(), "-p", "p"]) == 0
    lines = capsys.readouterr().err.splitlines()
    (cache,) = (line for line in lines if "cache" in line and "warning" not in line)
    return cache, (path / "p").read_bytes(), [line for line in lines if line != cache]


@pytest.mark.parametrize("more", ["", "--vw_exact", "--holdout_off -q ab --l1 1e-6"])
def test_the_cache_gives_what_the_text_gives(
    more: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"-d s.txt --passes 5 {more}"
    cache, *from_text = outcome(words, capsys, tmp_path)
    assert cache == "using no cache"
    for flags, line in (
        ("-c -k", "creating cache_file = s.txt.cache"),
        ("-c", "using cache_file = s.txt.cache"),
        ("-c -k", "creating cache_file = s.txt.cache"),
        ("--cache_file other", "creating cache_file = other"),
        ("--cache_file other", "using cache_file = other"),
    ):
        cache, *found = outcome(f"{words} {flags}", capsys, tmp_path)
        assert cache == line
        assert found == from_text
    assert has_blocks(str(tmp_path / "s.txt.cache"))


def test_a_cache_that_is_older_or_was_read_otherwise_is_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome("-d s.txt -c", capsys, tmp_path)
    cache, *_ = outcome("-d s.txt -c --hash all", capsys, tmp_path)
    assert cache.startswith("creating")
    later = (tmp_path / "s.txt.cache").stat().st_mtime + 10
    os.utime(tmp_path / "s.txt", (later, later))
    cache, *_ = outcome("-d s.txt -c --hash all", capsys, tmp_path)
    assert cache.startswith("creating")


def test_a_damaged_cache_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome("-d s.txt -c", capsys, tmp_path)
    os.truncate(tmp_path / "s.txt.cache", (tmp_path / "s.txt.cache").stat().st_size - 100)
    assert main(["-d", "s.txt", "-c"]) == 1
    assert "; -k writes a new cache\n" in capsys.readouterr().err
    outcome("-d s.txt -c -k", capsys, tmp_path)


def test_a_run_that_does_not_read_to_the_end_leaves_no_cache(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.txt").write_text(TEXT + "x |a\n")
    assert main(["-d", "s.txt", "-c", "--strict_parse", "--quiet"]) == 1
    assert not (tmp_path / "s.txt.cache").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("-d s.txt t.txt -c", "there are several files; --cache_file names one cache for all"),
        ("-d s.txt -c --examples 5", "--examples does not read all of the data"),
        ("-d s.txt -c --invert_hash i", "it has no names of features"),
        ("-d s.txt --cache_file foreign", "foreign exists and is not a cache of onlineauto; -k replaces it"),
        ("-d s.txt --cache_file missing/c", "missing/c cannot be written"),
        ("-d made --cache_file again", "the input is blocks already"),
    ],
)
def test_no_cache_and_why(
    words: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.txt").write_text(TEXT)
    (tmp_path / "foreign").write_bytes(b"of Vowpal Wabbit")
    assert main(["convert", "s.txt", "made", "--quiet"]) == 0
    before = set(tmp_path.iterdir())
    cache, _, lines = outcome(words, capsys, tmp_path)
    assert cache == "using no cache"
    said = f"onlineauto: warning: no cache, so each pass reads the text: {reason}"
    assert any(line.startswith(said) for line in lines)
    assert set(tmp_path.iterdir()) - before <= {tmp_path / "p", tmp_path / "i"}
    assert (tmp_path / "foreign").read_bytes() == b"of Vowpal Wabbit"


def test_several_files_in_one_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.txt").write_text(TEXT.replace("y:", "w:"))
    _, *found = outcome("-d s.txt t.txt --passes 2", capsys, tmp_path)
    for line in ("creating cache_file = both", "using cache_file = both"):
        cache, *again = outcome("-d s.txt t.txt --passes 2 --cache_file both", capsys, tmp_path)
        assert cache == line
        assert again == found


def test_the_package_that_blocks_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    _, _, lines = outcome("-d s.txt -c", capsys, tmp_path)
    needs = "it needs a package: run pip install '.[blocks]' in a checkout of onlineauto"
    assert any(line.endswith(needs) for line in lines)
    assert main(["-d", "s.txt", "-c", "-k", "--quiet"]) == 0
    assert capsys.readouterr().err.endswith(f"no cache, so each pass reads the text: {needs}\n")


def test_a_cache_does_not_replace_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-d", "s.txt", "--cache_file", "s.txt", "-k"]) == 2
    assert "--cache_file s.txt is the input: it would be lost" in capsys.readouterr().err
    assert main(["-d", "s.txt", "-c", "-f", "s.txt.cache"]) == 2
    assert "s.txt.cache is named for two outputs" in capsys.readouterr().err
    assert main(["-d", "s.txt", "-k", "--quiet"]) == 0


def test_a_cache_with_names_of_another_rule_is_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = '{"_label":1,"user":"x"}\n{"_label":0,"user":"y"}\n'
    (tmp_path / "s.json").write_text(line)
    caches = [
        outcome(f"-d s.json --json -c {more}", capsys, tmp_path)[0]
        for more in ("--names columns", "", "", "--names vw", "--names vw")
    ]
    assert [cache.split()[0] for cache in caches] == ["creating", "creating", "using", "creating", "using"]
