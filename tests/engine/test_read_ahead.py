"""Reading ahead: the same blocks, errors and problems in the same order, by a thread that ends."""

from __future__ import annotations

import gzip
import io
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.engine.stream import read_ahead as module
from onlineauto.engine.stream.read_ahead import read_ahead, saves_time
from onlineauto.errors import InputError
from onlineauto.features.block import Block
from onlineauto.formats.lines.event_source import EventReader
from onlineauto.formats.sources.source import Source
from onlineauto.formats.text_reader import TextReader
from tests.formats.reading import text_reader
from tests.naive.lines import unpack

TEXT = b"".join(b"%d |a x:%d\n" % (i % 2, i) for i in range(300))
EARLIER: set[threading.Thread] = set()
"""Threads that lived before the test."""

LINES = st.lists(
    st.sampled_from([b"1 |a x", b"0 |b y:2 z", b"one |a x", b"1 |a x:1e99", b"|c d:2020-01-01", b""]),
    max_size=60,
)


@pytest.fixture(autouse=True)
def earlier_threads() -> Iterator[None]:
    """Note the threads that other tests have left, such as a run that was killed in mid-stream."""
    EARLIER.update(threading.enumerate())
    yield
    EARLIER.clear()


def open_text(source: Any, **options: Any) -> TextReader:
    return text_reader(source, **{"block_bytes": 64, "name": "file", **options})


def ahead(reader: EventReader) -> Generator[Block]:
    return read_ahead(reader)  # type: ignore[return-value]


def threads() -> list[str]:
    started = set(threading.enumerate()) - EARLIER
    return [thread.name for thread in started if thread.name.startswith("onlineauto-read")]


def search_summary(blocks: Iterable[Block], reader: TextReader) -> list[object]:
    """Each block with the problems known when it comes, and how it ended."""
    found, told = reader.diagnostics, list[object]()
    try:
        for block in blocks:
            told.append((unpack([block]), found.total, list(map(str, found.kept))))
    except InputError as error:
        told.append(str(error))
    return [*told, dict(found.counts), list(map(str, found.kept))]


@given(lines=LINES, strict=st.booleans(), block_bytes=st.sampled_from([16, 64, 500]))
def test_reading_ahead_yields_the_same_blocks_and_problems(
    lines: list[bytes], strict: bool, block_bytes: int
) -> None:
    one, other = (open_text(b"\n".join(lines), strict=strict, block_bytes=block_bytes) for _ in range(2))
    assert search_summary(read_ahead(other), other) == search_summary(one, one)
    assert threads() == []


def test_a_thread_reads_while_the_caller_is_busy() -> None:
    readers, data = set(), io.BytesIO(TEXT)

    class Noted(io.RawIOBase):
        def read(self, size: int = -1, /) -> bytes:
            readers.add(threading.current_thread())
            return data.read(size)

    blocks = ahead(open_text(Noted()))
    next(blocks)
    assert threads() == ["onlineauto-read_0"]
    assert len(readers) == 1
    assert threading.current_thread() not in readers
    blocks.close()


def test_closing_early_ends_the_thread_and_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    reader = open_text(path)
    with closing(ahead(reader)) as blocks:
        next(blocks)
        assert threads()
    assert threads() == []
    del blocks
    assert reader._bytes._owned is not None
    assert reader._bytes._owned.closed


def test_error_of_the_caller_ends_the_thread() -> None:
    workspace = Workspace(cb_adf=True, vw_exact=True)
    twice = b"0:1:0.5 |a x\n0:1:0.5 |a y\n\n"
    blocks = ahead(workspace.read(twice + b"|a x\n\n" * 100_000))
    with pytest.raises(InputError, match="only one line can have a cost"):
        workspace.fit(blocks)
    del blocks
    assert threads() == []


def test_source_error_is_raised_after_the_events_before_it() -> None:
    reader = open_text(gzip.compress(TEXT)[:-1])
    read: list[Block] = []
    with pytest.raises(InputError, match="file:301: "):
        read.extend(read_ahead(reader))
    assert sum(map(len, read)) == 300


def test_problems_at_the_end_of_the_file_arrive() -> None:
    reader = open_text(TEXT + b"one |a x\n" * 50)
    diagnostics = reader.diagnostics
    assert sum(len(block) for block in read_ahead(reader)) == 300
    assert diagnostics.total == 50
    assert str(diagnostics.kept[-1]).startswith("file:350:1: ")


def test_only_large_files_and_texts_are_read_ahead(tmp_path: Path) -> None:
    large, small = b"x" * (module._SMALL + 1), b"x" * module._SMALL
    (tmp_path / "large").write_bytes(large)
    (tmp_path / "small").write_bytes(small)
    for source in (large, tmp_path / "large", str(tmp_path / "large")):
        assert saves_time(source)
    with (tmp_path / "large").open("rb") as file:
        others: list[Source] = [small, tmp_path / "small", tmp_path, tmp_path / "none", "-", None, file]
        assert not any(map(saves_time, others))


@pytest.mark.parametrize("small", [0, 1 << 30])
def test_a_workspace_reads_large_sources_ahead(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SMALL", small)
    blocks = Workspace(bit_precision=8).stream(TEXT)
    next(blocks)
    assert len(threads()) == (small == 0)
    del blocks
    assert threads() == []
