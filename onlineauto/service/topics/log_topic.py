"""``LogTopic``: copies the decisions and rewards of a service's log to a topic, at least once each.

The log in the folder stays what the service learns from. A message has its event id as the key, so that a
decision and its rewards are in one partition, and the time of its record. ``Source`` and ``Behind`` name the
log and the position behind the record. The positions of a log only rise within a partition, so `TopicJoin`
recognises records that were sent twice.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.errors import InputError
from onlineauto.service.log.log_copier import LogCopier
from onlineauto.service.log.segment_log import read_record
from onlineauto.service.topics.partitions import WAIT, Brokers, kafka, split_address
from onlineauto.workspace.model_file import replace_file

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from onlineauto.service.log.segment_log import SegmentLog

_MOST: Final = 1000
_TAIL: Final = len(b',"crc":"00000000"}\n')


class _Sent(msgspec.Struct):
    """The file of the position: the topic, the name of the log, and up to where the topic has the records."""

    topic: str
    name: str
    position: int


class LogTopic(LogCopier):
    """Sends records from a thread, within a context."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        log: SegmentLog,
        address: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(log, address)
        servers, self._topic = split_address(address)
        self._path = Path(folder) / "log_topic"
        self._module, self._failed = kafka(), False
        self._producer = Brokers(servers, settings or {}, group="onlineauto").producer()
        self._name = secrets.token_hex(8)
        if self._path.exists():
            sent = msgspec.json.decode(self._path.read_bytes(), type=_Sent)
            if sent.topic == self._topic and sent.position <= log.durable:
                self._name, self.position = sent.name, max(sent.position, log.begin)
        self._write()

    def step(self) -> int:
        """Send the next records, wait until the topic has them, and return their number."""
        self._failed, number, position = False, 0, self.position
        for offset, line in self.log.lines(self.position):
            self._send(offset, line)
            number, position = number + 1, offset + len(line)
            if number == _MOST:
                break
        if self._producer.flush(WAIT) or self._failed:
            self._producer.purge()
            raise InputError(f"the topic {self._topic} has not confirmed the records")
        if number:
            self.position = position
            self._write()
        return number

    def _write(self) -> None:
        sent = msgspec.json.encode(_Sent(self._topic, self._name, self.position))
        replace_file(self._path, [sent], alone=self.log.alone)

    def _send(self, position: int, line: bytes) -> None:
        """Give a decision or a reward to the producer; other records, and damaged ones, are left out."""
        try:
            record = read_record(line)
        except InputError:  # the learner counts and locates it
            return
        if record.kind not in ("rank", "reward") or record.no_room:
            return
        origin = b',"Source":"%b","Behind":%d}' % (self._name.encode(), position + len(line))
        time = round((record.taken or record.time).timestamp() * 1000)
        key = record.event_id.encode("utf-8", "surrogateescape")
        while True:
            try:
                self._producer.produce(
                    self._topic, line[:-_TAIL] + origin, key=key, timestamp=time, on_delivery=self._delivered
                )
                self._producer.poll(0)
            except BufferError:  # the queue is full
                self._producer.poll(0.1)
            else:
                return

    def _delivered(self, error: Any, message: object) -> None:  # noqa: ARG002 - as the producer calls it
        if error is not None:
            self._failed = True
