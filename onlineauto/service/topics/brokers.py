"""``Brokers``: clients of the brokers that have a topic; only here confluent-kafka is imported."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import InputError, OptionError, PackageError, install_hint
from onlineauto.options.settings_file import read_settings

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_LOG = logging.getLogger("onlineauto.topics")
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
