"""``Front``: its table in memory is the join of its log, and its fast paths decide like its slow ones."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import OptionError
from onlineauto.service.http.wire import Rank
from onlineauto.service.loop.front import SteadyClock, ignore_completion
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.options import Limits
from onlineauto.service.ranking import RankRequest, _encode_checked, _encode_simple, context_of
from onlineauto.service.refused import RefusedError
from tests.service.traffic import join_of
from tests.waiting import PATIENCE, until

DECODER = msgspec.json.Decoder(Rank)
SMALL = "--cb_explore_adf --bit_precision 10"
NAMES = st.sampled_from(["user", "topic", "été", 'a"b', "b\\n"])
VALUES = st.one_of(
    st.integers(),
    st.text(max_size=5),
    st.dictionaries(st.text("xyz\n", max_size=3), st.integers(), max_size=2),
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)


def rank_request(
    event_id: str, context: object = None, *, deferred: bool = False, bad: bool = False
) -> RankRequest:
    actions = {} if bad else {"a": {"topic": {"art": 1}}, "b": {"topic": {"sports": 1}}}
    asked = {"event_id": event_id, "context": context or {}, "actions": actions, "deferred": deferred}
    return DECODER.decode(json.dumps(asked)).rank_request(str)


@given(OBJECTS, st.lists(OBJECTS, min_size=1, max_size=3), st.sampled_from([None, 2]))
def test_requests_of_known_and_new_namespaces_have_the_same_text(
    context: dict[str, object], actions: list[dict[str, object]], indent: int | None
) -> None:
    asked = DECODER.decode(json.dumps({"context": context, "actions": actions}, indent=indent)).rank_request(
        str
    )
    asked = asked._replace(event_id="e")
    known = {"user", "topic", "été", 'a"b', "b\\n"}
    assert context_of(asked, Limits(), known) == context_of(asked, Limits(), set())
    text, met = _encode_checked(asked, Limits(), set()), set[str]()
    assert _encode_simple(asked, Limits(), known) == text
    _encode_checked(asked, Limits(), met)
    assert _encode_simple(asked, Limits(), met) == text
    assert _encode_simple(asked, Limits(), set()) == (b"" if met else text)


def test_ranks_of_one_batch_equal_ranks_one_by_one(
    open_loop: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1.7e9]
    written = threading.Semaphore(0)

    def done(error: Exception | None) -> None:
        assert error is None
        written.release()

    loop = open_loop(
        SMALL,
        settings={"reward_wait": 50.0},
        clock=lambda: now[0],
    )
    turn = [
        rank_request("e1"),
        rank_request("e2", deferred=True),
        rank_request("", bad=True),
        rank_request("e1"),
        rank_request("e3"),
    ]
    go_on, sync = threading.Event(), loop.log.sync

    def held() -> None:
        assert go_on.wait(PATIENCE)
        sync()

    with monkeypatch.context() as changed, loop.together():
        changed.setattr(loop.log, "sync", held)  # the disk has none of them before the last is decided
        found = loop.rank_all([(each, done) for each in turn])
        go_on.set()
    assert [isinstance(each, RefusedError) for each in found] == [False, False, True, True, False]
    with pytest.raises(RefusedError, match="no actions"):
        loop.rank(rank_request("e4", bad=True), done)
    for _ in range(3):
        assert written.acquire(timeout=PATIENCE)
    alone = [loop.rank(rank_request(name), done) for name in ("e1", "e3")]
    assert alone == [found[0], found[4]]
    now[0] += 0.1234567
    loop.reward("e1", 1.0, done, key="k")
    loop.activate("e2", done)
    now[0] += 49.9
    loop.rank(rank_request("e5"), done)
    for _ in range(5):
        assert written.acquire(timeout=PATIENCE)
    assert join_of(loop).state() == loop.join.state()


def test_a_clock_that_is_set_does_not_end_decisions_early(
    open_loop: Callable[..., Loop], caplog: pytest.LogCaptureFixture
) -> None:
    now, years = [1.7e9], 10 * 365 * 86400.0

    def opened() -> Loop:
        return open_loop(SMALL, settings={"reward_wait": 50.0}, clock=lambda: now[0])

    loop = opened()
    ended = 0
    for turn, jump in enumerate((years, -years, -86400.0, 86400.0, 1e12, -1e12)):
        loop.rank(rank_request(f"before{turn}"), ignore_completion)
        now[0] += jump
        loop.tick()
        loop.rank(rank_request(f"after{turn}"), ignore_completion)
        assert loop.join.waiting == 2
        if turn % 2:
            loop = opened()
            assert loop.join.waiting == 2
        for _ in range(30):
            now[0] += 2.0
            loop.tick()
        ended += 2
        assert (loop.join.waiting, loop.join.counts.defaulted) == (0, ended)
    assert "the clock has jumped" in caplog.text
    until(lambda: (loop.learn(), loop.learner.learnt == ended)[1])
    assert (loop.learner.learnt, loop.learner.skipped) == (ended, 0)
    assert loop.learner.waited / ended <= 60.0


@pytest.mark.parametrize("days", [1.5, 3.0, 60.0])
def test_the_join_of_an_idle_service_follows_its_clock(
    open_loop: Callable[..., Loop], days: float, caplog: pytest.LogCaptureFixture
) -> None:
    now = [1.7e9]
    loop = open_loop(
        SMALL,
        settings={"reward_wait": 50.0},
        clock=lambda: now[0],
    )
    loop.rank(rank_request("e"), ignore_completion)
    loop.reward("e", 1.0, ignore_completion)
    loop.rank(rank_request("waits"), ignore_completion)
    loop.reward("early", 1.0, ignore_completion)
    before, now[0] = loop.join.now, now[0] + days * 86400.0
    other = {"user": {"other": 1}}
    loop.rank(rank_request("e", other), ignore_completion)  # the id is free again
    loop.rank(rank_request("waits", other), ignore_completion)
    assert loop.join.now - before == pytest.approx(days * 86400.0, abs=1.0)
    counts = loop.join.counts
    assert (counts.ranked, counts.joined, counts.defaulted, counts.dangling) == (4, 1, 1, 1)
    assert (counts.clock_jumps, counts.repeated) == (0, 0)
    for _ in range(int(days * 24)):  # and nothing happens at all
        now[0] += 3600.0
        loop.tick()
    loop = open_loop(SMALL, clock=lambda: now[0])
    loop.rank(rank_request("after"), ignore_completion)
    assert (loop.join.counts.defaulted, loop.join.counts.clock_jumps) == (3, 0)
    assert "jumped" not in caplog.text
    assert loop.log.end < 12_000 + 400 * days
    assert join_of(loop).state() == loop.join.state()


def test_a_repeated_rank_must_equal_the_first_request(open_loop: Callable[..., Loop]) -> None:
    loop = open_loop(SMALL)
    one, all_out = rank_request("e"), frozenset({"a"})
    asked = {
        "plain": one,
        "other features": one._replace(context=[{"user": msgspec.Raw(b'{"x":1}')}]),
        "excluded": one._replace(excluded=all_out),
        "the other is excluded": one._replace(excluded=frozenset({"b"})),
        "deferred": one._replace(deferred=True),
        "both": one._replace(deferred=True, excluded=all_out),
    }
    for mode in ("online", "apprentice"):
        loop.change({"mode": mode}, ignore_completion)
        for first, before in asked.items():
            names = {name: each._replace(event_id=f"{mode} {first}") for name, each in asked.items()}
            answer = loop.rank(names[first], ignore_completion)
            until(lambda: not loop.unwritten)
            for name, again in names.items():
                if name == first:
                    assert loop.rank(again, ignore_completion) == answer
                    continue
                with pytest.raises(RefusedError, match="was ranked with other") as refused:
                    loop.rank(again, ignore_completion)
                assert refused.value.status == 409
            unknown = names[first]._replace(excluded=before.excluded | {"nobody"})
            assert (
                loop.rank(unknown, ignore_completion) == answer
            )  # an id that no action has excludes nothing


def test_a_reward_must_be_in_the_range_of_its_decision(open_loop: Callable[..., Loop]) -> None:
    loop = open_loop(
        SMALL,
        settings={"reward_range": (0.0, 1.0), "learn_at": "reward"},
    )
    loop.rank(rank_request("old"), ignore_completion)
    loop.change({"reward_range": (0.0, 10.0)}, ignore_completion)
    loop.rank(rank_request("new"), ignore_completion)
    with pytest.raises(RefusedError, match="not within the reward_range of 0 to 1") as refused:
        loop.reward("old", 5.0, ignore_completion)
    assert refused.value.status == 422
    loop.reward("new", 5.0, ignore_completion)
    loop.reward("old", 0.5, ignore_completion)
    assert (loop.join.counts.joined, loop.join.counts.clipped) == (2, 0)


def test_a_repeated_rank_whose_record_is_damaged_is_refused(open_loop: Callable[..., Loop]) -> None:
    loop = open_loop(SMALL)
    loop.rank(rank_request("e"), ignore_completion)
    until(lambda: not loop.unwritten)
    (path,) = (loop.folder / "log").iterdir()
    at = path.read_bytes().index(b'"p":[0.5')
    with path.open("r+b") as file:
        file.seek(at + 5)
        file.write(b"1.")
    with pytest.raises(RefusedError, match="no longer has its answer") as refused:
        loop.rank(rank_request("e"), ignore_completion)
    assert refused.value.status == 409


def test_the_clock_of_a_process_cannot_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    lead, real = 0.0, time.time
    clock = SteadyClock()
    monkeypatch.setattr(time, "time", lambda: real() + lead)
    before = clock()
    for lead in (3.2e8, -86400.0):
        assert 0.0 <= clock() - before < 60.0
        assert abs(clock.lead - lead) < 1.0
    lead = 0.0
    assert abs(clock() - real()) < 1.0


@pytest.mark.parametrize(("rewarded", "learn_at"), [(0, "wait"), (2, "wait"), (1, "reward")])
def test_fifty_hours_of_traffic_stay_within_the_limits(
    open_loop: Callable[..., Loop], rewarded: int, learn_at: str
) -> None:
    """50 waits of traffic, with limits in the ratio of the defaults to 2,000 a second for an hour."""
    rate, wait = 4.0, 36.0
    pending = int(Limits().pending / (2000 * 3600) * rate * wait)
    now = [1.7e9]
    loop = open_loop(
        SMALL,
        settings={"reward_wait": wait, "max_finished": pending // 8, "learn_at": learn_at},
        limits=Limits(pending=pending),
        clock=lambda: now[0],
    )
    with_features = rank_request("")
    for number in range(int(50 * wait * rate)):
        now[0] += 1 / rate
        if loop.queued > 5000:
            until(lambda: loop.queued < 1000)
        loop.rank(with_features._replace(event_id=f"e{number}"), ignore_completion)
        if rewarded and number % rewarded == 0:
            loop.reward(f"e{number}", 1.0, ignore_completion)
        assert loop.join.waiting <= rate * wait + 1
        assert loop.join.finished <= pending // 8
    counts, waiting = loop.join.counts, loop.join.waiting if learn_at == "wait" else 0
    assert counts.ranked == 50 * wait * rate
    assert counts.joined == ((counts.ranked - waiting) // rewarded if rewarded else 0)
    assert counts.joined + counts.defaulted + loop.join.waiting == counts.ranked


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_missing_options_of_the_model_are_those_of_the_log(
    open_loop: Callable[..., Loop], tmp_path: Path, has_snapshot: bool
) -> None:
    def learnt(options: str) -> Loop:
        loop = open_loop(options, settings={"learn_at": "reward"}, every=Every(publish=0.0))
        while loop.learn():
            pass
        return loop

    loop = learnt("--cb_explore_adf --bit_precision 12 --automl 4")
    for number in range(60):
        loop.rank(rank_request(f"e{number}"), ignore_completion)
        loop.reward(f"e{number}", float(number % 3 == 0), ignore_completion)
    until(lambda: not loop.unwritten)
    while loop.learn():
        pass
    options, wanted = loop.join.settings.options, loop.model(learns=True)
    assert "--automl 4" in options
    assert len(loop.board.live_configs) > 1
    snapshot, journal = tmp_path / "loop/snapshot.oam", tmp_path / "loop/journals/000000000000.jsonl"
    loop.close()
    journal_bytes = journal.read_bytes()
    if not has_snapshot:
        snapshot.unlink()
    with pytest.raises(OptionError, match=r"was made with --automl 4; give --automl 4"):
        open_loop("--cb_explore_adf --automl 8")
    again = learnt("--cb_explore_adf")
    assert again.join.settings.options == options
    assert again.model(learns=True) == wanted
    again.close()
    assert journal.read_bytes() == journal_bytes


def test_an_option_that_was_given_later_is_that_of_the_log_from_then_on(
    open_loop: Callable[..., Loop], tmp_path: Path
) -> None:
    open_loop("--cb_explore_adf --bit_precision 12").close()
    snapshot = (tmp_path / "loop/snapshot.oam").read_bytes()
    open_loop("--cb_explore_adf --epsilon 0.3").close()
    (tmp_path / "loop/snapshot.oam").write_bytes(snapshot)  # the process was killed before its next snapshot
    loop = open_loop("--cb_explore_adf")
    assert loop.learner.workspace.configuration.get("epsilon") == 0.3
    assert "--epsilon 0.3" in loop.join.settings.options


def test_invalid_settings_leave_no_new_folder(open_loop: Callable[..., Loop], tmp_path: Path) -> None:
    for settings in ({"reward_wait": 1e9}, {"reward_range": (1.0, 0.0)}, {"budget": 0.0}):
        with pytest.raises(OptionError):
            open_loop(SMALL, settings=settings)
        assert not (tmp_path / "loop").exists()
