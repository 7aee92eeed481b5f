"""The history of a cluster is saved and loaded; errors name the line of an invalid record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from onlineauto.cluster import Cluster, Demand, Head, History, Record
from onlineauto.errors import InputError

pytestmark = pytest.mark.lane("quick")


class Bricks:
    """Does one unit of work at each poll."""

    demand, laid = Demand({"CPU": 1.0}), 0

    def resize(self, workers: int, servers: int) -> None:
        self.workers = workers

    def progress(self) -> tuple[int, int]:
        self.laid = min(self.laid + self.workers, 2) if hasattr(self, "workers") else 0
        return self.laid, 2


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


def test_a_saved_history_is_loaded_without_changes(tmp_path: Path) -> None:
    history = made()
    history.save(tmp_path / "log.jsonl")
    again = History.load(tmp_path / "log.jsonl")
    assert again.head == history.head
    assert again.records == history.records
    assert again.completion_times() == {"a": 1.75}
    assert len(again) == 3


def test_an_incomplete_last_line_is_ignored() -> None:
    text = made().text().encode()
    history = History.parse(text[:-20])
    assert (len(history), history.skipped) == (2, [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b'"b"', b"b"), "log:3: not a line"),
        ((b'"worker":{"CPU":1.0}', b'"worker":{"GPU":1.0}'), "log:2: the cluster has no GPU"),
        ((b'"workers":2', b'"workers":-2'), "log:2: a number of job 'a'"),
        ((b'"done":2.0', b'"done":1e301'), "log:2: a number of job 'a'"),
        ((b'"used":0.25', b'"used":-0.25'), "log:4: a number of job 'a'"),
        ((b'"worker":{"CPU":1.0}', b'"worker":{"CPU":-1.0}'), "log:2: CPU = -1: an amount must be"),
        ((b'"workers":2', b'"workers":90071992547409920'), "log:2: a number of job 'a'"),
    ],
)
def test_invalid_lines_are_skipped(
    change: tuple[bytes, bytes], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    history = History.parse(made().text().encode().replace(*change), name="log")
    assert history.skipped[0].startswith(message)
    assert [record for record in made().records if record not in history.records]
    assert len(history) + len(history.skipped) == 3
    assert f"{len(history.skipped)} lines of a history are skipped, the first: {message}" in caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b'{"type":"head"', b'{"type":"tail"'), "log:1: not a line"),
        ((b'"capacity":{"CPU":', b'"capacity":{"CPU":-'), "log:1: CPU = -"),
    ],
)
def test_files_without_a_valid_head_are_rejected(change: tuple[bytes, bytes], message: str) -> None:
    with pytest.raises(InputError, match=message):
        History.parse(made().text().encode().replace(*change), name="log")


UNAPPLICABLE = [
    b"",
    b"\xff\xfe",
    b"null",
    b"[" * 5000,
    b'{"type":"slot"}',
    b'{"type":"head","capacity":{"GPU":1}}',
    b'{"type":"head","capacity":{"CPU":-1}}',
    (
        b'{"type":"slot","slot":9,"job":"z","kind":"k","arrived":0,"workers":1,"servers":0,"before":0,"done":1,'
        b'"total":NaN,"worker":{"CPU":1}}'
    ),
    *(
        b'{"type":"slot","slot":%s,"job":"z","kind":"k","arrived":0,"workers":1,"servers":0,"before":0,'
        b'"done":%s,"total":9,"worker":{"%s":1}}' % values
        for values in [
            (b"-1", b"1", b"CPU"),
            (b"9007199254740991", b"1", b"CPU"),
            (b"9", b"1e300", b"CPU"),
            (b"9", b"1", b"GPU"),
            (b"9", b'"1"', b"CPU"),
        ]
    ),
]


@pytest.mark.parametrize("line", UNAPPLICABLE, ids=lambda line: line[:40].decode("utf-8", "replace"))
def test_records_around_an_invalid_line_are_read(line: bytes, tmp_path: Path) -> None:
    lines, path = made().text().encode().splitlines(), tmp_path / "history.jsonl"
    for position in range(int(b'"head"' in line), len(lines) + 1):  # the first of two heads is the cluster's
        text = b"\n".join([*lines[:position], line, *lines[position:], b""])
        history = History.parse(text)
        assert (history.head, history.records) == (made().head, made().records)
        assert [message.split(":")[1] for message in history.skipped] == [str(position + 1)] * bool(line)
        path.write_bytes(text)
        cluster = Cluster("marginal-gain", slot=0.01, capacity={"CPU": 4}, history=path)
        cluster.submit(Bricks(), name="b")
        cluster.run()
        again = History.load(path)
        assert again.records[:3] == made().records
        assert again.records == cluster.history().records
        assert again.completion_times().keys() == {"a", "b"}


def test_an_invalid_record_is_not_written(caplog: pytest.LogCaptureFixture) -> None:
    history, good = made(), made().records[0]
    wrong = [
        msgspec.structs.replace(good, done=float("nan")),
        msgspec.structs.replace(good, worker={"GPU": 1}),
    ]
    assert history.take([wrong[0], good, wrong[1]]) == [good]
    assert History.parse(history.text().encode()).records == [*made().records, good]
    assert len(history.skipped) == 2
    assert "a record of the history is skipped: slot 1: the cluster has no GPU" in caplog.text


def test_a_record_before_the_head_is_skipped() -> None:
    with pytest.raises(InputError, match="its first line describes the cluster"):
        History.parse(b"")
    with pytest.raises(InputError, match=":1: the first line"):
        History.parse(b"".join(made().text().encode().splitlines(keepends=True)[1:]))
    two = made().text() + '{"type":"head","capacity":{"GPU":1}}\n'
    assert "resources of the cluster change" in History.parse(two.encode()).skipped[0]
