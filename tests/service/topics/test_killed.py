"""A killed and restarted learner of a topic gives the model of one that runs through."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from tests.service.topics.broker import LEARNING, Broker, content, labelled, run, spread
from tests.service.topics.test_topics import decisions_and_rewards, spread_at
from tests.waiting import until


def started(*words: object) -> subprocess.Popen[bytes]:
    """Start a learner as a process."""
    return subprocess.Popen([sys.executable, "-m", "onlineauto", "topic", *map(str, words)])


def saved_at(model: Path) -> int:
    return model.stat().st_mtime_ns if model.exists() else 0


@pytest.mark.ci
@pytest.mark.parametrize(("kills", "n"), [(6, 3000), pytest.param(50, 10_000, marks=pytest.mark.slow)])
def test_killed_learner_gives_the_same_model(broker: Broker, tmp_path: Path, kills: int, n: int) -> None:
    messages, draw = decisions_and_rewards(n), Random(kills)
    names = {"decision": f"decisions{kills}", "reward": f"rewards{kills}"}
    for kind, topic in names.items():
        broker.send(topic, spread_at([message for message in messages if message[1] == kind]))
    words = (broker.address(names["decision"]), "--rewards", names["reward"], "--reward_wait", 1, *LEARNING)
    words = (*words, "--until_end", "--quiet", "--save_every", 20)
    whole, model = tmp_path / "whole", tmp_path / "model"
    begin = time.monotonic()
    run("topic", *words, "-f", whole, "-p", tmp_path / "whole.predictions")
    seconds = time.monotonic() - begin
    words = (*words, "-f", model, "-p", tmp_path / "predictions")
    killed = 0
    for _ in range(kills):
        process = started(*words)
        before, saves = saved_at(model), draw.randrange(4)
        for _ in range(saves):
            until(lambda: saved_at(model) != before or process.poll() is not None)  # noqa: B023
            before = saved_at(model)
        time.sleep(seconds * draw.random() * (0.02 if saves else 0.7))
        process.kill()
        killed += process.wait() == -signal.SIGKILL
    assert killed > kills // 4  # the others had learnt everything, on a fast machine more of them
    assert started(*words).wait() == 0
    assert content(model) == content(whole)
    assert (tmp_path / "predictions").read_bytes() == (tmp_path / "whole.predictions").read_bytes()
    assert (tmp_path / "predictions").read_bytes().count(b"\n\n") > n // 2


@pytest.mark.ci
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_terminated_learner_has_saved_all_that_it_has_learnt(broker: Broker, tmp_path: Path) -> None:
    events = labelled(900)
    messages = spread(events)
    model, predictions = tmp_path / "model", tmp_path / "predictions"
    broker.send("live", messages[:1])
    words = (broker.address("live"), *LEARNING, "-f", model, "-p", predictions, "--quiet", "--save_every", 50)
    for number in range(3):
        process = started(*words)
        for begin in range(300 * number, 300 * number + 300, 100):  # while it waits for messages
            broker.send("live", messages[max(begin, 1) : begin + 100])
            until(lambda: predictions.exists() and predictions.read_bytes().count(b"\n\n") >= begin + 50)  # noqa: B023
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
    run("topic", *words, "--until_end")
    assert predictions.read_bytes().count(b"\n\n") == len(events)
    offsets = [sum(partition == each for partition, *_ in messages) for each in range(4)]
    assert broker.committed("live") == offsets
