"""What the model prefers for whom, counted from its decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.learning.segments import LEAST, Segments
from onlineauto.service.log.record import read_record
from onlineauto.service.log.segment_log import SegmentLog
from tests.service.traffic import CONFIGURATION, TOPICS, decision, record, reward

if TYPE_CHECKING:
    from pathlib import Path


def taken(segments: Segments, user: str, action: int, value: float, *, best: int = 0) -> None:
    """Count a decision of three actions, of which `best` has the highest probability."""
    ranked = [action + 1, *(each + 1 for each in range(3) if each != action)]
    chances = [0.8 if each == best + 1 else 0.1 for each in ranked]
    line = decision("e", 0.0, action, user=user, a=ranked, p=chances)
    segments.take(read_record(line), value)


def test_preferred_action_has_its_share_and_its_reward_beside_the_others() -> None:
    segments = Segments()
    for number in range(80):
        taken(segments, "tom", number % 2, float(number % 2 == 0), best=0)
        taken(segments, "ann", 2, 0.5, best=2 if number < 60 else 1)
    taken(segments, "rare", 0, 1.0)
    tom, ann = segments.summaries()
    assert (tom.name, tom.decisions, tom.action, tom.preferred) == ("user: tom", 80, TOPICS[0], 1.0)
    assert (tom.reward, tom.reward_of_others) == (1.0, 0.0)
    assert (ann.name, ann.action, ann.preferred) == ("user: ann", TOPICS[2], 0.75)
    assert (ann.reward, ann.reward_of_others) == (0.5, None)
    again = Segments.of(msgspec.to_builtins(segments.state()))
    assert again.summaries() == segments.summaries()
    assert "rare" not in str(segments.state())


def test_segments_follow_a_changed_preference_and_stay_few() -> None:
    segments = Segments()
    for number in range(40_000):
        taken(segments, "tom", 0, 0.0, best=0 if number < 4000 else 1)
        if number % 8 == 7:
            taken(segments, f"one{number}", 0, 0.0)
        assert len(segments._sums) <= 256
    (tom,) = segments.summaries()
    assert 30_000 < tom.decisions < 50_000
    assert tom.action == TOPICS[1]


@pytest.mark.parametrize(
    ("context", "names"),
    [
        (
            {"u": {"plan": "free", "age": 3, "new": True, "old": False, "x": None}},
            ["u: plan = free", "u: new"],
        ),
        ({"u": [{"a": 1}, "b", 2.5], "flag": 1, "lang": "en"}, ["u: a", "u = b", "flag", "lang = en"]),
        ({"u": {"deep": {"x": 1}}, "empty": {}}, []),
    ],
)
def test_categorical_features_name_the_segments(context: dict[str, Any], names: list[str]) -> None:
    segments = Segments()
    line = record("rank", 0.0, EventId="e", a=[1], p=[1.0], c={**context, "_multi": [{}]})
    for _ in range(LEAST):
        segments.take(read_record(line), 1.0)
    assert [each.name for each in segments.summaries()] == names
    assert {each.action for each in segments.summaries()} <= {"0"}


def test_a_learner_counts_decisions_of_the_model_only_and_remembers_them(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log")
    log.append([record("settings", 0.0, Settings={"reward_wait": 10.0, "learn_at": "reward"})])
    for number in range(60):
        log.append([decision(f"e{number}", number), reward(f"e{number}", number + 0.5, 1.0)])
        members: dict[str, Any] = {"mode": "apprentice"} if number % 2 else {"Arm": "control", "Bucket": 1}
        log.append([decision(f"b{number}", number, user="ann", **members), reward(f"b{number}", number, 1.0)])
    log.sync()
    learner = LogLearner(tmp_path, log, CONFIGURATION)
    while learner.step():
        pass
    assert [(each.name, each.decisions) for each in learner.segments.summaries()] == [("user: tom", 60)]
    learner.close()
    again = LogLearner(tmp_path, log, CONFIGURATION)
    assert again.segments.summaries() == learner.segments.summaries()
    again.close(snapshot=False)
    log.close()
