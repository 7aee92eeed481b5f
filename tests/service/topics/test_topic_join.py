"""`TopicJoin`: decisions that wait, as stored in a model file."""

from __future__ import annotations

import msgspec
import pytest

from onlineauto.errors import InputError
from onlineauto.service.join.settings import JoinSettings
from onlineauto.service.topics.partitions import Origin
from onlineauto.service.topics.topic_source import TakenMessage, TopicJoin, TopicLine, read_message

_DECISION = b'{"EventId":"e1","a":[2,1],"p":[0.75,0.25],"c":{"u":{"x":1},"_multi":[{"z":"a"},{"z":"b"}]}}'
_REWARD = b'{"EventId":"e1","RewardValue":0.5}'


def _taken(offset: int, line: bytes, time: float) -> TakenMessage:
    entry = TopicLine(Origin("t", 0, offset), line)
    return entry, read_message(entry), time


def test_a_decision_stored_without_its_label_gets_it() -> None:
    """Model files of format 1 have lines that wait with or without their labels."""
    join, lines = TopicJoin(JoinSettings()), []
    assert not join.take([_taken(0, _DECISION, 1.0)])
    stored = msgspec.msgpack.decode(join.state())
    (number, (origin, _, raw, action, probability)) = stored["waiting"][0]
    assert (action, probability) == (2, 0.75)
    with_label = b'{"_label_probability":0.75,"_label_Action":2,"_labelIndex":1,' + _DECISION[1:]
    for line in (with_label, _DECISION):
        stored["waiting"] = [(number, (origin, line, raw))]
        loaded = TopicJoin(JoinSettings(), msgspec.msgpack.encode(stored))
        messages = (_REWARD, 2.0), (_DECISION.replace(b"e1", b"e2"), 1e4)
        taken = [_taken(offset, *message) for offset, message in enumerate(messages, 1)]
        lines += [each.line for each in loaded.take(taken)]
    assert len(lines) == 2
    assert lines[0] == lines[1]
    assert msgspec.json.decode(lines[0])["_label_cost"] == -0.5


@pytest.mark.parametrize("action", [b"0", b"18446744073709551616"])
def test_a_decision_with_an_impossible_action_is_rejected(action: bytes) -> None:
    with pytest.raises(InputError, match="not a decision"):
        _taken(0, _DECISION.replace(b"[2,1]", b"[%b,1]" % action), 1.0)


@pytest.mark.parametrize("name", [b"\xff", b"\\ud800"])
def test_a_labelled_decision_with_a_name_that_is_no_text_is_rejected(name: bytes) -> None:
    line = _DECISION[:-1] + b',"_label_cost":-1,"' + name + b'":1}'
    with pytest.raises(InputError, match="not a decision"):
        _taken(0, line, 1.0)
