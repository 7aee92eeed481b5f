"""Threads that rank, reward and learn at once: every answer is whole, and the model is that of the log."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from onlineauto.service.http.app import _follow, _learn, application
from onlineauto.service.http.endpoint import Waiting
from onlineauto.service.learning.evaluate import join_log_lines
from onlineauto.service.learning.learner import MOST_RECORDS, LogLearner
from onlineauto.service.log.segment_log import SegmentLog, read_record
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.options import PART_BYTES
from onlineauto.service.ranking import is_drawn, read_answer
from onlineauto.service.refused import RefusedError
from tests.service.in_process import InProcessClient
from tests.service.serving import ROOT
from tests.service.traffic import CONFIGURATION, TOPICS, rank_request
from tests.waiting import PATIENCE, until


def test_threads_share_a_loop_while_models_change(open_loop: Callable[..., Loop], tmp_path: Path) -> None:
    every = Every(publish=0.0, snapshot=0.05)
    loop = open_loop(settings={"learn_at": "reward"}, every=every)
    stop = threading.Event()
    errors: list[BaseException] = []
    models: set[str] = set()

    def learn() -> None:
        try:
            while not stop.is_set():
                loop.learn()
        except BaseException as error:
            errors.append(error)

    def ask(number: int) -> None:
        try:
            for step in range(250):
                user = ("tom", "ann")[step % 2]
                answer = loop.rank(rank_request(f"{number}-{step}", user), ignore_completion)
                assert sorted(answer.ids) == sorted(TOPICS)
                assert sum(answer.probabilities) == pytest.approx(1.0)
                assert answer.probabilities[0] > 0
                models.add(answer.model)
                time.sleep(0.001)  # models change meanwhile
                loop.reward(answer.event_id, float(answer.ids[0] == "music"), ignore_completion)
                if step % 50 == 0:  # they do so now, also if to learn the first event takes long
                    until(lambda: loop.published.name != answer.model)  # noqa: B023 - called at once
        except BaseException as error:
            errors.append(error)

    learning = threading.Thread(target=learn)
    asking = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for each in (learning, *asking):
        each.start()
    for each in asking:
        each.join()
    stop.set()
    learning.join()
    assert not errors
    assert len(models) > 3
    loop = open_loop()
    counts = loop.join.counts
    assert (counts.ranked, counts.joined, loop.learner.learnt) == (1000, 1000, 1000)
    again = tmp_path / "again"
    again.mkdir()
    whole = LogLearner(again, loop.log, CONFIGURATION)
    while whole.step():
        pass
    saved = [io.BytesIO(), io.BytesIO()]
    whole.workspace.save(saved[0])
    loop.learner.workspace.save(saved[1])
    assert saved[0].getvalue() == saved[1].getvalue()
    whole.close(snapshot=False)


def test_any_draw_can_be_repeated(open_loop: Callable[..., Loop], tmp_path: Path) -> None:
    loop = open_loop(app="shop")
    for number in range(200):
        loop.rank(rank_request(f"e{number}"), ignore_completion)
    loop.close()
    lines = [line for _, line in SegmentLog(tmp_path / "loop/log", read_only=True).lines(0)]
    ranks = [line for line in lines if read_record(line).kind == "rank"]
    assert len(ranks) == 200
    assert all(is_drawn(line, app="shop") for line in ranks)
    assert not all(is_drawn(line, app="other") for line in ranks)
    assert {read_answer(line)[0].ids[0] for line in ranks} == set(TOPICS)


def test_ranks_go_on_when_learning_has_failed(
    open_loop: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = open_loop()

    def broken(self: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(LogLearner, "step", broken)
    loop.rank(rank_request("a"), ignore_completion)
    with pytest.raises(OSError, match="Input/output"):
        loop.learn()
    assert loop.failed is not None
    assert loop.learn() == 0
    assert loop.rank(rank_request("b"), ignore_completion).ids
    monkeypatch.undo()
    assert open_loop().join.counts.ranked == 2


def test_a_folder_is_locked_by_one_process(open_loop: Callable[..., Loop]) -> None:
    loop = open_loop()
    with pytest.raises(Exception, match="another service runs"):
        Loop(loop.folder, CONFIGURATION)


def test_ranks_are_refused_while_the_disk_is_full(
    open_loop: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = open_loop()
    heard: list[Exception | None] = []
    answered = threading.Event()

    def done(error: Exception | None) -> None:
        heard.append(error)
        answered.set()

    def full(lines: object) -> None:
        raise OSError(28, "No space left on device")

    until(lambda: loop.log.durable)  # the settings are written
    monkeypatch.setattr(loop.log, "append", full)
    loop.rank(rank_request("a"), done)
    assert answered.wait(PATIENCE)
    assert isinstance(heard[0], OSError)
    assert not loop.writable
    with pytest.raises(RefusedError, match="No space left") as refused:
        loop.rank(rank_request("b"), done)
    assert refused.value.status == 503


def test_only_old_segments_that_are_not_needed_are_removed(open_loop: Callable[..., Loop]) -> None:
    now = [time.time()]
    loop = open_loop(
        settings={"reward_wait": 5.0, "default_reward": 0.5},
        every=Every(snapshot=0.0),
        keep_log=0.0,
        segment_bytes=5000,
        clock=lambda: now[0],
    )

    def rank(event_id: str, *, after: float) -> None:
        now[0] += after
        loop.rank(rank_request(event_id), ignore_completion)
        until(lambda: not loop.unwritten)  # one by one: segments end between groups of records

    for number in range(60):
        rank(f"e{number}", after=0.2)
    now[0] += 10.0
    for number in range(5):
        rank(f"f{number}", after=1.0)
        loop.tick()
        loop.learn()
    assert loop.log.begin > 0
    again = open_loop()
    assert again.join.settings.default_reward == 0.5
    assert again.join.counts.ranked == 65
    assert all(b'"_label_cost":-0.5' in line for line in join_log_lines(again.log))


def test_an_event_that_is_being_ranked_is_not_answered_twice(
    open_loop: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = open_loop()
    until(lambda: not loop.unwritten)
    go_on, answered = threading.Event(), threading.Event()
    sync = loop.log.sync

    def slow() -> None:
        assert go_on.wait(PATIENCE)
        sync()

    monkeypatch.setattr(loop.log, "sync", slow)
    first = loop.rank(rank_request("e"), lambda _: answered.set())
    with pytest.raises(RefusedError, match="being ranked") as refused:
        loop.rank(rank_request("e"), ignore_completion)
    assert (refused.value.status, answered.is_set()) == (409, False)  # the disk has not confirmed it
    go_on.set()
    assert answered.wait(PATIENCE)
    assert loop.rank(rank_request("e"), ignore_completion) == first


def test_a_service_loads_no_kernel_once_it_is_warm(tmp_path: Path) -> None:
    code = """
import sys
from onlineauto.jit import code
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.warm_up import warm_up
from tests.service.traffic import rank_request
from tests.waiting import until
from onlineauto.workspace.options import REGISTRY

loaded = []
symbol = code.symbol_of
code.symbol_of = lambda function, packed: loaded.append(function.__qualname__) or symbol(function, packed)
configuration = REGISTRY.parse("--cb_explore_adf --automl 4 --bit_precision 12")
loop = Loop(sys.argv[1], configuration, settings={"learn_at": "reward"}, every=Every(publish=0.0))
warm_up(loop.learner.workspace.configuration)
assert len(loaded) > 10, loaded
loaded.clear()
for number in range(300):
    loop.rank(rank_request(f"e{number}", f"u{number % 7}"), ignore_completion)
    if number % 3:
        loop.reward(f"e{number}", float(number % 2), ignore_completion)
    if number % 20 == 0:
        loop.learn()
until(lambda: (loop.learn(), loop.learner.learnt == 200)[1])
loop.rank(rank_request("last", "u1"), ignore_completion)
loop.model()
loop.close()
print(loaded)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "loop")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_a_service_that_ends_does_not_wait_for_the_compiler(
    open_loop: Callable[..., Loop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, go_on, learning = Waiting(), threading.Event(), threading.Event()
    loop = open_loop(deliver=waiting.deliver)

    def compile_something(self: object) -> int:
        learning.set()
        go_on.wait(PATIENCE)
        return 0

    monkeypatch.setattr(LogLearner, "step", compile_something)
    monkeypatch.setattr("onlineauto.service.http.app.is_compiling", lambda: True)
    app = application(loop, waiting)
    with InProcessClient(app, loop) as client:
        assert client.post("/v1/rank", json={"actions": {"a": {}}, "event_id": "e"}).status_code == 200
        assert learning.wait(PATIENCE)
        begin = time.monotonic()
    assert time.monotonic() - begin < PATIENCE / 2  # the compiler takes longer
    assert app.is_abandoned
    lines = [line for _, line in SegmentLog(tmp_path / "loop/log", read_only=True).lines(0)]
    assert b'"EventId":"e"' in lines[-1]
    go_on.set()


class Waits:
    """Stands for the event that stops a thread: records how long the thread waits, and is set at last."""

    def __init__(self, most: int) -> None:
        self.seconds, self.most = list[float](), most

    def is_set(self) -> bool:
        return len(self.seconds) >= self.most

    def wait(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.mark.parametrize(("publish", "busy"), [(0.0, 0.1), (0.3, 0.3), (3600.0, 0.5)])
def test_the_learner_collects_records_for_as_long_as_no_model_is_due(publish: float, busy: float) -> None:
    taken, waits = iter([20, 0, MOST_RECORDS, 3]), Waits(3)
    learning = SimpleNamespace(every=Every(publish=publish), learn=lambda: next(taken))
    _learn(learning, waits)  # type: ignore[arg-type]
    assert waits.seconds == [busy, 0.1, busy]


def test_a_rank_server_sends_the_records_of_a_moment_at_once() -> None:
    behind, waits = iter([2 * PART_BYTES, 100, 0]), Waits(2)

    class Server:
        failed = None

        @property
        def behind(self) -> int:
            return next(behind)

        def follow(self) -> bool:
            return True

    _follow(Server(), waits)  # type: ignore[arg-type]
    assert waits.seconds == [0.2, 0.2]
    assert next(behind, None) is None  # no wait while whole parts are left
