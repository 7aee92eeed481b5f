"""A topic that receives the log of a service gives the model of the service."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

from onlineauto import Run, Workspace
from onlineauto.errors import InputError
from onlineauto.service.learning.evaluate import join_log_lines
from onlineauto.service.log.segment_log import SegmentLog
from onlineauto.service.topics import TopicSource
from onlineauto.service.topics.log_topic import LogTopic
from onlineauto.workspace.options import REGISTRY
from tests.service.serving import MODEL, Service
from tests.service.topics.broker import LEARNING, Broker, content, learnt_from_file, run
from tests.service.traffic import decision, record, reward


def test_topic_of_a_log_gives_the_model_of_the_log(broker: Broker, tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log")
    log.append([record("settings", 0.0, Settings={"reward_wait": 20.0, "aggregation": "sum"})])
    for number in range(60):
        log.append([decision(f"e{number}", 1.0 + number)])
        log.append([reward(f"e{number}", 1.25 + number, 0.5), reward(f"e{number}", 1.5 + number, 0.25, "k")])
    log.append([record("tick", 90.0), b'{"damaged"}\n', decision("last", 91.0)])
    log.sync()
    with LogTopic(tmp_path, log, broker.address("log")):
        pass  # the end of the context waits until all is sent
    position = json.loads((tmp_path / "log_topic").read_text())
    (tmp_path / "log_topic").write_text(json.dumps(position | {"position": 0}))  # so all is sent again
    with LogTopic(tmp_path, log, broker.address("log")) as sending:
        pass
    assert sending.position == log.durable
    status = sending.status()
    assert (status.behind_bytes, status.lag_seconds, status.failures) == (0, 0.0, 0)
    assert len(broker.messages("log")) == 2 * (3 * 60 + 1)
    join = {"reward_wait": 20.0, "aggregation": "sum"}
    workspace = Workspace(configuration=REGISTRY.parse(LEARNING))
    with TopicSource(broker.address("log"), rewards="log", join=join, until_end=True) as source:
        Run(workspace, source).step()
        assert source.join is not None
        assert source.join.counts.repeated == 3 * 60 + 1
    lines = [line.strip() for line in join_log_lines(log)]
    assert len(lines) == 60
    assert content(workspace) == learnt_from_file(tmp_path / "events", lines)


@pytest.mark.ci
def test_service_sends_its_log_to_a_topic(broker: Broker, tmp_path: Path) -> None:
    with Service(tmp_path / "loop", "--log_topic", broker.address("served")) as service:
        with httpx.Client(base_url=service.url) as client:
            for number in range(30):
                actions = {each: {"topic": {each: 1}} for each in ("art", "sports")}
                body = {"event_id": f"e{number}", "context": {"user": {"tom": 1}}, "actions": actions}
                assert client.post("/v1/rank", json=body).status_code == 200
                client.post("/v1/reward", json={"event_id": f"e{number}", "reward": 1.0}).raise_for_status()
        assert service.stop() == 0
    sent = [json.loads(message.value()) for message in broker.messages("served")]
    assert sorted(each["Type"] for each in sent) == ["rank"] * 30 + ["reward"] * 30
    workspace = Workspace(configuration=REGISTRY.parse([*MODEL, "--dsjson"]))
    join, address = {"learn_at": "reward"}, broker.address("served")
    with TopicSource(address, rewards="served", join=join, until_end=True) as source:
        assert Run(workspace, source).step() == 30
    assert not workspace.diagnostics.total
    words = (tmp_path / "follower", "--follow", service.url, "--log_topic", broker.address("served"))
    run("serve", *words, code=2)
    for address in ("served", f"{broker.servers}/"):
        run("serve", tmp_path / "loop", *MODEL, "--log_topic", address, "--port", 0, "--quiet", code=2)


def test_records_that_no_broker_confirms_are_sent_again(broker: Broker, tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log")
    log.append([decision("e1", 1.0)])
    log.sync()
    sending = LogTopic(tmp_path, log, broker.address("log"))
    producer, sending._producer = sending._producer, Mock(flush=Mock(return_value=1))
    with pytest.raises(InputError, match="the topic log has not confirmed the records"):
        sending.step()
    assert sending.status().behind_bytes == log.durable
    sending._producer = producer
    assert sending.step() == 1
    assert sending.status().behind_bytes == 0
