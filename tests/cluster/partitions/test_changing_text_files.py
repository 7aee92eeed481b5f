"""Files of text that change while they are learnt: they grow, become shorter, or are replaced."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datasets.generate import text
from onlineauto import InputError
from onlineauto.cluster.partitions import text_file
from onlineauto.cluster.partitions.messages import Chunk, chunk_of_tree, chunk_to_tree, pack, unpack
from onlineauto.cluster.partitions.text_file import TextFile, UnexpectedEventsError, UnreadBlock
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.stream.source import read_blocks
from onlineauto.features.block import Block, Namespaces
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.workspace.options import REGISTRY
from tests.cluster.partitions.test_text_files import BANDIT, EVENTS, OPTIONS, count_calls, file_of, run_of


def test_a_file_that_has_changed_is_not_learnt_by_workers(tmp_path: Path) -> None:
    path = file_of(tmp_path, BANDIT)
    configuration = REGISTRY.from_keywords(**OPTIONS)
    file = TextFile(str(path), configuration, Diagnostics())
    names = len(file.read(10)[0].namespaces)
    block = file.unread(file.take(50), 0, 50, np.ones(names, np.bool_))
    assert sum(map(len, block.pieces())) == 50
    with pytest.raises(UnexpectedEventsError, match="a namespace is new"):
        list(file.unread(file.take(5), 0, 5, np.zeros(names, np.bool_)).pieces())
    other = file_of(tmp_path, BANDIT + b"|a b\n", "other")
    other.replace(path)
    with pytest.raises(UnexpectedEventsError, match="has changed"):
        list(block.pieces())
    assert sum(map(len, block.pieces(file))) == 50  # this process has the file open


def sent(block: UnreadBlock) -> UnreadBlock:
    """Return a block as a worker receives it."""
    chunk = chunk_of_tree(
        unpack(b"".join(pack(chunk_to_tree(Chunk(block, 0))))),
        Namespaces(),
        REGISTRY.from_keywords(**OPTIONS),
    )
    assert isinstance(chunk.block, UnreadBlock)
    return chunk.block


def grow_by(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def grow(path: Path) -> None:
    grow_by(path, b"|a b\n\n")


def replace(path: Path) -> None:
    file_of(path.parent, b"|a b\n", "other").replace(path)


@pytest.mark.parametrize("change", [grow, os.utime, os.remove, replace])
def test_a_block_can_be_read_after_its_file_has_changed(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path, configuration = file_of(tmp_path, BANDIT), REGISTRY.from_keywords(**OPTIONS)
    file = TextFile(str(path), configuration, Diagnostics())
    names = len(file.read(10)[0].namespaces)
    block, again = (file.unread(file.take(50), 0, 50, np.ones(names, np.bool_)) for _ in range(2))
    change(path)
    del file
    assert len(block.tag) == 0
    assert block.n_lines == 50 * 9
    if change in (grow, os.utime):
        assert sum(map(len, sent(again).pieces())) == 50
    else:
        with pytest.raises(UnexpectedEventsError):
            list(sent(again).pieces())


class ReadTags:
    """A sink that reads tags, like that of predictions, after a change of the file."""

    def __init__(self, change: Callable[[], object]) -> None:
        self.n_unread, self._change = 0, change

    def take(self, block: Block, _: Outcomes) -> None:
        if isinstance(block, UnreadBlock):
            self.n_unread += 1
            self._change()
        assert len(block.tag) == 0

    def state(self) -> dict[str, Any]:
        return {}


def test_a_sink_reads_a_file_that_grows(tmp_path: Path) -> None:
    path = file_of(tmp_path, BANDIT)
    run = run_of(path, 2, messages=True)
    run.sinks.append(sink := ReadTags(lambda: grow(path) if sink.n_unread <= 5 else None))
    assert run.step() == EVENTS + 5
    assert sink.n_unread >= 4 * 2
    run.close()


def test_a_sink_that_cannot_read_events_again_says_what_is_learnt(tmp_path: Path) -> None:
    path = file_of(tmp_path, BANDIT)
    run = run_of(path)
    run.sinks.append(ReadTags(lambda: os.truncate(path, 1000)))
    with pytest.raises(
        InputError, match=r"events\.txt has changed while it was read: the first \d+ events"
    ) as error:
        run.step()
    assert f" {run.position.events:,} events are learnt" in str(error.value)
    assert run.workspace.searching.n_learnt == run.position.events < EVENTS


@pytest.mark.parametrize("handed", [False, True])
@pytest.mark.parametrize("content", [BANDIT, BANDIT.rstrip(b"\n")])
def test_events_that_are_written_while_a_file_is_learnt_are_learnt(
    tmp_path: Path, content: bytes, *, handed: bool
) -> None:
    path = file_of(tmp_path, content)
    run, n_learnt, is_grown = run_of(path), 0, False
    if handed:
        run.read = partial(read_blocks)
    for block, _ in run:
        n_learnt += len(block)
        if n_learnt > 500 and not is_grown:
            is_grown = True
            grow_by(path, BANDIT[len(content) :] + text("planted", events=300, seed=6))
    assert n_learnt == EVENTS + 300


def test_the_end_of_a_file_is_read_when_it_is_needed(tmp_path: Path) -> None:
    """An event whose first line is written is not cut in two by a reader that looks ahead."""
    path = file_of(tmp_path, b"|a b\n\n|c d\n|e")
    file = TextFile(str(path), REGISTRY.from_keywords(cb_explore_adf=True), Diagnostics())
    file.look_ahead(10)
    grow_by(path, b" f\n|g h\n\n")
    file.look_ahead(10)
    grow_by(path, b"|i j\n")
    assert file.take(2).ends.tolist() == [6, 22]
    file.look_ahead(10)
    grow_by(path, b"|k l\n\n|m")
    assert [line for block in file.read(1) for line in block.line_number.tolist()] == [7, 8]
    grow_by(path, b" n")
    stretch = file.take(10)
    grow_by(path, b"\n\n|o p\n\n")
    file.move_back(stretch)
    assert [line for block in file.read(10) for line in block.line_number.tolist()] == [10]
    assert not file.read(10)


@pytest.mark.parametrize("handed", [False, True])
def test_a_file_that_grows_faster_than_it_is_learnt_has_an_end(tmp_path: Path, *, handed: bool) -> None:
    path = file_of(tmp_path, BANDIT)
    run = run_of(path)
    if handed:
        run.read = partial(read_blocks)
    for _ in run:
        assert run.position.events < 2 * EVENTS
        grow(path)
    assert EVENTS <= run.workspace.searching.n_learnt < 2 * EVENTS


@pytest.mark.parametrize("size", [0, 1000, 150_000])
@pytest.mark.parametrize("window", [500, 1 << 18])
def test_a_file_that_becomes_shorter_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, window: int
) -> None:
    monkeypatch.setattr(text_file, "_WINDOW", window)
    path = file_of(tmp_path, BANDIT * 2)
    calls = count_calls(monkeypatch, "find_events")
    run = run_of(path)

    def learn() -> None:
        for _ in run:
            if run.position.events > 500:
                os.truncate(path, size)

    with pytest.raises(InputError, match="become shorter while it was read"):
        learn()
    assert 500 < run.position.events < 2 * EVENTS
    assert run.workspace.searching.n_learnt == run.position.events
    assert len(calls) <= len(BANDIT) * 2 / window + 10
