"""A broker inside librdkafka, and messages for its topics."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from onlineauto import Workspace
from onlineauto.cli.main import main

LEARNING = ["--cb_explore_adf", "--automl", "4", "--dsjson", "--random_seed", "3"]
_LOG = logging.getLogger("tests.broker")
BEGIN = 1_700_000_000_000
"""Time of the first message in milliseconds."""
PARTITIONS = 4
"""Number of partitions that the broker gives each topic."""


class Broker:
    """The mock cluster of librdkafka; its topics are made by their first message, with four partitions."""

    def __init__(self) -> None:
        import confluent_kafka
        from confluent_kafka.admin import AdminClient

        self._kafka = confluent_kafka
        # The client that has the cluster must live as long as the cluster is needed.
        self.admin = AdminClient({"test.mock.num.brokers": "3"}, logger=_LOG)
        found = self.admin.list_topics(timeout=10).brokers.values()
        self.servers = ",".join(f"{each.host}:{each.port}" for each in found)

    def address(self, topic: str) -> str:
        return f"kafka://{self.servers}/{topic}"

    def send(self, topic: str, messages: Iterable[tuple[int, int, bytes | None]]) -> None:
        """Send messages: the partition, the time after the beginning in milliseconds, and the value."""
        producer = self._kafka.Producer({"bootstrap.servers": self.servers}, logger=_LOG)
        for partition, time, value in messages:
            producer.produce(topic, value, partition=partition, timestamp=BEGIN + time)
            producer.poll(0)
        assert producer.flush(30) == 0

    def messages(self, topic: str) -> list[Any]:
        """Return all messages of a topic."""
        settings = {"bootstrap.servers": self.servers, "group.id": "test", "enable.partition.eof": True}
        consumer = self._kafka.Consumer(settings, logger=_LOG)
        parts = [self._kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
        consumer.assign(parts)
        found, ended = [], 0
        while ended < len(parts):
            for message in consumer.consume(100, 1.0):
                if message.error() is None:
                    found.append(message)
                else:
                    ended += 1
        consumer.close()
        return found

    def committed(self, topic: str, group: str = "onlineauto") -> list[int]:
        """Return the offsets that a group has committed, by partition."""
        consumer = self._kafka.Consumer({"bootstrap.servers": self.servers, "group.id": group}, logger=_LOG)
        parts = [self._kafka.TopicPartition(topic, number) for number in range(PARTITIONS)]
        offsets = [each.offset for each in consumer.committed(parts, timeout=10)]
        consumer.close()
        return offsets


@contextmanager
def running() -> Iterator[Broker]:
    """Yield a broker."""
    broker = Broker()
    yield broker
    broker.admin.poll(0)


def decision(random: np.random.Generator, number: int, *, reward: float | None = None) -> dict[str, Any]:
    """Return a decision in dsjson between three articles; with a reward, labelled."""
    user, action = ["tom", "ann"][int(random.integers(2))], int(random.integers(3))
    event: dict[str, Any] = {} if reward is None else {"_label_cost": -reward, "_label_probability": 1 / 3}
    event |= {} if reward is None else {"_label_Action": action + 1, "_labelIndex": action}
    actions = [{"article": {name: 1}} for name in ("art", "sport", "news")]
    order = [action + 1, *(each + 1 for each in range(3) if each != action)]
    return event | {
        "EventId": f"e{number}",
        "a": order,
        "p": [1 / 3] * 3,
        "c": {"user": {user: 1}, "_multi": actions},
    }


def labelled(n: int, seed: int = 0) -> list[bytes]:
    """Return `n` decisions with rewards."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(n):
        event = decision(random, number, reward=0.0)
        liked = (event["c"]["user"], event["a"][0]) in (({"tom": 1}, 1), ({"ann": 1}, 2))
        made.append(msgspec.json.encode(event | {"_label_cost": -float(liked)}))
    return made


def spread(events: Iterable[bytes], seed: int = 1) -> list[tuple[int, int, bytes | None]]:
    """Return messages with the times of their order, in random partitions."""
    draw = np.random.default_rng(seed)
    return [(int(draw.integers(PARTITIONS)), time, event) for time, event in enumerate(events)]


def run(*words: object, code: int = 0) -> None:
    """Run the command line."""
    assert main([str(word) for word in words]) == code


def learnt_from_file(path: Path, events: Iterable[bytes]) -> bytes:
    """Return the model after learning events from a file, whose end is not reached."""
    from onlineauto import Run, Workspace
    from onlineauto.workspace.options import REGISTRY

    lines = list(events)
    path.write_bytes(b"\n".join([*lines, lines[0]]) + b"\n")
    workspace = Workspace(configuration=REGISTRY.parse(LEARNING))
    assert Run(workspace, path).step(len(lines)) == len(lines)
    return content(workspace)


def content(model: Workspace | Path) -> bytes:
    """Return a model without the state of its run."""
    from onlineauto import Workspace

    file = io.BytesIO()
    (model if isinstance(model, Workspace) else Workspace.load(model, dsjson=True)).save(file)
    return file.getvalue()
