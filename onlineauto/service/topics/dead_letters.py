"""``DeadLetters``: a topic that receives the messages that cannot be used."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from onlineauto.service.topics.brokers import WAIT, describe_error, kafka

if TYPE_CHECKING:
    from onlineauto.service.topics.brokers import Brokers
    from onlineauto.service.topics.partitions import Origin

_LOG = logging.getLogger("onlineauto.topics")
_REASON: Final = 1000


class DeadLetters:
    """Sends messages to a topic, with their places and problems as headers."""

    def __init__(self, brokers: Brokers, topic: str) -> None:
        self.topic, self.failed = topic, 0
        self._module, self._producer = kafka(), brokers.producer()

    def send(self, origin: Origin, value: bytes | None, reason: str) -> None:
        """Send a message without waiting for its delivery."""
        headers = [
            ("onlineauto.topic", origin.topic.encode()),
            ("onlineauto.partition", b"%d" % origin.partition),
            ("onlineauto.offset", b"%d" % origin.offset),
            ("onlineauto.problem", reason[:_REASON].encode("utf-8", "replace")),
        ]
        for _ in range(2):
            try:
                self._producer.produce(self.topic, value, headers=headers, on_delivery=self._delivered)
                self._producer.poll(0)
            except BufferError:  # the queue is full
                self._producer.flush(WAIT)
            except self._module.KafkaException as error:  # such as a message that is too large
                self._fail(describe_error(error))
                return
            else:
                return
        self._fail("no broker takes it")

    def flush(self) -> None:
        """Wait until all messages are delivered, for at most ten seconds."""
        if left := self._producer.flush(WAIT):
            _LOG.warning("%d dead letters are not delivered yet", left)

    def _delivered(self, error: Any, message: object) -> None:  # noqa: ARG002 - as the producer calls it
        if error is not None:
            self._fail(error.str())

    def _fail(self, reason: str) -> None:
        self.failed += 1
        _LOG.warning("a dead letter was not delivered to %s: %s", self.topic, reason)
