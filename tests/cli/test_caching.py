"""The cache: ``-c -k --passes 5`` gives what the text gives, and a stale or foreign cache is not used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from onlineauto.workspace.conversion import has_blocks
from tests.cli.conftest import Command

TEXT = "".join(f"{i % 3} 'tag{i} |a x{i % 5} y:{i} |b z\n" for i in range(60))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text(TEXT)


def outcome(words: str, run: Command, path: Path) -> tuple[str, bytes, list[str]]:
    """Return VW's line about the cache, the predictions, and the rest of what was said."""
    lines = run(words, "-p p").err.splitlines()
    (cache,) = (line for line in lines if "cache" in line and "warning" not in line)
    return cache, (path / "p").read_bytes(), [line for line in lines if line != cache]


@pytest.mark.parametrize("more", ["", "--vw_exact", "--holdout_off -q ab --l1 1e-6"])
def test_the_cache_has_the_events_of_the_text(run: Command, more: str, tmp_path: Path) -> None:
    words = f"-d s.txt --passes 5 {more}"
    cache, *from_text = outcome(words, run, tmp_path)
    assert cache == "using no cache"
    for flags, line in (
        ("-c -k", "creating cache_file = s.txt.cache"),
        ("-c", "using cache_file = s.txt.cache"),
        ("-c -k", "creating cache_file = s.txt.cache"),
        ("--cache_file other", "creating cache_file = other"),
        ("--cache_file other", "using cache_file = other"),
    ):
        cache, *found = outcome(f"{words} {flags}", run, tmp_path)
        assert cache == line
        assert found == from_text
    assert has_blocks(str(tmp_path / "s.txt.cache"))


def test_an_outdated_cache_is_written_again(run: Command, tmp_path: Path) -> None:
    outcome("-d s.txt -c", run, tmp_path)
    cache, *_ = outcome("-d s.txt -c --hash all", run, tmp_path)
    assert cache.startswith("creating")
    later = (tmp_path / "s.txt.cache").stat().st_mtime + 10
    os.utime(tmp_path / "s.txt", (later, later))
    cache, *_ = outcome("-d s.txt -c --hash all", run, tmp_path)
    assert cache.startswith("creating")


def test_a_damaged_cache_is_an_error_that_names_k(run: Command, tmp_path: Path) -> None:
    outcome("-d s.txt -c", run, tmp_path)
    os.truncate(tmp_path / "s.txt.cache", (tmp_path / "s.txt.cache").stat().st_size - 100)
    run("-d s.txt -c", code=1, err="; -k writes a new cache\n")
    outcome("-d s.txt -c -k", run, tmp_path)


def test_a_run_that_does_not_read_to_the_end_leaves_no_cache(run: Command, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text(TEXT + "x |a\n")
    run("-d s.txt -c --strict_parse --quiet", code=1)
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
def test_the_reason_for_a_missing_cache_is_printed(
    run: Command, words: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "t.txt").write_text(TEXT)
    (tmp_path / "foreign").write_bytes(b"of Vowpal Wabbit")
    run("convert s.txt made --quiet")
    before = set(tmp_path.iterdir())
    cache, _, lines = outcome(words, run, tmp_path)
    assert cache == "using no cache"
    said = f"onlineauto: warning: no cache, so each pass reads the text: {reason}"
    assert any(line.startswith(said) for line in lines)
    assert set(tmp_path.iterdir()) - before <= {tmp_path / "p", tmp_path / "i"}
    assert (tmp_path / "foreign").read_bytes() == b"of Vowpal Wabbit"


def test_several_files_in_one_cache(run: Command, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(TEXT.replace("y:", "w:"))
    _, *found = outcome("-d s.txt t.txt --passes 2", run, tmp_path)
    for line in ("creating cache_file = both", "using cache_file = both"):
        cache, *again = outcome("-d s.txt t.txt --passes 2 --cache_file both", run, tmp_path)
        assert cache == line
        assert again == found


def test_a_missing_package_for_blocks_is_named(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    _, _, lines = outcome("-d s.txt -c", run, tmp_path)
    needs = "it needs a package: run pip install '.[blocks]' in a checkout of onlineauto"
    assert any(line.endswith(needs) for line in lines)
    assert run("-d s.txt -c -k --quiet").err.endswith(f"no cache, so each pass reads the text: {needs}\n")


def test_a_cache_does_not_replace_the_data(run: Command) -> None:
    run("-d s.txt --cache_file s.txt -k", code=2, err="--cache_file s.txt is the input: it would be lost")
    run("-d s.txt -c -f s.txt.cache", code=2, err="s.txt.cache is named for two outputs")
    run("-d s.txt -k --quiet")


def test_a_cache_with_other_names_of_features_is_written_again(run: Command, tmp_path: Path) -> None:
    line = '{"_label":1,"user":"x"}\n{"_label":0,"user":"y"}\n'
    (tmp_path / "s.json").write_text(line)
    caches = [
        outcome(f"-d s.json --json -c {more}", run, tmp_path)[0]
        for more in ("--names columns", "", "", "--names vw", "--names vw")
    ]
    assert [cache.split()[0] for cache in caches] == ["creating", "creating", "using", "creating", "using"]
