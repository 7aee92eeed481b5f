"""``History``: a record of each job of a cluster in each slot, in memory or as JSON lines in a file."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOG: Final = logging.getLogger("onlineauto")


class Head(msgspec.Struct, frozen=True, kw_only=True, tag="head", tag_field="type"):
    """Describe the cluster: the first line of a history."""

    capacity: dict[str, float]  # Amount of each resource of the cluster, by name.
    slot: float = 1.0  # Seconds between two decisions of the policy.
    policy: str = ""  # Name of the policy that decided.


class Record(msgspec.Struct, frozen=True, kw_only=True, tag="slot", tag_field="type"):
    """Describe one unfinished job in one slot, whether or not it had workers.

    Attributes
    ----------
    slot : int
        Number of the slot, from 0.
    job : str
        Name of the job, unique in the history.
    kind : str
        Jobs of one kind have about the same speeds: ``study-forest``, ``stream-linear``.
    arrived : float
        Time of submission, in slots.
    workers, servers : int
        Allocation of the job in this slot.
    before, done : float
        Units of work that were done at the beginning and at the end of the slot.
    total : float
        Total units of work; for an endless job, those that had arrived by the end of the slot.
    used : float
        The part of the slot in which the job worked: less than 1 if it ended within the slot, or waited for a
        change of its size.
    worker, server : dict
        The demand of one worker and of one server by resource; `server` is empty for a job without servers.
    most_workers, most_servers : int
        The maximum numbers that the job can use.
    endless : bool
        True for a stream without an end, which has no completion time.
    """

    slot: int
    job: str
    kind: str
    arrived: float
    workers: int
    servers: int
    before: float
    done: float
    total: float
    used: float = 1.0
    worker: dict[str, float]
    server: dict[str, float] = {}
    most_workers: int = 16
    most_servers: int = 16
    endless: bool = False

    @property
    def finished(self) -> bool:
        """True if the job ended in this slot."""
        return not self.endless and self.done >= self.total


class History:
    """The history of a cluster: its description, and a record for each unfinished job in each slot.

    Parameters
    ----------
    head : Head
        The cluster.
    records : list of Record, optional
        In the order of slots.

    Attributes
    ----------
    skipped : list of str
        Messages about skipped lines of the text, each with its position and its error.

    Examples
    --------
    >>> history = History(Head(capacity={"CPU": 4}, slot=30))
    >>> job = {"job": "a", "kind": "study", "arrived": 0, "worker": {"CPU": 1}, "total": 10}
    >>> history.add(Record(slot=0, workers=2, servers=0, before=0, done=7, **job))
    >>> history.add(Record(slot=1, workers=2, servers=0, before=7, done=10, used=0.5, **job))
    >>> history.completion_times()
    {'a': 1.5}
    >>> print(history.text().splitlines()[0])
    {"type":"head","capacity":{"CPU":4},"slot":30,"policy":""}
    """

    def __init__(self, head: Head, records: list[Record] | None = None) -> None:
        self.head = head
        self.records: list[Record] = [] if records is None else records
        self.skipped: list[str] = []

    def __len__(self) -> int:
        return len(self.records)

    def add(self, record: Record) -> None:
        """Append a record."""
        self.records.append(record)

    def take(self, records: Iterable[Record]) -> list[Record]:
        """Append and return the records of a slot that `parse` would accept; skip and log other records."""
        taken = []
        for record in records:
            try:
                _check_record(record, self.head, f"slot {record.slot}")
            except InputError as error:
                self.skipped.append(str(error))
                _LOG.warning("a record of the history is skipped: %s", error)
            else:
                taken.append(record)
        self.records += taken
        return taken

    def completion_times(self) -> dict[str, float]:
        """Return the number of slots from arrival to end of each finished job, by name.

        A job ends within its last slot, after the part of the slot that it used.
        """
        return {
            record.job: record.slot + min(record.used, 1.0) - record.arrived
            for record in self.records
            if record.finished
        }

    def text(self) -> str:
        """Return the history as lines of JSON."""
        return _encode_lines([self.head, *self.records]).decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the history as lines of JSON.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        Path(path).write_text(self.text(), "utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> History:
        """Read a history.

        Raises
        ------
        InputError
            If the first line does not describe a cluster.
        OSError
            If the file cannot be read.
        """
        return cls.parse(Path(path).read_bytes(), name=os.fspath(path))

    @classmethod
    def parse(cls, text: bytes, *, name: str = "history") -> History:
        """Read a history from its text; `name` is its name in messages.

        A line that is not a valid record is skipped, listed in `skipped`, and reported by a warning; all
        lines after it are read. An incomplete last line, for example after a crash, is ignored.

        Raises
        ------
        InputError
            If no line describes a cluster.
        """
        lines = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
        if not lines:
            raise InputError(f"{name}: not a cluster's history: its first line describes the cluster")
        head: Head | None = None
        skipped: list[str] = []
        records: list[Record] = []
        n_complete = text.count(b"\n")
        for number, line in lines:
            try:
                entry = _read(line, head, f"{name}:{number}")
            except InputError as error:
                if number <= n_complete:  # otherwise the last line is incomplete
                    skipped.append(str(error))
                continue
            if isinstance(entry, Head):
                head = entry
            else:
                records.append(entry)
        if head is None:
            raise InputError(skipped[0] if skipped else f"{name}: no line describes the cluster")
        history = cls(head, records)
        history.skipped = skipped
        if skipped:
            _LOG.warning("%d lines of a history are skipped, the first: %s", len(skipped), skipped[0])
        return history


_DECODER: msgspec.json.Decoder[Head | Record] = msgspec.json.Decoder(Head | Record)
_MOST_SLOTS: Final = 2**40  # leaves room for the slots of later runs


def _read(line: bytes, head: Head | None, where: str) -> Head | Record:
    """Return the head or the record of a line of a history; `head` is the latest head before it."""
    try:
        entry = _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: not a line of a cluster's history: {error}") from error
    if isinstance(entry, Record):
        _check_record(entry, head, where)
        if entry.slot >= _MOST_SLOTS:
            raise InputError(f"{where}: slot {entry.slot}: a slot is less than {_MOST_SLOTS:,}")
        return entry
    _check_amounts(entry.capacity, where)
    if head is not None and entry.capacity.keys() != head.capacity.keys():
        raise InputError(f"{where}: the resources of the cluster change at this line")
    return entry


def _check_record(record: Record, head: Head | None, where: str) -> None:
    """Check that a record is valid for a cluster."""
    if head is None:
        raise InputError(f"{where}: the first line of a history must describe the cluster")
    unknown = (record.worker.keys() | record.server.keys()) - head.capacity.keys()
    if unknown:
        raise InputError(f"{where}: the cluster has no {', '.join(sorted(unknown))}")
    for amounts in (record.worker, record.server):
        _check_amounts(amounts, where)
    numbers = (record.before, record.done, record.total, record.used, record.arrived)
    counts = (record.slot, record.workers, record.servers, record.most_workers, record.most_servers)
    if not all(0 <= number < 1e300 for number in numbers) or not all(0 <= n < 2**53 for n in counts):
        raise InputError(f"{where}: a number of job {record.job!r} is negative, infinite or too large")


def _check_amounts(amounts: dict[str, float], where: str) -> None:
    """Reject negative and infinite amounts of resources."""
    if wrong := [name for name, amount in amounts.items() if not 0 <= amount < 1e300]:
        name = wrong[0]
        raise InputError(f"{where}: {name} = {amounts[name]:g}: an amount must be a number of at least 0")


_BEGIN = b'{"type":"head"'

try:
    import fcntl
except ImportError:  # this system has no flock()
    fcntl = None  # type: ignore[assignment]


class HistoryFile:
    """Appends records to a file, which another cluster may continue after this one has ended or crashed.

    Each slot is on the disk before the next slot begins. An incomplete last line after a crash is removed.
    Records that cannot be written, because the disk is full, wait for the next slot.
    """

    def __init__(self, path: str | os.PathLike[str], head: Head) -> None:
        self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - stays open while the cluster works
        self._unwritten, self._failed = b"", False
        try:
            self._lock(path)
            content = Path(path).read_bytes()
            self._size = content.rfind(b"\n") + 1
            complete, incomplete = content[: self._size].strip(b"\n"), content[self._size :]
            # A file whose first line is incomplete counts as new, because it has no record yet.
            is_new = not complete and _BEGIN.startswith(incomplete[: len(_BEGIN)])
            self.found = History(head) if is_new else History.parse(content, name=os.fspath(path))
            if self.found.head.capacity.keys() != head.capacity.keys():
                requested, recorded = sorted(head.capacity), sorted(self.found.head.capacity)
                raise InputError(
                    f"{os.fspath(path)}: the history of a cluster with {', '.join(recorded)}, "
                    f"but this one has {', '.join(requested)}; give it another file"
                )
            self._file.truncate(self._size)
            self._unwritten = _encode_lines([head])
            self._write()
        except BaseException:
            self._file.close()
            raise

    def append(self, lines: Iterable[Head | Record]) -> None:
        """Write lines and wait until they are on the disk; keep them for the next call if that fails."""
        self._unwritten += _encode_lines(lines)
        try:
            self._write()
        except OSError as error:
            if not self._failed:
                _LOG.warning(
                    "%s cannot be written, and its records wait: %s", self._file.name, error.strerror
                )
            self._failed = True
        else:
            self._failed = False

    def close(self) -> None:
        """Close the file, so that another cluster may continue it."""
        try:
            self._write()
        except OSError as error:
            count = self._unwritten.count(b"\n")
            raise OutputError(
                f"{self._file.name} lacks its last {count} records: {error.strerror}; history() has them"
            ) from None
        finally:
            self._file.close()

    def _write(self) -> None:
        """Write the lines that wait; remove a part that was written if that fails."""
        rest = memoryview(self._unwritten)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size += len(self._unwritten)
        self._unwritten = b""

    def _lock(self, path: str | os.PathLike[str]) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{os.fspath(path)} is in use by another cluster: give another file") from None


def _encode_lines(lines: Iterable[Head | Record]) -> bytes:
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
