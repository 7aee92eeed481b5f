"""A topic gives the model that a file of the same events gives; other messages are counted and located."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from onlineauto import Run, Workspace
from onlineauto.cli.outputs import Saving
from onlineauto.errors import InputError, OptionError
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.service.topics import TopicSource
from onlineauto.service.topics.partitions import Brokers, read_client_settings
from onlineauto.service.topics.topic_source import TopicReader
from onlineauto.workspace.model_file import read_file
from onlineauto.workspace.options import REGISTRY
from tests.service.topics.broker import (
    LEARNING,
    PARTITIONS,
    Broker,
    content,
    decision,
    labelled,
    learnt_from_file,
    run,
    spread,
)

END = ("--until_end", "--quiet")
WAIT = 1.0005
"""Seconds between two milliseconds, so that no rounding decides."""


def source_of(broker: Broker, topic: str, **options: Any) -> TopicSource:
    return TopicSource(broker.address(topic), until_end=True, **options)


def learning() -> Workspace:
    return Workspace(configuration=REGISTRY.parse(LEARNING))


def test_topic_gives_the_model_of_a_file(broker: Broker, tmp_path: Path) -> None:
    events = labelled(1500)
    broker.send("same", spread(events))
    run("topic", broker.address("same"), *LEARNING, *END, "-f", tmp_path / "model", "--save_every", 400)
    assert content(tmp_path / "model") == learnt_from_file(tmp_path / "events", events)
    by_partition = np.bincount([partition for partition, *_ in spread(events)], minlength=PARTITIONS)
    assert broker.committed("same") == by_partition.tolist()


@pytest.mark.parametrize("at_first", [1, 137, 2048, 2100])
def test_resumed_run_gives_the_same_model(broker: Broker, tmp_path: Path, at_first: int) -> None:
    events = labelled(2200, seed=at_first)
    topic = f"resumed{at_first}"
    broker.send(topic, spread(events[:2150]))
    with source_of(broker, topic) as source:
        started = Run(learning(), source)
        assert started.step(at_first) == at_first
        started.checkpoint(tmp_path / "model")
        started.step(10)  # is lost, since it is not saved
    later = [(partition, 2150 + time, value) for partition, time, value in spread(events[2150:])]
    broker.send(topic, later)
    for _ in range(2):  # the second run finds nothing
        run("topic", broker.address(topic), *LEARNING, *END, "-f", tmp_path / "model")
    assert content(tmp_path / "model") == learnt_from_file(tmp_path / "events", events)


def joined(messages: list[tuple[float, str, dict[str, Any]]], wait: float) -> list[bytes]:
    """Return the decisions in the order in which they end, with their rewards: the slow, plain way."""
    waiting: dict[str, tuple[float, dict[str, Any]]] = {}
    rewards: dict[str, float] = {}
    ended = []

    def end(event_id: str) -> None:
        event, reward = waiting.pop(event_id)[1], rewards.get(event_id, 0.0)
        label = {"_label_cost": 0.0 - reward, "_label_probability": event["p"][0]}
        ended.append(
            msgspec.json.encode(
                label | {"_label_Action": event["a"][0], "_labelIndex": event["a"][0] - 1} | event
            )
        )

    for time, kind, message in messages:
        for event_id in [each for each, (deadline, _) in waiting.items() if deadline <= time]:
            end(event_id)
        event_id = message["EventId"]
        if kind == "decision":
            waiting[event_id] = (time + wait, message)
        else:
            rewards.setdefault(event_id, message["RewardValue"])  # a late one has no effect
    return ended


def decisions_and_rewards(n: int) -> list[tuple[int, str, dict[str, Any]]]:
    """Return decisions every 10 ms and, for most, a reward: up to 50 ms early, or up to 1500 ms later."""
    random = np.random.default_rng(5)
    messages: dict[int, tuple[str, dict[str, Any]]] = {}  # by time: no two have the same
    for number in range(n):
        event = decision(random, number)
        messages[10 * number] = ("decision", event)
        if random.random() < 0.8:
            reward = {"EventId": event["EventId"], "RewardValue": float(random.integers(2))}
            time = 10 * number + 2 * int(random.integers(-50, 1500)) + 1
            while time in messages:
                time += 2
            messages[time] = ("reward", reward)
    return [(time, *messages[time]) for time in sorted(messages)]


@pytest.mark.parametrize("topics", ["two", "one"])
def test_rewards_are_joined_by_the_times_of_the_messages(
    broker: Broker, tmp_path: Path, topics: str, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = decisions_and_rewards(500)
    rewards = f"{topics}-rewards" if topics == "two" else f"{topics}-decisions"
    names = {"decision": f"{topics}-decisions", "reward": rewards}
    for topic in set(names.values()):
        broker.send(topic, spread_at([message for message in messages if names[message[1]] == topic]))
    words = ("--rewards", names["reward"], "--reward_wait", "PT1.0005S", "--until_end")
    for number in (100, 250, -1):  # in three runs
        more = () if number < 0 else ("--examples", number)
        run("topic", broker.address(names["decision"]), *LEARNING, *words, *more, "-f", tmp_path / "model")
    expected = joined([(time / 1000, kind, message) for time, kind, message in messages], WAIT)
    assert content(tmp_path / "model") == learnt_from_file(tmp_path / "events", expected)
    found = re.search(
        r"decisions: (\d+) with a reward, (\d+) without one, (\d+) wait", capsys.readouterr().err[-300:]
    )
    assert found is not None
    rewarded, defaulted, waiting = map(int, found.groups())
    assert rewarded + defaulted == len(expected) == 500 - waiting
    assert min(rewarded, defaulted) > 100


def spread_at(messages: list[tuple[int, str, dict[str, Any]]]) -> list[tuple[int, int, bytes | None]]:
    draw = np.random.default_rng(7)
    return [(int(draw.integers(PARTITIONS)), time, msgspec.json.encode(each)) for time, _, each in messages]


def test_messages_that_are_no_events_are_located_and_sent_to_a_topic(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = labelled(300)
    poison = [
        b"not json",
        None,
        b"  ",
        b'{"a": [1',
        b'{"p": "x", "_label_cost": "bad"}',
        b"[1]",
    ]
    messages = spread(events)
    for number, each in enumerate(poison):
        place = 40 * number + 40
        messages.insert(place, (number % PARTITIONS, messages[place - 1][1], each))
    broker.send("poisoned", messages)
    words = ("--dead_letters", "letters", "--until_end", "-f", tmp_path / "model")
    run("topic", broker.address("poisoned"), *LEARNING, *words)
    printed = capsys.readouterr().err
    assert content(tmp_path / "model") == learnt_from_file(tmp_path / "events", events)
    seen = [0] * PARTITIONS
    places = set()
    for partition, _, value in messages:
        if value not in events:
            places.add(("poisoned", partition, seen[partition]))
            assert re.search(
                rf"^poisoned\[{partition}\]:{seen[partition]}:\d+: .*skipped$", printed, re.MULTILINE
            )
        seen[partition] += 1
    assert f"{len(poison)} problems in the input" in printed
    letters = broker.messages("letters")
    found = set()
    for letter in letters:
        headers = {name.removeprefix("onlineauto."): value.decode() for name, value in letter.headers()}
        found.add((headers["topic"], int(headers["partition"]), int(headers["offset"])))
        assert headers["problem"]
    assert found == places
    assert {(letter.value() or b"").strip() for letter in letters} == {
        (each or b"").strip() for each in poison
    }


def test_messages_of_a_join_that_are_neither_decisions_nor_rewards_are_counted(broker: Broker) -> None:
    random = np.random.default_rng(8)
    good = [decision(random, 0), {"EventId": "e0", "RewardValue": 1.0}, {"Type": "tick"}]
    bad = [
        {"c": {}},
        {"EventId": "x"},
        {"EventId": "e0", "RewardValue": "1"},
        {"EventId": "e", "a": [1], "p": []},
    ]
    values = [msgspec.json.encode(each) for each in (*good[:1], *bad, *good[1:])]
    broker.send("mixed", [(0, time, value) for time, value in enumerate(values)])
    workspace = learning()
    with source_of(broker, "mixed", rewards="mixed", join={"learn_at": "reward"}) as source:
        assert Run(workspace, source).step() == 1
        assert source.join is not None
        assert source.join.counts.joined == 1
    assert workspace.diagnostics.counts == {ProblemCode.MESSAGE: len(bad)}
    assert [(each.file, each.line) for each in workspace.diagnostics.kept] == [
        ("mixed[0]", n) for n in (1, 2, 3, 4)
    ]


def test_text_and_json_are_learnt_too(broker: Broker) -> None:
    text = [
        b"shared |u tom\n0:-1:0.5 |a art\n|a news",
        b"|u x\n\n|u y",
        b"shared |u ann\n|a art\n1:0:0.5 |a news\n",
    ]
    broker.send("text", [(0, time, each) for time, each in enumerate(text)])
    workspace = Workspace(cb_explore_adf=True)
    with source_of(broker, "text") as source:
        assert Run(workspace, source).step() == 2
    assert [str(each)[:10] for each in workspace.diagnostics.kept] == ["text[0]:1:"]
    broker.send(
        "json", [(0, 0, b'{\n "_label": 1,\n "u": {"age": 2}}'), (0, 1, b'{"_label": 0, "u": {"age": 1}}')]
    )
    workspace = Workspace(json=True)
    with source_of(broker, "json") as source:
        assert Run(workspace, source).step() == 2
    assert not workspace.diagnostics.total


def test_event_with_two_costs_is_skipped(broker: Broker) -> None:
    good = b"shared |u tom\n0:-1:0.5 |a art\n|a news"
    broker.send("costs", [(0, 0, good), (0, 1, b"0:-1:0.5 |a art\n1:-1:0.5 |a news"), (0, 2, good)])
    workspace = Workspace(cb_explore_adf=True)
    with source_of(broker, "costs") as source:
        assert Run(workspace, source).step() == 2
    assert [(each.file, each.line) for each in workspace.diagnostics.kept] == [("costs[0]", 1)]


def test_deserialiser_reads_any_bytes(broker: Broker, tmp_path: Path) -> None:
    def reversed_json(value: bytes) -> Mapping[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(value[::-1])
        return found

    events = labelled(200)
    broker.send("reversed", [*spread(event[::-1] for event in events), (0, 500, b"broken")])
    workspace = learning()
    with source_of(broker, "reversed", deserialise=reversed_json, dead_letters="reversed-letters") as source:
        assert Run(workspace, source).step() == 200
    assert content(workspace) == learnt_from_file(tmp_path / "events", events)
    assert "deserialise raised DecodeError" in str(workspace.diagnostics.kept[0])
    assert [message.value() for message in broker.messages("reversed-letters")] == [b"broken"]


def test_interrupted_reading_is_not_saved(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.send("interrupted", spread(labelled(4000)))
    source = source_of(broker, "interrupted")
    started = Run(learning(), source)
    started.step(10)
    started.checkpoint(tmp_path / "model")

    def interrupt(*arguments: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(TopicReader, "parse", interrupt)
        with pytest.raises(MemoryError):
            started.step()
    with pytest.raises(InputError, match="an error has interrupted reading"):
        started.checkpoint(tmp_path / "model")
    source.close()
    with source_of(broker, "interrupted") as source:
        assert Run.resume(tmp_path / "model", source, dsjson=True).step() == 3990


def test_outlier_is_located_by_its_offset(broker: Broker) -> None:
    events = [msgspec.json.decode(each) for each in labelled(600)]
    events[550]["_label_cost"] = 1e30
    broker.send("outlier", [(0, time, msgspec.json.encode(event)) for time, event in enumerate(events)])
    workspace = learning()
    with source_of(broker, "outlier") as source:
        Run(workspace, source).step()
    assert [str(each).split(" ")[0] for each in workspace.diagnostics.kept] == ["outlier:550:1:"]


def test_offsets_beyond_retention_are_counted(broker: Broker, tmp_path: Path) -> None:
    events = [each[:-1] + b',"x":"%b"}' % (b"x" * 9000) for each in labelled(1000)]
    broker.send("short", [(0, time, event) for time, event in enumerate(events[:10])])
    with source_of(broker, "short") as source:
        started = Run(learning(), source)
        started.step(10)
        started.checkpoint(tmp_path / "model")
    broker.send("short", [(0, time + 10, event) for time, event in enumerate(events[10:])])  # it keeps 5 MB
    resumed = Run.resume(tmp_path / "model", source_of(broker, "short"), dsjson=True)
    learnt = resumed.step()
    lost = resumed.diagnostics.counts[ProblemCode.OFFSETS_LOST]
    assert 0 < lost < 990
    assert learnt == 990 - lost
    assert str(resumed.diagnostics.kept[0]).startswith(
        f"short[0]:10:1: the topic no longer has: {lost} messages"
    )


def test_new_partitions_are_read_from_their_beginning(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.send("grown", spread(labelled(400)))
    known = [2]
    monkeypatch.setattr(Brokers, "n_partitions", lambda *_: known.pop() if known else PARTITIONS)
    with source_of(broker, "grown", refresh=0.0) as source:
        assert Run(learning(), source).step() == 400


def test_other_topics_are_refused(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.send("long", spread(labelled(100)))
    broker.send("tiny", spread(labelled(4)))
    with source_of(broker, "long") as source:
        started = Run(learning(), source)
        started.step(50)
        started.checkpoint(tmp_path / "model")

    def resume(topic: str, **options: Any) -> None:
        Run.resume(tmp_path / "model", source_of(broker, topic, **options), dsjson=True).step()

    with pytest.raises(InputError, match="the model has read long, not tiny"):
        resume("tiny")
    with pytest.raises(InputError, match="with a join of rewards"):
        resume("long", rewards="long")
    with monkeypatch.context() as patched:
        patched.setattr(Brokers, "n_partitions", lambda *_: 2)
        with pytest.raises(InputError, match="long has 2 partitions, and the model has read 4"):
            resume("long")
    with monkeypatch.context() as patched:
        patched.setattr(Brokers, "ends", lambda *_: (0, 1))
        with pytest.raises(InputError, match=r"long\[\d\] ends at offset 1, and the model has read it up to"):
            resume("long")
    resume("long")
    path = tmp_path / "events"
    path.write_bytes(b"\n".join(labelled(60)))
    started = Run(learning(), path)
    started.step(50)
    started.checkpoint(tmp_path / "model")
    with pytest.raises(InputError, match="was not written by a run over a topic"):
        resume("long")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strict_parse": True}, "strict_parse"),
        ({"vw_exact": True}, "vw_exact"),
        ({"dsjson": False}, "add --dsjson"),
    ],
)
def test_options_that_do_not_fit_a_topic_are_refused(
    broker: Broker, options: dict[str, Any], message: str
) -> None:
    broker.send("options", spread(labelled(4)))
    with pytest.raises(OptionError, match=message):
        Workspace(**{"cb_explore_adf": True, "dsjson": True} | options).fit(
            source_of(broker, "options", rewards="options")
        )


def test_wrong_settings_of_a_join_are_refused() -> None:
    pytest.importorskip("confluent_kafka")
    for join, message in (
        ({"reward_wait": -1.0}, "reward_wait is -1.0"),
        ({"reward_weight": 1.0}, "reward_weight"),
        ({"aggregation": "most"}, "takes one of"),
    ):
        with pytest.raises(OptionError, match=message):
            TopicSource("a:1/b", rewards="c", join=join)
    with pytest.raises(OptionError, match="only rewards of a topic are waited for"):
        TopicSource("a:1/b", join={"reward_wait": 1.0})


def test_unknown_topics_and_silent_brokers_are_errors(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.send("known", spread(labelled(4)))
    run("topic", broker.address("unknown"), *LEARNING, *END, code=1)
    assert re.search(r"has no topic 'unknown': .*; it has .*known", capsys.readouterr().err)
    monkeypatch.setattr("onlineauto.service.topics.partitions.WAIT", 0.5)
    run("topic", "127.0.0.1:1/known", *LEARNING, *END, code=1)
    assert "no broker of 127.0.0.1:1 answers" in capsys.readouterr().err
    run("-d", broker.address("known"), *LEARNING, code=1)
    assert "onlineauto topic kafka://" in capsys.readouterr().err
    run("topic", "known", code=2)
    run("topic", "a:1/known", "--passes", 2, code=2)
    settings = tmp_path / "client.properties"
    settings.write_text("# comment\nclient.id = me\n")
    assert read_client_settings(settings) == {"client.id": "me"}
    for text, message in (
        ("nothing", "client.properties:1: a line is"),
        ("no.such=1", "settings of the client"),
    ):
        settings.write_text(text)
        run("topic", broker.address("known"), "--client_settings", settings, code=1 + (text != "nothing"))
        assert message in capsys.readouterr().err
    settings.write_text("auto.offset.reset=latest")
    run("topic", broker.address("known"), "--client_settings", settings, code=2)
    assert "auto.offset.reset cannot be changed" in capsys.readouterr().err


def test_a_topic_of_which_no_message_can_be_used_ends_like_such_a_file(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.send("refused", [(0, time, b"1 |a x") for time in range(20)])
    run("topic", broker.address("refused"), *LEARNING, *END, "-f", tmp_path / "model", code=1)
    assert "no event could be read" in capsys.readouterr().err
    run("topic", broker.address("refused"), "--quiet", "--until_end", "-f", tmp_path / "model2")
    assert Workspace.load(tmp_path / "model2").learner.model.touched.any()


def test_a_topic_of_rewards_alone_is_refused(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reward = b'{"EventId":"e1","RewardValue":1.0}'
    broker.send("only-rewards", [(n % 2, n, reward) for n in range(20)])
    for _ in range(2):  # the second run continues from the model of the first
        model = ("-f", tmp_path / "model")
        run("topic", broker.address("only-rewards"), *LEARNING, *END, *model, code=1)
        assert "name the topic of decisions, and this one with --rewards" in capsys.readouterr().err
    broker.admin.list_topics("no-message", timeout=10)  # makes it
    run("topic", broker.address("no-message"), *LEARNING, *END)


@pytest.mark.parametrize("topic", ["looped", "looped-rewards"])
def test_dead_letters_do_not_go_where_they_are_read(topic: str) -> None:
    with pytest.raises(OptionError, match=f"dead letters cannot go to {topic}, which is read"):
        TopicSource("localhost:1/looped", rewards="looped-rewards", dead_letters=topic)


def test_decisions_that_wait_are_saved_before_the_first_is_learnt(broker: Broker, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    events = [decision(random, number) for number in range(300)]
    broker.send("waits", [(0, 10 * n, msgspec.json.encode(event)) for n, event in enumerate(events)])
    words = (
        "topic",
        broker.address("waits"),
        *LEARNING,
        *END,
        "--rewards",
        "waits",
        "-f",
        tmp_path / "model",
    )
    run(*words)
    stored = read_file(tmp_path / "model")["run"]["position"]
    assert stored["events"] == 0
    assert sum(stored["at"]["offsets"]["waits"]) == 300
    broker.send("waits", [(0, 10_000_000, msgspec.json.encode(decision(random, 300)))])
    run(*words)
    position = read_file(tmp_path / "model")["run"]["position"]
    assert position["events"] == 300


def test_rewards_that_find_no_decision_are_counted_with_the_reason(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(3)
    events = [decision(random, number) for number in range(100)]
    late = [{"EventId": event["EventId"], "RewardValue": 1.0} for event in events]
    messages = [(0, 10 * n, msgspec.json.encode(event)) for n, event in enumerate(events)]
    broker.send(
        "late", [*messages, *((0, 5000 + n, msgspec.json.encode(each)) for n, each in enumerate(late))]
    )
    words = (*LEARNING, "--until_end", "--rewards", "late", "--reward_wait", "1", "-f", tmp_path / "model")
    run("topic", broker.address("late"), *words)
    message = capsys.readouterr().err
    found = re.search(r"rewards: (\d+) without a decision that waits, 0 repeated, (\d+) wait", message)
    assert found is not None
    assert sum(map(int, found.groups())) == 100
    assert "most rewards have no decision that waits" in message
    assert "older" not in message
    assert "no decision has waited yet" not in message
    run("topic", broker.address("late"), *LEARNING, "--until_end", "--rewards", "late")
    assert "no decision has waited yet, so none is learnt" in capsys.readouterr().err
    broker.send("odd", [(0, 90_000, messages[0][2]), *messages[1:]])
    run("topic", broker.address("odd"), *LEARNING, "--until_end", "--rewards", "odd", "--reward_wait", "1")
    assert "99 messages are older" in capsys.readouterr().err


def test_the_interval_of_saves_grows_with_their_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 1.0, 10.0, 20.9, 21.0, 21.0, 22.0])
    monkeypatch.setattr("onlineauto.cli.outputs.time.monotonic", lambda: next(clock))
    saving, saved = Saving.__new__(Saving), []
    saving._every, saving._pause, saving._unsaved, saving._next_save = 10, 20.0, 0, 0.0
    saving.save = lambda: saved.append(saving._unsaved)  # type: ignore[method-assign]
    for _ in range(4):
        saving.note(10)
    assert saved == [10, 40]
