"""Messages that are read in batches give the model, the counts and the position of one message at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Run, Workspace
from onlineauto.service.topics import topic_source
from onlineauto.service.topics.partitions import Origin
from tests.service.topics.broker import content, decision

pytest.importorskip("confluent_kafka")

KINDS = [
    "decision",
    "decision",
    "decision",
    "reward",
    "reward",
    "key",
    "labelled",
    "malformed",
    "half",
    "tick",
]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, 9),  # the event id
        st.sampled_from([0.0, 0.25, 2.0]),  # seconds since the message before
        st.sampled_from([0.0, 1.0, -0.5]),  # the reward
    ),
    min_size=5,
    max_size=60,
)


class Messages:
    """The messages of one partition, in place of `Partitions`."""

    def __init__(self, values: list[tuple[float, bytes]]) -> None:
        self.values, self.taken, self.caught_up = values, 0, False

    @property
    def offsets(self) -> dict[str, list[int]]:
        return {"log": [self.taken]}

    def messages(self) -> Iterator[tuple[Origin, float, bytes]]:
        while self.taken < len(self.values):
            self.taken += 1
            yield Origin("log", 0, self.taken - 1), *self.values[self.taken - 1]
        self.caught_up = True

    def poll(self, timeout: float) -> None: ...
    def commit(self, offsets: Any) -> None: ...
    def close(self) -> None: ...


def message(kind: str, event_id: int, reward: float) -> bytes:
    """Return a message; the last three kinds are not events, or not whole."""
    named: dict[str, Any] = {"EventId": f"e{event_id}", "RewardValue": reward}
    if kind in ("reward", "key"):
        return msgspec.json.encode(named | ({"RewardId": f"k{reward}"} if kind == "key" else {}))
    if kind == "tick":
        return b'{"Type":"tick"}'
    event = decision(np.random.default_rng(event_id), event_id, reward=0.5 if kind == "labelled" else None)
    event["c"]["user"] |= {"text": "bad" if kind == "malformed" else "good"}
    line = msgspec.json.encode(event)
    return line[:-9] if kind == "half" else line.replace(b'"bad"', b'"\\q"')


def learnt(most: int, values: list[tuple[float, bytes]], join: dict[str, Any]) -> list[Any]:
    """Return what is left of reading at most `most` messages at a time, and of learning the events."""
    model = Workspace(cb_explore_adf=True, automl=2, dsjson=True)
    with (
        mock.patch.object(topic_source, "_MOST_LINES", most),
        mock.patch.object(topic_source, "Partitions", return_value=Messages(values)),
        topic_source.TopicSource("a:1/log", rewards="log", join=join, until_end=True) as source,
    ):
        run = Run(model, source)
        events = run.step()
        assert source.join is not None
        counts, position = source.join.counts, source.position(events)
    found = model.diagnostics
    return [events, content(model), counts, position, found.counts, sorted(map(str, found.kept))]


@settings(max_examples=40)
@given(
    steps=STEPS,
    learn_at=st.sampled_from(["wait", "reward"]),
    aggregation=st.sampled_from(["first", "last", "mean"]),
)
def test_batches_equal_one_message_at_a_time(
    steps: list[tuple[str, int, float, float]], learn_at: str, aggregation: str
) -> None:
    now, values = 0.0, []
    for kind, event_id, seconds, reward in steps:
        now += seconds
        values.append((now, message(kind, event_id, reward)))
    join = {"learn_at": learn_at, "aggregation": aggregation, "reward_wait": 1.0, "max_finished": 4}
    alone = learnt(1, values, join)
    assert [learnt(most, values, join) for most in (7, 1024)] == [alone] * 2
