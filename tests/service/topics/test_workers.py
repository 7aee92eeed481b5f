"""Workers that learn a topic: the process is killed, and each event is learnt once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from tests.service.topics.broker import LEARNING, Broker, content, labelled, run, spread
from tests.service.topics.test_killed import saved_at
from tests.service.topics.test_topics import decisions_and_rewards
from tests.waiting import until

_FIRST = 2
"""Number of partitions that the topic has at first; later it has four."""


def started(partitions: int, *words: object) -> subprocess.Popen[bytes]:
    """Start a learner that sees some of the partitions."""
    module = "tests.service.topics.few_partitions"
    return subprocess.Popen([sys.executable, "-m", module, str(partitions), "topic", *map(str, words)])


def ids_in(predictions: Path) -> list[str]:
    """Return the ids of the events that are predicted, and so learnt, in their order."""
    return [line.rpartition(" ")[2] for line in predictions.read_text().splitlines() if line]


def messages_with_tags(n: int) -> list[tuple[int, str, dict[str, Any]]]:
    return [
        (
            at,
            kind,
            message | {"c": {"_tag": message["EventId"], **message["c"]}} if "c" in message else message,
        )
        for at, kind, message in decisions_and_rewards(n)
    ]


@pytest.mark.ci
@pytest.mark.parametrize(("kills", "n"), [(4, 16_000), pytest.param(50, 28_000, marks=pytest.mark.slow)])
def test_killed_process_learns_each_event_once(broker: Broker, tmp_path: Path, kills: int, n: int) -> None:
    """Meanwhile the number of workers changes, and the topic gets further partitions."""
    messages, draw = messages_with_tags(n), Random(kills)
    topic = f"workers{kills}"
    words = (broker.address(topic), "--rewards", topic, "--reward_wait", 1, *LEARNING, "-b", 14)
    words = (*words, "--until_end", "--quiet", "--save_every", 500)
    whole = (*words, "-f", tmp_path / "whole", "-p", tmp_path / "whole.predictions")
    words = (*words, "-f", tmp_path / "model", "-p", tmp_path / "predictions")
    half, killed = len(messages) * 3 // 4, 0
    for partitions, part in ((_FIRST, messages[:half]), (4, messages[half:])):
        broker.send(
            topic, [(draw.randrange(partitions), at, msgspec.json.encode(each)) for at, _, each in part]
        )
        begin = time.monotonic()
        assert started(partitions, *whole, "--workers", 2).wait() == 0
        seconds = time.monotonic() - begin
        for number in range(kills // 2):
            process = started(partitions, *words, "--workers", 2 + number % 2)
            before = saved_at(tmp_path / "model")
            if draw.random() < 0.3:
                until(lambda: saved_at(tmp_path / "model") != before or process.poll() is not None)  # noqa: B023
                time.sleep(draw.random() * 0.1)
            else:
                time.sleep(seconds * draw.uniform(0.4, 0.8))
            process.kill()
            killed += process.wait() == -signal.SIGKILL
        assert started(partitions, *words, "--workers", 3).wait() == 0
    assert killed > kills // 4  # the others had learnt everything, on a fast machine more of them
    learnt = ids_in(tmp_path / "predictions")
    assert learnt == ids_in(tmp_path / "whole.predictions")
    assert len(learnt) == len(set(learnt)) > 0.9 * n
    assert content(tmp_path / "model") == content(tmp_path / "whole")


@pytest.mark.ci
def test_events_are_learnt_soon_where_few_arrive(broker: Broker, tmp_path: Path) -> None:
    """A round is not waited for: with nothing to read, the events that are there are learnt alone."""
    events = labelled(3000)
    messages = spread(events)
    model, predictions = tmp_path / "model", tmp_path / "predictions"
    broker.send("slowly", messages[:10])
    words = (broker.address("slowly"), *LEARNING, "-f", model, "-p", predictions, "--quiet", "--workers", 2)
    process = started(4, *words)
    for begin, end in ((0, 10), (10, 30), (30, 60)):
        if begin:
            broker.send("slowly", messages[begin:end])
        until(lambda: predictions.exists() and predictions.read_bytes().count(b"\n\n") >= end)  # noqa: B023
    broker.send("slowly", messages[60:])
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM
    run("topic", *words, "--until_end")
    assert predictions.read_bytes().count(b"\n\n") == len(events)
    offsets = [sum(partition == number for partition, *_ in messages) for number in range(4)]
    assert broker.committed("slowly") == offsets
