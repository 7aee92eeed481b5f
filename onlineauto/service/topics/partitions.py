"""``Partitions``: the messages of all partitions of some topics, in the order of their times.

Messages that exist when reading begins are taken in one order, whatever arrives first from the network: a
partition is waited for as long as the topic has further messages of it. Messages with the same time are
ordered by topic and partition. Messages that are produced later are taken in this order as far as they have
arrived.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from onlineauto.errors import InputError, OptionError, PackageError, install_hint
from onlineauto.options.registry import read_settings

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence


_LOG = logging.getLogger("onlineauto.topics")
_MOST: Final = 2000
"""Number of messages that are fetched at a time."""
_FULL, _FULL_BYTES, _LOW = 4000, 1 << 23, 1000
"""A partition is paused at this number of waiting messages or bytes, and resumed below the last number."""

SCHEME: Final = "kafka://"
WAIT: Final = 10.0
"""Seconds for which brokers may leave a question without an answer."""
_CONSUMER: Final = {
    "enable.auto.commit": False,  # the offsets in the model decide, not those of a group
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",  # offsets that the topic no longer has are counted, not skipped silently
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 100,
    "queued.max.messages.kbytes": 16_384,
}
_FIXED: Final = ("bootstrap.servers", *_CONSUMER)


def kafka() -> Any:
    """Return the module confluent_kafka."""
    try:
        import confluent_kafka
    except ModuleNotFoundError as error:
        raise PackageError(
            f"topics are read by confluent-kafka: {install_hint('kafka')}", name=error.name
        ) from None
    return confluent_kafka


def split_address(address: str) -> tuple[str, str]:
    """Return the brokers and the topic of an address.

    >>> split_address("kafka://a:9092,b:9092/events")
    ('a:9092,b:9092', 'events')
    """
    servers, slash, topic = address.removeprefix(SCHEME).rpartition("/")
    if not slash or not servers or not topic or "/" in servers:
        raise OptionError(f"the address of a topic is BROKER:PORT[,BROKER:PORT...]/TOPIC, not {address!r}")
    return servers, topic


def read_client_settings(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the settings in a file of ``name=value`` lines, such as ``security.protocol=SASL_SSL``."""
    settings: dict[str, str] = {}
    try:
        text = read_settings(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise InputError(f"{path}:{number}: a line is name=value, such as security.protocol=SASL_SSL")
            settings[name.strip()] = value.strip()
    return settings


class Brokers:
    """Makes clients of the brokers."""

    def __init__(self, servers: str, settings: Mapping[str, str], *, group: str) -> None:
        self.servers, self._problem = servers, 0
        kafka()
        for name in _FIXED:
            if name in settings:
                raise OptionError(f"the setting {name} cannot be changed: exact learning depends on it")
        self._common: dict[str, Any] = {"group.id": group, **settings, "bootstrap.servers": servers}

    def consumer(self) -> Any:
        """Return a consumer."""
        return self._client("Consumer", self._common | _CONSUMER)

    def producer(self) -> Any:
        """Return a producer, which delivers the messages of a partition in order."""
        settings = {name: value for name, value in self._common.items() if name != "group.id"}
        return self._client("Producer", settings | {"enable.idempotence": True})

    def _client(self, kind: str, settings: Mapping[str, Any]) -> Any:
        module = kafka()
        try:
            # The client repeats a message about a lost connection many times a second: `error_cb` logs once.
            return getattr(module, kind)(
                {"log_level": 2, "error_cb": self._log_once, **settings}, logger=_LOG
            )
        except module.KafkaException as error:
            raise OptionError(f"the settings of the client are invalid: {describe_error(error)}") from None

    def _log_once(self, error: Any) -> None:
        """Log a problem that the client works on, unless the last one was of the same kind."""
        if error.code() != self._problem:
            self._problem = error.code()
            _LOG.warning("%s: %s", self.servers, error.str())

    def n_partitions(self, client: Any, topic: str) -> int:
        """Return the number of partitions of a topic."""
        module = kafka()
        try:
            described = client.list_topics(topic, timeout=WAIT).topics[topic]
        except module.KafkaException as error:
            raise InputError(f"no broker of {self.servers} answers: {describe_error(error)}") from None
        if described.error is not None:
            raise InputError(
                f"{self.servers} has no topic {topic!r}: {described.error.str()}{self._hint(client)}"
            )
        return len(described.partitions)

    def _hint(self, client: Any) -> str:
        """Return the names of some topics, for a message."""
        names = sorted(name for name in client.list_topics(timeout=WAIT).topics if not name.startswith("__"))
        return f"; it has {', '.join(names[:5])}{' …' if len(names) > 5 else ''}" if names else ""

    def ends(self, client: Any, topic: str, partition: int) -> tuple[int, int]:
        """Return the offset of the oldest message of a partition, and the offset after the newest one."""
        module = kafka()
        try:
            offsets = client.get_watermark_offsets(module.TopicPartition(topic, partition), timeout=WAIT)
        except module.KafkaException as error:
            raise InputError(f"{topic}[{partition}] cannot be read: {describe_error(error)}") from None
        if offsets is None:
            raise InputError(f"{topic}[{partition}] cannot be read: no broker answers")
        low, high = offsets
        return int(low), int(high)


def describe_error(error: Exception) -> str:
    """Return the reason of an error of confluent-kafka."""
    first = error.args[0] if error.args else error
    return str(first.str()) if hasattr(first, "str") else str(first)


class Origin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The place of a message: its topic, partition and offset."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """Return the place as in messages about problems.

        >>> str(Origin("events", 3, 1042))
        'events[3]:1042'
        """
        return f"{self.topic}[{self.partition}]:{self.offset}"


TopicMessage: TypeAlias = tuple[int, float, bytes | None]
"""The offset, the time in seconds and the value of a message. A named tuple takes longer to make."""


class _Partition:
    """A partition: its fetched messages, the next offset to fetch, and its known end."""

    def __init__(self, topic: str, number: int, order: int, fetched: int, end: int) -> None:
        self.topic, self.number, self.order = topic, number, order
        self.fetched, self.end, self.goal = fetched, end, end
        self.buffer: deque[TopicMessage] = deque()
        self.n_bytes = 0
        self.paused = False

    @property
    def key(self) -> tuple[str, int]:
        """The topic and the number."""
        return self.topic, self.number

    @property
    def next(self) -> int:
        """The offset of the next message to take."""
        return self.buffer[0][0] if self.buffer else self.fetched

    @property
    def is_awaited(self) -> bool:
        """True if no message of it is here, and the topic has one."""
        return not self.buffer and self.fetched < self.end

    def entry(self) -> tuple[float, int, int, _Partition]:
        """Return the key by which its first message is ordered, and the partition."""
        return self.buffer[0][1], self.order, self.number, self


class Partitions:
    """Reads all partitions of some topics from their offsets on."""

    def __init__(
        self,
        brokers: Brokers,
        topics: Sequence[str],
        offsets: Mapping[str, list[int]],
        *,
        lost: Callable[[Origin, int], object],
        refresh: float,
    ) -> None:
        self._brokers, self._topics, self._lost, self._refresh = brokers, topics, lost, refresh
        self._module = kafka()
        self._consumer = brokers.consumer()
        self._parts: dict[tuple[str, int], _Partition] = {}
        self._awaited: set[tuple[str, int]] = set()
        self._heads: list[tuple[float, int, int, _Partition]] = []
        try:
            for topic in topics:
                n_partitions, known = brokers.n_partitions(self._consumer, topic), offsets.get(topic, [])
                if n_partitions < len(known):
                    raise InputError(
                        f"{topic} has {n_partitions} partitions, and the model has read {len(known)}: it is "
                        "another topic. Begin with a new model, or from this one with -i"
                    )
                self._add(topic, n_partitions, known)
        except BaseException:
            self._consumer.close()
            raise
        self._refreshed = time.monotonic()

    def _add(self, topic: str, n_partitions: int, known: Sequence[int] = ()) -> None:
        """Read the partitions of a topic that are not read yet."""
        added = []
        for number in range(n_partitions):
            if (topic, number) in self._parts:
                continue
            low, high = self._brokers.ends(self._consumer, topic, number)
            begin = known[number] if number < len(known) else low
            part = _Partition(
                topic, number, self._topics.index(topic), self._found(topic, number, begin, low, high), high
            )
            self._parts[part.key] = part
            self._note(part)
            added.append(self._module.TopicPartition(topic, number, part.fetched))
        if added:
            self._consumer.incremental_assign(added)

    def _found(self, topic: str, number: int, offset: int, low: int, high: int) -> int:
        """Return the offset at which reading can begin, and report the messages before it that are lost."""
        if offset > high:
            raise InputError(
                f"{topic}[{number}] ends at offset {high}, and the model has read it up to {offset}: it is "
                "another topic. Begin with a new model, or from this one with -i"
            )
        if offset < low:
            self._lost(Origin(topic, number, offset), low - offset)
        return max(offset, low)

    @property
    def offsets(self) -> dict[str, list[int]]:
        """The offset of the next message to take of each partition, by topic."""
        offsets: dict[str, list[int]] = {topic: [] for topic in self._topics}
        for topic, number in sorted(self._parts):
            offsets[topic].append(self._parts[topic, number].next)
        return offsets

    @property
    def caught_up(self) -> bool:
        """True if all messages were taken that the topics had when reading began."""
        return all(part.next >= part.goal for part in self._parts.values())

    def messages(self) -> Iterator[tuple[Origin, float, bytes | None]]:
        """Yield the next messages: their places, their times in seconds, and their values."""
        heads, awaited = self._heads, self._awaited
        while heads and not awaited:
            part = heads[0][3]
            offset, time, value = part.buffer.popleft()
            part.n_bytes -= len(value or b"")
            if part.buffer:
                heapreplace(heads, part.entry())
            else:
                heappop(heads)
                self._note(part)
            yield Origin(part.topic, part.number, offset), time, value

    def poll(self, timeout: float) -> None:
        """Fetch messages, and wait for some for at most `timeout` seconds."""
        if time.monotonic() - self._refreshed > self._refresh:
            self._find_new()
        self._pause()
        for message in self._consumer.consume(_MOST, timeout):
            part = self._parts.get((message.topic(), message.partition()))
            if message.error() is not None:
                self._take_error(message.error(), part, message.offset())
            elif part is not None and (offset := message.offset()) >= part.fetched:
                value = message.value()
                part.buffer.append((offset, message.timestamp()[1] / 1000, value))
                part.n_bytes += len(value or b"")
                part.fetched = offset + 1
                if len(part.buffer) == 1:
                    heappush(self._heads, part.entry())
        for part in self._parts.values():
            if not part.buffer and part.fetched >= part.end:
                assigned = self._module.TopicPartition(part.topic, part.number)
                _, part.end = self._consumer.get_watermark_offsets(assigned, cached=True)
            self._note(part)

    def commit(self, offsets: Mapping[str, list[int]]) -> None:
        """Let the brokers know offsets, for monitoring; they are never read."""
        committed = [
            self._module.TopicPartition(topic, number, offset)
            for topic, numbers in offsets.items()
            for number, offset in enumerate(numbers)
        ]
        try:
            self._consumer.commit(offsets=committed, asynchronous=True)
        except self._module.KafkaException as error:
            _LOG.warning("the offsets were not committed for monitoring: %s", describe_error(error))

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    # ---------------------------------------------------------------------------------------------------

    def _note(self, part: _Partition) -> None:
        """Note whether a partition is waited for."""
        (self._awaited.add if part.is_awaited else self._awaited.discard)(part.key)

    def _pause(self) -> None:
        """Pause partitions of which many messages are here, and resume others."""
        for part in self._parts.values():
            assigned = [self._module.TopicPartition(part.topic, part.number)]
            if not part.paused and (len(part.buffer) >= _FULL or part.n_bytes >= _FULL_BYTES):
                self._consumer.pause(assigned)
                part.paused = True
            elif part.paused and len(part.buffer) < _LOW and part.n_bytes < _FULL_BYTES // 2:
                self._consumer.resume(assigned)
                part.paused = False

    def _take_error(self, error: Any, part: _Partition | None, offset: int) -> None:
        """Handle what a consumer reports in place of a message."""
        codes = self._module.KafkaError
        if part is not None and error.code() == codes._PARTITION_EOF:  # noqa: SLF001 - the name of a constant
            # What the topic has behind the last message, such as the end of a transaction, is no message.
            part.fetched = max(part.fetched, offset)
            part.end = min(part.end, part.fetched)
            part.goal = min(part.goal, part.fetched)
        elif part is not None and error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):  # noqa: SLF001
            low, high = self._brokers.ends(self._consumer, part.topic, part.number)
            part.fetched = self._found(part.topic, part.number, part.fetched, low, high)
            self._consumer.seek(self._module.TopicPartition(part.topic, part.number, part.fetched))
        elif error.fatal() or error.code() in (
            codes.TOPIC_AUTHORIZATION_FAILED,
            codes.UNKNOWN_TOPIC_OR_PART,
            codes._UNKNOWN_TOPIC,  # noqa: SLF001
        ):
            what = self._topics[0] if part is None else f"{part.topic}[{part.number}]"
            raise InputError(f"{what} can no longer be read: {error.str()}")
        else:
            _LOG.warning("the brokers report a problem, and reading goes on: %s", error.str())

    def _find_new(self) -> None:
        """Read partitions that were added to the topics, from their beginnings."""
        self._refreshed = time.monotonic()
        for topic in self._topics:
            try:
                self._add(topic, self._brokers.n_partitions(self._consumer, topic))
            except InputError as error:
                _LOG.warning("the number of partitions is not known now: %s", error)
