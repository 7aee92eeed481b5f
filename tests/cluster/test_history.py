"""The history of a cluster: written and read again, and what is none is refused by its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.cluster import Head, History, Record
from onlineauto.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def made() -> History:
    def job(name: str, **also: Any) -> Record:
        return Record(job=name, kind="study", worker={"CPU": 1.0}, total=4.0, arrived=0.5, **also)

    head = Head(capacity={"CPU": 4.0}, slot=30.0, policy="fair")
    return History(
        head,
        [
            job("a", slot=1, workers=2, servers=0, before=0.0, done=2.0),
            job("b", slot=1, workers=0, servers=0, before=0.0, done=0.0),
            job("a", slot=2, workers=2, servers=0, before=2.0, done=4.0, used=0.25),
        ],
    )


def test_a_history_is_written_and_read_again(tmp_path: Path) -> None:
    history = made()
    history.save(tmp_path / "log.jsonl")
    again = History.load(tmp_path / "log.jsonl")
    assert again.head == history.head
    assert again.records == history.records
    assert again.completion_times() == {"a": 1.75}
    assert len(again) == 3


def test_a_torn_last_line_is_left_out() -> None:
    text = made().text().encode()
    assert len(History.parse(text[:-20])) == 2
    with pytest.raises(InputError, match="history:3: not a line"):
        History.parse(text.replace(b'"b"', b"b"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b'{"type":"head"', b'{"type":"tail"'), "log:1: not a line"),
        ((b'"worker":{"CPU":1.0}', b'"worker":{"GPU":1.0}'), "log:2: the cluster has no GPU"),
        ((b'"workers":2', b'"workers":-2'), "log:2: a number of job 'a'"),
        ((b'"done":2.0', b'"done":1e301'), "log:2: a number of job 'a'"),
        ((b'"used":0.25', b'"used":-0.25'), "log:4: a number of job 'a'"),
        ((b'"worker":{"CPU":1.0}', b'"worker":{"CPU":-1.0}'), "log:2: CPU = -1: give an amount"),
        ((b'"capacity":{"CPU":', b'"capacity":{"CPU":-'), "log:1: CPU = -"),
    ],
)
def test_what_is_no_history_is_refused(change: tuple[bytes, bytes], message: str) -> None:
    with pytest.raises(InputError, match=message):
        History.parse(made().text().encode().replace(*change), name="log")


def test_a_history_begins_with_its_cluster() -> None:
    with pytest.raises(InputError, match="its first line describes the cluster"):
        History.parse(b"")
    with pytest.raises(InputError, match=":1: the first line"):
        History.parse(b"".join(made().text().encode().splitlines(keepends=True)[1:]))
    two = made().text() + '{"type":"head","capacity":{"GPU":1}}\n'
    with pytest.raises(InputError, match="other resources"):
        History.parse(two.encode())
