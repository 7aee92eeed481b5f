"""The learner of a log: one model for one log, its history, its values and its segments."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from onlineauto.engine.search.journal import read_journal
from onlineauto.errors import InputError, OptionError
from onlineauto.service.join.join import JoinSettings
from onlineauto.service.learning.evaluate import join_log_lines
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.learning.segments import LEAST, Segments
from onlineauto.service.log.segment_log import SegmentLog, read_record
from onlineauto.service.loop.loop import board_of
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace
from tests.service.traffic import CONFIGURATION, TOPICS, decision, record, reward

SETTINGS = JoinSettings(reward_wait=30.0)


_OPEN: list[LogLearner] = []


@pytest.fixture(autouse=True)
def close_learners() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close(snapshot=False)


def learner_of(folder: Path, log: SegmentLog) -> LogLearner:
    folder.mkdir(exist_ok=True)
    _OPEN.append(LogLearner(folder, log, CONFIGURATION, settings=SETTINGS))
    return _OPEN[-1]


def model_of(workspace: Workspace) -> bytes:
    file = io.BytesIO()
    workspace.save(file)
    return file.getvalue()


def finished(learner: LogLearner) -> bytes:
    while learner.step():
        pass
    return model_of(learner.workspace)


def test_a_learner_that_is_stopped_anywhere_ends_with_the_same_bytes(
    tmp_path: Path, log: SegmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = learner_of(tmp_path / "whole", log)
    wanted = finished(whole)
    assert whole.learnt == 400
    draw = Random(5)
    folder = tmp_path / "pieces"
    learner = learner_of(folder, log)
    for _ in range(30):
        monkeypatch.setattr("onlineauto.service.learning.learner.MOST_RECORDS", draw.randrange(1, 60))
        learner.step()
        if draw.random() < 0.5:
            learner.snapshot()
        if draw.random() < 0.5:  # what was learnt since the snapshot is lost with the process
            learner.close(snapshot=False)
            learner = learner_of(folder, log)
    assert finished(learner) == wanted
    assert learner.values.state()["points"] == whole.values.state()["points"]
    assert learner.values.values() == whole.values.values()
    assert learner.join.state() == whole.join.state()
    learner.close()
    whole.close()
    assert (folder / "journals/000000000000.jsonl").read_bytes() == (
        tmp_path / "whole/journals/000000000000.jsonl"
    ).read_bytes()


def test_snapshots_do_not_change_learning(tmp_path: Path, log: SegmentLog) -> None:
    one, other = learner_of(tmp_path / "one", log), learner_of(tmp_path / "other", log)
    while other.step():
        other.snapshot()
        other.publish()
        other.keep()
    assert finished(one) == model_of(other.workspace)


def test_the_command_line_learns_the_same_model_from_the_joined_lines(
    tmp_path: Path, log: SegmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = learner_of(tmp_path / "loop", log)
    lines: list[bytes] = []
    read = Workspace.read

    def keep(self: Workspace, source: bytes, **given: object) -> object:
        lines.append(source)
        return read(self, source, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(Workspace, "read", keep)
    wanted = finished(learner)
    monkeypatch.undo()
    fresh = Workspace(configuration=CONFIGURATION)
    for block in fresh.read(b"".join(lines)):
        fresh.learn_block(block)
    assert model_of(fresh) == wanted


def test_a_published_model_does_not_change(
    tmp_path: Path, log: SegmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onlineauto.service.learning.learner.MOST_RECORDS", 200)
    learner = learner_of(tmp_path / "loop", log)
    learner.step()
    published = learner.publish()
    asked = decision("x", 0.0, user="ann")
    before = published.predictor.predict(asked).tolist()
    finished(learner)
    assert published.predictor.predict(asked).tolist() == before
    assert learner.publish().name > published.name


def test_values_of_policies_are_those_of_the_rewards(tmp_path: Path, log: SegmentLog) -> None:
    learner = learner_of(tmp_path / "loop", log)
    finished(learner)
    found = {value.policy: value for value in learner.values.values()}
    assert all(value.events == 400 for value in found.values())
    assert found["live"].effective_sample_size == 400
    assert found["model"].reward is not None
    assert found["live"].reward is not None
    assert found["model"].reward > found["live"].reward + 0.02  # of a log that was drawn at random
    assert all(value.low is None or value.low <= (value.reward or 0) for value in found.values())


def test_learning_continues_from_a_model_of_the_history(tmp_path: Path, log: SegmentLog) -> None:
    folder = tmp_path / "loop"
    log.append([record("settings", 1500.0, Settings={"reward_wait": 30.0, "control": 0.3})])
    log.sync()
    learner = learner_of(folder, log)
    finished(learner)
    name = learner.keep()
    kept = model_of(learner.workspace)
    log.append([decision("later", 2000.0), reward("later", 2000.5, 1.0), record("tick", 2030.0)])
    log.append([record("model", 2031.0, Model=name)])
    log.sync()
    assert finished(learner) == kept
    killed = learner_of(folder, log)
    assert killed.experiment.epoch == learner.experiment.epoch == 1
    assert killed.experiment.report() == learner.experiment.report()
    assert learner.name not in ("000000000401", name)  # so it is published, also if nothing more is learnt
    log.append([decision("last", 2032.0), reward("last", 2032.5, 1.0), record("tick", 2062.0)])
    log.sync()
    wanted = finished(learner)
    assert learner.learnt == 402
    again = learner_of(tmp_path / "again", log)
    shutil.copytree(folder / "models", tmp_path / "again/models", dirs_exist_ok=True)
    assert finished(again) == wanted
    assert again.name == learner.name
    learner.models.path(name).unlink()
    killed = learner_of(folder, log)  # its snapshot was written when the model was used
    assert (finished(killed), killed.name) == (wanted, learner.name)
    again.snapshot()
    assert learner_of(tmp_path / "again", log).name == learner.name


def test_logging_only_learns_nothing(tmp_path: Path, log: SegmentLog) -> None:
    learner = learner_of(tmp_path / "loop", log)
    learner.join.settings = JoinSettings(reward_wait=30.0, mode="logging-only")
    finished(learner)
    assert learner.learnt == 0
    assert learner.join.counts.joined + learner.join.counts.defaulted == 400


def test_decisions_of_the_baseline_count_as_such_in_any_later_mode(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log")
    online = msgspec.to_builtins(SETTINGS)
    log.append([record("settings", 0.0, Settings={**online, "mode": "apprentice"})])
    log.append([decision(f"b{number}", number, mode="apprentice") for number in range(20)])
    log.append([record("settings", 20.0, Settings=online), decision("m", 21.0), reward("m", 21.0, 1.0)])
    log.append([reward(f"b{number}", 22.0, 1.0) for number in range(15)])
    log.append([record("settings", 90.0, Settings={**online, "mode": "logging-only"})])
    log.sync()
    learner = learner_of(tmp_path / "loop", log)
    finished(learner)
    assert learner.learnt == 21  # those that had waited before the service began to log only are among them
    assert learner.values.agreement.events == 20
    assert 0 < learner.values.agreement.agreed < 20
    assert learner.values.values()[0].events == 1
    assert len(list(join_log_lines(log, explored=True))) == 1
    log.close()


def test_decisions_that_cannot_be_learnt_are_counted(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log")
    broken = record("rank", 0.0, EventId="b", a=[1], p=[1.0], c={"_multi": []})
    twice = record(
        "rank",
        0.0,
        EventId="t",
        a=[1],
        p=[1.0],
        c={"_multi": [{"_label_cost": 1, "_label_probability": 1}] * 2},
    )
    good = decision("g", 0.0)
    log.append([broken, twice, good, *(reward(each, 1.0, 1.0) for each in "btg"), record("tick", 30.0)])
    log.sync()
    learner = learner_of(tmp_path / "loop", log)
    finished(learner)
    assert (learner.learnt, learner.faulty) == (1, 2)


def test_wide_decisions_are_learnt_and_counted(tmp_path: Path, log: SegmentLog) -> None:
    (tmp_path / "loop").mkdir()
    narrow = REGISTRY.parse(CONFIGURATION.command() + " --max_crossed 0")
    learner = LogLearner(tmp_path / "loop", log, narrow, settings=SETTINGS)
    _OPEN.append(learner)
    finished(learner)
    assert learner.faulty == 0
    assert 0 < board_of(learner).too_wide <= learner.learnt


def test_decisions_with_absurd_numbers_are_counted(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log")
    for number in range(30):
        size = 1e25 if number == 20 else 1.5
        log.append([decision(f"e{number}", number, age=size), reward(f"e{number}", number, 1.0)])
    log.append([record("tick", 60.0)])
    log.sync()
    learner = learner_of(tmp_path / "loop", log)
    finished(learner)
    assert (learner.faulty, board_of(learner).outliers) == (0, 1)
    log.close()


def test_other_options_and_other_logs_are_refused(tmp_path: Path, log: SegmentLog) -> None:
    learner = learner_of(tmp_path / "loop", log)
    finished(learner)
    learner.close()
    other = REGISTRY.parse("--cb_explore_adf --automl 8 --dsjson --bit_precision 12")
    with pytest.raises(OptionError, match="automl"):
        LogLearner(tmp_path / "loop", log, other)
    with pytest.raises(InputError, match="the log is of another service"):
        LogLearner(tmp_path / "loop", SegmentLog(tmp_path / "empty"), CONFIGURATION)


def test_journals_can_be_read(tmp_path: Path, log: SegmentLog) -> None:
    learner = learner_of(tmp_path / "loop", log)
    finished(learner)
    learner.close()
    with (tmp_path / "loop/journals/000000000000.jsonl").open("rb") as file:
        assert len(list(read_journal(file))) > 2


def test_actions_are_known_by_their_tags() -> None:
    assert all(f'"_tag":"{topic}"'.encode() in decision("e", 0.0) for topic in TOPICS)


@pytest.mark.parametrize("poison", [-1e25, 2.9e38])
def test_values_recover_from_a_reward_that_is_absurd(tmp_path: Path, poison: float) -> None:
    log, draw = SegmentLog(tmp_path / "log"), Random(1)
    for number in range(1500):
        earned = poison if number == 50 else float(draw.random() < 0.8)
        log.append([decision(f"e{number}", number), reward(f"e{number}", number, earned)])
    log.sync()
    learner = learner_of(tmp_path / "loop", log)
    finished(learner)
    assert learner.join.counts.clipped == 1
    live = learner.values.values()[0]
    assert live.reward == pytest.approx(0.8, abs=0.03)
    assert live.low is not None
    assert live.high is not None
    assert -1.0 < live.low < 0.8 < live.high < 3.0
    log.close()


def taken(segments: Segments, user: str, action: int, value: float, *, best: int = 0) -> None:
    """Count a decision of three actions, of which `best` has the highest probability."""
    ranked = [action + 1, *(number + 1 for number in range(3) if number != action)]
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
    assert [summary.name for summary in segments.summaries()] == names
    assert {summary.action for summary in segments.summaries()} <= {"0"}


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
    assert [(summary.name, summary.decisions) for summary in learner.segments.summaries()] == [
        ("user: tom", 60)
    ]
    learner.close()
    again = LogLearner(tmp_path, log, CONFIGURATION)
    assert again.segments.summaries() == learner.segments.summaries()
    again.close(snapshot=False)
    log.close()
