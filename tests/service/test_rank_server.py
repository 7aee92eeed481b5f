"""Rank servers: each decision and reward reaches the learner once, and each model the rank servers."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest

from onlineauto.automl.decisions import PredictWith
from onlineauto.errors import InputError
from onlineauto.service.http.app import _follow
from onlineauto.service.join.join import MOST_SOURCES, Join, read_decision
from onlineauto.service.learning.experiment import CONTROL, arm_of, bucket_of
from onlineauto.service.log.segment_log import read_record, sealed
from onlineauto.service.loop.folder import FolderCopy, restore_folder
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.loop.rank_server import HttpUpstream, LearnerAwayError, RankServer
from onlineauto.service.loop.slots import SlotRequest, SlotsRankRequest, rank_slots, reward_slots
from onlineauto.service.options import Limits
from onlineauto.service.refused import RefusedError
from tests.service.serving import Service
from tests.service.traffic import BEGIN, CONFIGURATION, TOPICS, decision, join_of, rank_request
from tests.waiting import until

pytestmark = pytest.mark.lane("ci")


class Beside(HttpUpstream):
    """A learner in the same process; it loses requests or answers now and then."""

    def __init__(self, loop: Loop, *, loses: float = 0.0) -> None:
        self.loop, self.loses, self.draw = loop, loses, Random(1)

    def model(self, known: str) -> tuple[str, bytes] | None:
        self._lose()
        name, content = self.loop.model()
        return None if name == known else (name, content)

    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self.loop.join.settings)
        return found

    def take(self, source: str, position: int, content: bytes) -> int:
        self._lose()
        wanted = self.loop.take_over(source, position, content, ignore_completion)
        self._lose()
        return wanted

    def _lose(self) -> None:
        if self.draw.random() < self.loses:
            raise InputError("the learner is away: lost")


@pytest.fixture
def loop(open_loop: Callable[..., Loop]) -> Loop:
    return open_loop(settings={"reward_wait": 100.0, "learn_at": "reward"}, every=Every(publish=0.0))


@pytest.fixture
def follower(tmp_path: Path, loop: Loop) -> Iterator[RankServer]:
    """Yield a rank server that follows the loop."""
    server = RankServer(tmp_path / "rank", Beside(loop))
    yield server
    server.close()


def settled(loop: Loop) -> None:
    until(lambda: not loop.unwritten and not loop.learn())


def test_decisions_of_rank_servers_are_learnt_once(tmp_path: Path, loop: Loop) -> None:
    upstreams = [Beside(loop) for _ in range(2)]
    followers = [RankServer(tmp_path / f"rank{n}", each) for n, each in enumerate(upstreams)]
    for upstream in upstreams:
        upstream.loses = 0.4
    for number in range(60):
        here, there = followers[number % 2], followers[(number + number // 7) % 2]
        answer = here.rank(rank_request(f"e{number}"), ignore_completion)
        there.reward(
            answer.event_id, float(answer.actions[0]), ignore_completion
        )  # perhaps on the other server
        if number % 5 == 0:
            for each in followers:
                each.follow()
    for each in followers:
        until(lambda: (each.follow(), each.failed is None and not each.behind)[1])  # noqa: B023
    settled(loop)
    counts = loop.join.counts
    assert (counts.ranked, counts.joined, counts.rewarded, loop.learner.learnt) == (60, 60, 60, 60)
    for upstream in upstreams:
        upstream.loses = 0.0
    for each in followers:
        each.follow()
        assert each.published.name == f"{60:012d}"
        each.close()


def test_a_restarted_rank_server_continues_its_log(tmp_path: Path, loop: Loop) -> None:
    for begin in (0, 10):
        follower = RankServer(tmp_path / "rank", Beside(loop))
        for number in range(begin, begin + 10):
            follower.rank(rank_request(f"e{number}"), ignore_completion)
        if begin:
            assert follower.rank(rank_request("e3"), ignore_completion).ids  # as it was answered before
        follower.close()
    settled(loop)
    assert loop.join.counts.ranked == 20
    assert list(loop.join.sources) == [(tmp_path / "rank/source").read_text()]


def test_the_settings_are_those_of_the_learner(loop: Loop, follower: RankServer) -> None:
    assert follower.join.settings == loop.join.settings
    loop.change({"mode": "apprentice"}, ignore_completion)
    loop.rank(rank_request("x"), ignore_completion)
    loop.reward("x", 1.0, ignore_completion)
    settled(loop)
    follower.follow()
    assert follower.rank(rank_request("y"), ignore_completion).probabilities == [1.0, 0.0, 0.0]


def test_slots_arms_and_metrics_of_a_rank_server_are_those_of_its_learner(tmp_path: Path, loop: Loop) -> None:
    changes = {"control": 0.5, "guardrails": ["basket"], "aggregation": "first"}
    loop.change(changes, ignore_completion)
    follower = RankServer(tmp_path / "rank", Beside(loop))
    event = rank_request("e")
    asked = SlotsRankRequest(
        "s", event.context, event.ids, event.actions, [SlotRequest("top"), SlotRequest("side")], unit="tom"
    )
    answers = rank_slots(follower, asked, ignore_completion)
    assert [each.event_id for each in answers] == ["s#top", "s#side"]
    reward_slots(follower, "s", [("top", 1.0), ("side", 0.0)], ignore_completion)
    arms = Counter[str]()
    for number in range(200):
        unit = f"user{number}"
        arm = arm_of(bucket_of("default", unit), loop.join.settings)
        answer = follower.rank(rank_request(f"e{number}")._replace(unit=unit), ignore_completion)
        assert arm != CONTROL or answer.ids[0] == TOPICS[0]
        follower.reward(f"e{number}", 1.0, ignore_completion)
        follower.metric(f"e{number}", "basket", 2.0, ignore_completion)
        arms[arm] += 1
    arms[arm_of(bucket_of("default", "tom"), loop.join.settings)] += 2
    follower.close()
    settled(loop)
    report = loop.learner.experiment.report()
    assert {each.name: each.decisions for each in report.arms} == arms
    assert report.unmatched == 0
    assert loop.learner.held_out == arms[CONTROL]
    basket = next(guardrail for guardrail in report.guardrails if guardrail.quantity == "basket")
    assert basket.mean == pytest.approx(2.0, abs=0.05)


def test_a_metric_that_is_sent_to_several_servers_counts_once(tmp_path: Path, loop: Loop) -> None:
    loop.change({"control": 0.5, "guardrails": ["basket"]}, ignore_completion)
    followers = [RankServer(tmp_path / f"rank{n}", Beside(loop)) for n in range(2)]
    followers[0].rank(rank_request("e"), ignore_completion)
    for server in (followers[0], loop, *followers):  # an answer was lost, and a proxy asks another server
        server.metric("e", "basket", 2.0, ignore_completion, key="k")
        for each in followers:
            each.follow()
    for each in followers:
        each.close()
    loop.reward("e", 1.0, ignore_completion)  # the metric counts with its decision
    settled(loop)
    sums = loop.learner.experiment.state()["whole"][1]
    assert sums["basket"][0].sum() == 2.0


def test_a_rank_server_ranks_with_the_ensemble_of_its_learner(tmp_path: Path, loop: Loop) -> None:
    for number in range(40):
        loop.rank(rank_request(f"e{number}", user=f"u{number % 4}"), ignore_completion)
        loop.reward(f"e{number}", float(number % 3 == 0), ignore_completion)
    settled(loop)
    workspace = loop.learner.workspace
    workspace.searching.live_configs.apply(PredictWith("ensemble", "loss"), workspace.learner.model)
    ensemble = workspace.searching.live_configs.arrays.ensemble
    ensemble.weights[0] = -9.0  # so it ranks otherwise than the champion
    follower = RankServer(tmp_path / "rank", Beside(loop))
    champion = workspace.fork(predict_with="champion").predictor()
    actions = [{"article": {topic: 1}} for topic in TOPICS]
    asked = [{"c": {"user": {f"u{number}": 1}, "_multi": actions}} for number in range(4)]
    events = [msgspec.json.encode(each) + b"\n" for each in asked]
    found, by_ensemble, by_champion = (
        [each.predict(event).tobytes() for event in events]
        for each in (follower.published.predictor, workspace.predictor(), champion)
    )
    assert found == by_ensemble
    assert found != by_champion
    follower.close()


def test_names_that_the_learner_knows_count_for_a_rank_server(tmp_path: Path, loop: Loop) -> None:
    loop.rank(rank_request("x"), ignore_completion)
    loop.reward("x", 1.0, ignore_completion)
    settled(loop)
    follower = RankServer(tmp_path / "rank", Beside(loop), limits=Limits(namespaces=2))
    assert follower.rank(rank_request("y"), ignore_completion).ids
    with pytest.raises(RefusedError, match="'made-up' is new, and 2 are known"):
        follower.rank(
            rank_request("z")._replace(context=[{"made-up": msgspec.Raw(b"{}")}]), ignore_completion
        )
    follower.close()


def test_a_learner_that_stops_learning_still_has_its_settings_followed(tmp_path: Path, loop: Loop) -> None:
    now = [time.time()]
    follower = RankServer(tmp_path / "rank", Beside(loop), clock=lambda: now[0])
    loop.change({"mode": "logging-only"}, ignore_completion)
    now[0] += 2.0
    follower.follow()
    assert follower.rank(rank_request("y"), ignore_completion).probabilities == [1.0, 0.0, 0.0]
    follower.close()


def test_records_beyond_the_known_position_are_refused(loop: Loop) -> None:
    with pytest.raises(RefusedError, match="known up to 0") as refused:
        loop.take_over("rank", 100, b"", ignore_completion)
    assert refused.value.status == 409
    with pytest.raises(InputError, match="checksum"):
        loop.take_over("rank", 0, b'{"Type":"rank"}\n', ignore_completion)


@pytest.mark.parametrize("rewarded", [True, False])
def test_records_are_taken_over_up_to_the_limit_of_pending_decisions(tmp_path: Path, rewarded: bool) -> None:
    settings = {"reward_wait": 100.0, "learn_at": "reward"}
    loop = Loop(tmp_path / "loop", CONFIGURATION, limits=Limits(pending=10), settings=settings)
    follower = RankServer(tmp_path / "rank", Beside(loop))
    for number in range(30):
        follower.rank(rank_request(f"e{number}"), ignore_completion)
        if rewarded:
            follower.reward(f"e{number}", 1.0, ignore_completion)
    until(lambda: not follower.unwritten)
    while follower.follow():
        pass
    assert loop.join.counts.ranked == (30 if rewarded else 10)
    if not rewarded:
        assert "10 decisions wait for their rewards" in str(follower.failed)
        for number in range(10):
            loop.reward(f"e{number}", 1.0, ignore_completion)
        while follower.follow():
            pass
        assert (loop.join.counts.ranked, loop.join.waiting) == (20, 10)
    else:
        assert (follower.failed, follower.behind, loop.join.waiting) == (None, 0, 0)
    follower.close()
    loop.close()


@pytest.mark.parametrize("away", [False, True])
def test_a_rank_server_restored_from_a_backup_loses_no_decision(
    tmp_path: Path, loop: Loop, away: bool
) -> None:
    folder, backup = tmp_path / "rank", tmp_path / "backup"
    for begin, end in ((0, 5), (5, 40), (100, 103), (103, 150)):
        if begin == 5:
            shutil.copytree(folder, backup)
        if begin == 100:
            shutil.rmtree(folder)
            shutil.copytree(backup, folder)
        follower = RankServer(folder, Away() if away and begin == 100 else Beside(loop))
        for number in range(begin, end):
            follower.rank(rank_request(f"e{number}"), ignore_completion)
        assert follower.behind >= 0
        follower.close()
    settled(loop)
    assert loop.join.counts.ranked == 40 + 50
    assert len(loop.join.sources) == 2


def test_decisions_of_a_rank_server_have_the_epoch_of_the_settings_and_the_model_that_made_them(
    loop: Loop, follower: RankServer
) -> None:

    def epoch_of(event_id: str) -> int:
        follower.rank(rank_request(event_id), ignore_completion)
        until(lambda: not follower.unwritten)
        packed = follower.join.find(event_id, follower.clock())
        assert packed is not None
        return read_record(follower.log.line_at(packed.position, packed.size)).epoch

    def followed() -> None:
        follower._agreed = 0.0
        assert follower.follow() or not follower.failed

    begin = epoch_of("a")
    loop.change({"mode": "apprentice"}, ignore_completion)
    loop.change({"reward_wait": 50.0}, ignore_completion)  # by whom is decided is as before
    loop.use_model(loop.keep_model(), ignore_completion)
    assert epoch_of("b") == begin  # it has heard of neither
    followed()
    assert epoch_of("c") == begin + 1  # the model is not replaced yet
    settled(loop)
    followed()
    assert epoch_of("d") == begin + 2 == loop.learner.experiment.epoch


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("how", ["sum", "mean", "first"])
def test_a_restored_rank_server_repeats_no_reward_and_no_decision(
    tmp_path: Path, how: str, away: bool
) -> None:
    """It goes on beyond the position that the learner knows, with records of other lengths."""
    loop = Loop(tmp_path / "loop", CONFIGURATION, settings={"reward_wait": 1000.0, "aggregation": how})
    folder, backup, made = tmp_path / "rank", tmp_path / "backup", 0
    for turn in range(6):
        if turn == 1:
            shutil.copytree(folder, backup)
        if turn in (2, 4):
            shutil.rmtree(folder)
            shutil.copytree(backup, folder)
        follower = RankServer(folder, Away() if away and turn in (2, 4) else Beside(loop))
        for number in range(15 if turn != 1 else 5):
            event_id = f"e{turn}-{number}" + "x" * turn
            made += follower.rank(rank_request(event_id), ignore_completion).event_id == event_id
            follower.reward(event_id, 1.0, ignore_completion)
            follower.reward(event_id, 2.0, ignore_completion)
        follower.close()
    settled(loop)
    counts = loop.join.counts
    assert counts.repeated == 0
    assert (counts.ranked, counts.rewarded) == (made, 2 * made)
    decisions = [read_decision(each) for _, each in loop.join._waiting.items()]
    assert {(each.rewards, each.value) for each in decisions} == {(1, 1.0) if how == "first" else (2, 3.0)}
    loop.close()


def test_a_rank_server_sends_a_restored_learner_again_what_it_lost(tmp_path: Path, loop: Loop) -> None:
    (tmp_path / "disk2").mkdir()
    copy, upstream = FolderCopy(loop.folder, loop.log, tmp_path / "disk2"), Beside(loop)
    follower = RankServer(tmp_path / "rank", upstream)
    for number in range(20):
        follower.rank(rank_request(f"e{number}"), ignore_completion)
        follower.reward(f"e{number}", 1.0, ignore_completion)
        if number in (9, 19):
            until(lambda: (follower.follow(), not follower.behind)[1])
            until(lambda: not loop.unwritten)
        if number == 9:
            copy.step()
    copy.close()
    restore_folder(tmp_path / "disk2", tmp_path / "again")
    upstream.loop = again = Loop(tmp_path / "again", CONFIGURATION)
    assert again.join.counts.ranked == 10
    follower.rank(rank_request("later"), ignore_completion)
    until(lambda: (follower.follow(), not follower.behind)[1])
    assert (again.join.counts.ranked, again.join.counts.rewarded) == (21, 20)
    follower.close()
    again.close()


def test_names_of_a_log_that_are_damaged_are_an_error(tmp_path: Path, loop: Loop) -> None:
    RankServer(tmp_path / "rank", Beside(loop)).close()
    for damaged in (b"name here", b"\xff\x00"):
        (tmp_path / "rank/source").write_bytes(damaged)
        with pytest.raises(InputError, match="source is damaged: restore it"):
            RankServer(tmp_path / "rank", Beside(loop))
    (tmp_path / "rank/source").write_bytes(b"")
    RankServer(tmp_path / "rank", Beside(loop)).close()


def test_silent_rank_servers_are_replaced_by_new_ones(tmp_path: Path) -> None:
    now = [1.7e9]

    def part(name: str) -> bytes:
        return decision(name, now[0] - BEGIN)

    loop = Loop(tmp_path / "loop", CONFIGURATION, clock=lambda: now[0])
    for number in range(MOST_SOURCES):
        now[0] += 1.0
        assert loop.take_over(f"rank{number}", 0, part(f"e{number}"), ignore_completion) > 0
    with pytest.raises(RefusedError, match="256 rank servers have sent records") as refused:
        loop.take_over("more", 0, part("more"), ignore_completion)
    assert (refused.value.status, refused.value.retry_after is not None) == (429, True)
    assert loop.take_over("rank0", 0, b"", ignore_completion) > 0  # the others go on
    for number in range(1000):  # as many restarts
        now[0] += 900.0
        known = loop.take_over("rank0", 0, b"", ignore_completion)
        loop.take_over("rank0", known, part(f"a{number}"), ignore_completion)
        if number >= 100:
            assert loop.take_over(f"restarted{number}", 0, part(f"b{number}"), ignore_completion) > 0
    assert len(loop.join.sources) == MOST_SOURCES
    assert "rank0" in loop.join.sources
    assert "rank1" not in loop.join.sources
    assert loop.join.counts.ranked == MOST_SOURCES + 1000 + 900
    with pytest.raises(RefusedError, match="may be learnt already: begin with another folder") as refused:
        loop.take_over("rank1", 0, decision("e1", 2.0 + 1.7e9 - BEGIN), ignore_completion)
    assert refused.value.status == 409
    again = Join.of(msgspec.msgpack.decode(msgspec.msgpack.encode(loop.join.state())))
    assert again.state() == loop.join.state()
    loop.close()


def test_rewards_that_cannot_wait_for_their_rank_are_counted_and_block_nothing(tmp_path: Path) -> None:
    settings = {"reward_wait": 9e4, "learn_at": "reward"}
    loop = Loop(tmp_path / "loop", CONFIGURATION, limits=Limits(pending=10, parts=3), settings=settings)
    follower = RankServer(tmp_path / "rank", Beside(loop))
    loop.rank(rank_request("here"), ignore_completion)
    for number in range(30):
        follower.reward(f"elsewhere{number}", 1.0, ignore_completion)
        follower.activate(f"later{number}", ignore_completion)
    for _ in range(8):
        follower.reward("elsewhere0", 1.0, ignore_completion)
    follower.reward("here", 1.0, ignore_completion)
    follower.rank(rank_request("e"), ignore_completion)
    until(lambda: not follower.unwritten)
    while follower.follow():
        pass
    assert (follower.failed, follower.behind) == (None, 0)
    counts = loop.join.counts
    assert loop.join.early == 10
    assert (counts.ranked, counts.joined, counts.rewarded) == (2, 1, 39)
    assert counts.dangling == 25 + 7
    with pytest.raises(
        RefusedError, match=r"10 rewards wait for their decisions.*--max_pending 10"
    ) as refused:
        loop.reward("one more", 1.0, ignore_completion)
    assert refused.value.status == 429
    loop.reward("e", 1.0, ignore_completion)  # of a decision that is there
    read = join_of(loop)
    assert (read.counts, read.early) == (loop.join.counts, 10)
    follower.close()
    loop.close()


def test_three_processes_share_one_model(tmp_path: Path) -> None:
    with Service(tmp_path / "loop", "--publish_every", "0.1") as learner:
        following = [Service(tmp_path / f"rank{n}", "--follow", learner.url, model=()) for n in range(2)]
        with following[0] as one, following[1] as other:
            draw = Random(3)
            with httpx.Client(timeout=30) as client:
                for number in range(200):
                    here, there = draw.choice([one, other]), draw.choice([one, other])
                    body = {
                        "event_id": f"e{number}",
                        "actions": {"a": {"x": {"one": 1}}, "b": {"x": {"two": 1}}},
                    }
                    answer = client.post(f"{here.url}/v1/rank", json=body).json()
                    reward = {"event_id": f"e{number}", "reward": float(answer["action"] == "b"), "key": "k"}
                    assert client.post(f"{there.url}/v1/reward", json=reward).status_code == 204
                until(lambda: client.get(f"{learner.url}/v1/status").json()["learnt"] == 200)
                for each in (one, other):
                    asked = f"{each.url}/v1/status"
                    until(lambda: client.get(asked).json()["model"] == f"{200:012d}")  # noqa: B023
                    assert client.get(asked).json()["behind_bytes"] == 0
                status = client.get(f"{learner.url}/v1/status").json()
                assert (status["ranked"], status["joined"], status["repeated"]) == (200, 200, 0)
                learner.kill()
                alone = client.post(f"{one.url}/v1/rank", json={"actions": {"a": {"x": {"one": 1}}}})
                assert alone.status_code == 200
                until(lambda: client.get(f"{one.url}/readyz").text.startswith("stale"))
                assert "behind_bytes" in client.get(f"{one.url}/metrics").text


def test_a_rank_server_that_starts_first_waits_for_its_learner(tmp_path: Path) -> None:
    learner = Service(tmp_path / "loop")
    rank_server = Service(tmp_path / "rank", "--follow", learner.url, model=()).start()
    state = "a rank server without a model; the learner is away: [Errno 111] Connection refused"
    body = {"actions": {"a": {"x": {"one": 1}}}}
    with ExitStack() as ending:
        ending.callback(rank_server.kill)  # if an assertion fails
        until(lambda: _text_of(f"{rank_server.url}/readyz").startswith(f"no: {state}"))
        assert httpx.get(f"{rank_server.url}/readyz").status_code == 503
        assert httpx.get(f"{rank_server.url}/healthz").status_code == 200
        refused = httpx.post(f"{rank_server.url}/v1/rank", json=body)
        assert (refused.status_code, state in refused.json()["error"]["message"]) == (503, True)
        until(lambda: "onlineauto_learner_failures_total 3" in _text_of(f"{rank_server.url}/metrics"))
        with learner:
            rank_server.wait()
            assert httpx.post(f"{rank_server.url}/v1/rank", json=body).status_code == 200
            assert rank_server.stop() == 0
    lines = [msgspec.json.decode(line) for line in rank_server.log.read_bytes().splitlines()]
    events = [(line["event"], line.get("away")) for line in lines]
    assert events == [
        ("starting", None),
        ("learner", True),
        ("learner", False),
        ("serving", None),
        ("stopped", None),
    ]
    assert lines[2]["failures"] >= 3


def test_a_signal_ends_a_rank_server_that_waits_for_its_learner(tmp_path: Path) -> None:
    rank_server = Service(tmp_path / "rank", "--follow", "http://127.0.0.1:9", model=()).start()
    until(lambda: _text_of(f"{rank_server.url}/healthz").startswith("ok: a rank server without a model"))
    assert rank_server.stop() == 0


def _text_of(address: str) -> str:
    try:
        return httpx.get(address).text
    except httpx.TransportError:
        return ""


@pytest.mark.parametrize(
    ("status", "is_away"), [(401, False), (403, False), (404, False), (429, True), (500, True), (503, True)]
)
def test_a_rank_server_without_a_model_waits_unless_it_is_rejected(
    tmp_path: Path, status: int, is_away: bool
) -> None:
    upstream = HttpUpstream("http://learner", transport=httpx.MockTransport(lambda _: httpx.Response(status)))
    assert bool(upstream.why_away()) == is_away
    for _ in range(2):  # an attempt that fails releases the folder
        with pytest.raises(InputError, match=rf"\({status}\).*has no model either") as raised:
            RankServer(tmp_path / "rank", upstream)
        assert isinstance(raised.value, LearnerAwayError) == is_away
    upstream.close()


def test_a_learner_that_is_away_is_named() -> None:
    upstream = HttpUpstream("http://127.0.0.1:9")
    with pytest.raises(InputError, match="the learner is away"):
        upstream.settings()
    upstream.close()
    refusing = httpx.MockTransport(lambda _: httpx.Response(403, text="not for admin"))
    upstream = HttpUpstream("http://learner", transport=refusing)
    with pytest.raises(InputError, match=r"rejects GET /v1/model \(403\): not for admin"):
        upstream.model("")
    upstream.close()


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b'{"settings":3}', b'{"position":"x"}', b"\xff"])
def test_an_answer_of_another_server_counts_as_an_absent_learner(
    answer: bytes, tmp_path: Path, loop: Loop
) -> None:
    started = RankServer(tmp_path / "rank", Beside(loop))
    name = started.published.name
    started.close()
    proxy = httpx.MockTransport(lambda _: httpx.Response(200, content=answer))
    upstream = HttpUpstream("http://proxy", transport=proxy)
    for call in (upstream.settings, lambda: upstream.take("rank", 0, b"")):
        with pytest.raises(InputError, match=r"what answers at http://proxy/v1/.* is no learner"):
            call()
    again = RankServer(tmp_path / "rank", upstream)
    assert again.published.name == name
    assert again.rank(rank_request("e1"), ignore_completion).ids
    again.close()


def test_a_learner_that_cannot_be_followed_is_logged_with_its_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop, failed = threading.Event(), InputError("the learner is away: refused")
    server: Any = SimpleNamespace(follow=stop.set, failed=failed, behind=0)
    _follow(server, stop)
    assert caplog.messages == ["the learner cannot be followed: the learner is away: refused"]


def test_taken_over_records_name_their_source(tmp_path: Path, loop: Loop) -> None:
    follower = RankServer(tmp_path / "rank", Beside(loop))
    follower.rank(rank_request("e"), ignore_completion)
    follower.close()
    settled(loop)
    records = [read_record(line) for _, line in loop.log.lines(0)]
    assert [record.source for record in records if record.kind == "rank"] == [follower.source]


class Away(HttpUpstream):
    """A learner that is away."""

    def __init__(self) -> None: ...

    def settings(self) -> dict[str, Any]:
        raise InputError("the learner is away: nobody listens")

    def model(self, known: str) -> tuple[str, bytes] | None:
        raise InputError(f"the learner is away: {known}")

    def take(self, source: str, position: int, content: bytes) -> int:
        raise InputError(f"the learner is away: {source} {position} {len(content)}")


def test_a_rank_server_starts_while_the_learner_is_away(tmp_path: Path, loop: Loop) -> None:
    with pytest.raises(InputError, match=r"the learner is away.*has no model either"):
        RankServer(tmp_path / "rank", Away())
    for number in range(20):
        loop.rank(rank_request(f"x{number}"), ignore_completion)
        loop.reward(f"x{number}", 1.0, ignore_completion)
    loop.change({"default_reward": 0.25}, ignore_completion)
    settled(loop)
    follower = RankServer(tmp_path / "rank", Beside(loop))
    follower.rank(rank_request("before"), ignore_completion)
    follower.close()
    again = RankServer(tmp_path / "rank", Away())
    assert again.published.name == follower.published.name == f"{20:012d}"
    assert again.join.settings.default_reward == 0.25
    assert again.rank(rank_request("before"), ignore_completion).event_id == "before"
    again.rank(rank_request("while away"), ignore_completion)
    assert not again.follow()
    assert "nobody listens" in str(again.failed) or "away" in str(again.failed)
    again._upstream = Beside(loop)  # it is there again
    until(lambda: (again.follow(), again.failed is None and not again.behind)[1])
    settled(loop)
    assert loop.join.counts.ranked == 22
    again.close()


def test_an_unreadable_record_is_skipped_by_a_rank_server(tmp_path: Path, loop: Loop) -> None:
    follower = RankServer(tmp_path / "rank", Beside(loop))
    follower.rank(rank_request("before"), ignore_completion)
    until(lambda: not follower.unwritten)
    bad = sealed(
        b'{"Type":"reward","EventId":"e1","RewardValue":"a word where a number belongs, and no time"}'
    )
    follower._commit.submit(bad, ignore_completion)
    follower._commit.submit(b"short\n", ignore_completion)  # is shorter than what is sent in its place
    follower.rank(rank_request("goes with it"), ignore_completion)
    follower.rank(rank_request("after"), ignore_completion)
    until(lambda: not follower.unwritten)
    until(lambda: (follower.follow(), not follower.behind)[1])
    settled(loop)
    assert loop.join.counts.ranked == 2
    assert (loop.learner.skipped, loop.failed) == (0, None)
    follower.close()
    again = RankServer(tmp_path / "rank", Beside(loop))
    assert again.join.counts.ranked == 3
    again.close()
