"""A service is killed under load: no acknowledged record is lost, and none is learnt twice."""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.log.segment_log import SegmentLog, read_record
from onlineauto.service.loop.folder import restore_folder
from onlineauto.workspace.options import REGISTRY
from tests.service.serving import MODEL, Service
from tests.waiting import until

pytestmark = pytest.mark.lane("ci")

CONFIGURATION = REGISTRY.parse([*MODEL, "--dsjson"])
OFTEN = ("--reward_wait", "1", "--snapshot_every", "0.05", "--publish_every", "0.1")


class Load:
    """Ranks and rewards from several threads, and remembers what was acknowledged."""

    def __init__(self, url: str, *, seed: int, threads: int = 4) -> None:
        self.url, self.seed = url, seed
        self.ranked: dict[str, list[Any]] = {}
        self.rewarded: set[str] = set()
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(number,)) for number in range(threads)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def join(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _run(self, number: int) -> None:
        draw = Random(f"{self.seed} {number}")
        with httpx.Client(base_url=self.url, timeout=30.0) as client:
            while not self.stop.is_set():
                event_id = f"{self.seed}-{number}-{draw.getrandbits(40)}"
                user = draw.choice(["tom", "ann"])
                actions = {each: {"topic": {each: 1}} for each in ("art", "sports", "music")}
                body = {"event_id": event_id, "context": {"user": {user: 1}}, "actions": actions}
                try:
                    answer = client.post("/v1/rank", json=body)
                    if answer.status_code != 200:
                        continue
                    self.ranked[event_id] = [answer.json()["action"], answer.json()["probability"]]
                    liked = float(answer.json()["action"] == ("art" if user == "tom" else "music"))
                    if draw.random() < 0.8:
                        reward = {"event_id": event_id, "reward": liked, "key": "k"}
                        if client.post("/v1/reward", json=reward).status_code == 204:
                            self.rewarded.add(event_id)
                except httpx.TransportError:
                    time.sleep(0.01)


def killed(folder: Path, times: int, *words: str, seed: int) -> tuple[dict[str, list[Any]], set[str]]:
    draw = Random(seed)
    ranked: dict[str, list[Any]] = {}
    rewarded: set[str] = set()
    for number in range(times):
        service = Service(folder, *OFTEN, *words).start()
        load = Load(service.url, seed=seed * 1000 + number)
        try:
            ready = draw.random() < 0.8
            if ready:
                service.wait()
            load.start()
            time.sleep(draw.random() * 0.8)
            if ready:  # on a slow machine, too, there is something to lose
                until(lambda: len(load.rewarded) > 10)  # noqa: B023 - called before the next round
            if number == times - 1:
                until((folder / "snapshot.oam").exists)
        finally:
            service.kill()
            if load.threads[0].ident is not None:
                load.join()
        ranked |= load.ranked
        rewarded |= load.rewarded
    return ranked, rewarded


def model_of(folder: Path, log: SegmentLog) -> tuple[bytes, int]:
    learner = LogLearner(folder, log, CONFIGURATION)
    while learner.step():
        pass
    file = io.BytesIO()
    learner.workspace.save(file)
    learner.close(snapshot=False)
    return file.getvalue(), learner.learnt


def check(folder: Path, ranked: dict[str, list[Any]], rewarded: set[str]) -> None:
    log = SegmentLog(folder / "log")
    records = [read_record(line) for _, line in log.lines(0)]
    ranks = {record.event_id: record for record in records if record.kind == "rank"}
    assert ranked.keys() <= ranks.keys()
    assert rewarded <= {record.event_id for record in records if record.kind == "reward"}
    assert all(ranks[event].probabilities[0] == chance for event, (_, chance) in ranked.items())
    whole = folder.with_name("whole")
    whole.mkdir()
    wanted, learnt = model_of(whole, log)
    assert (folder / "snapshot.oam").exists()
    again, learnt_again = model_of(folder, log)
    assert learnt_again == learnt
    assert again == wanted
    assert learnt > 20
    log.close()
    shutil.rmtree(whole)


def test_killed_four_times_under_load(tmp_path: Path) -> None:
    folder = tmp_path / "loop"
    check(folder, *killed(folder, 4, seed=1))


def killed_with_loops(
    folder: Path, names: list[str], times: int, *words: str
) -> dict[str, tuple[dict[str, list[Any]], set[str]]]:
    """Kill a service of several busy loops; return what each of them has acknowledged."""
    draw = Random(len(names))
    known: dict[str, tuple[dict[str, list[Any]], set[str]]] = {name: ({}, set()) for name in names}
    for name in names:
        (folder / name).mkdir(parents=True)
        options = " ".join([*MODEL, "--learn_at reward", *OFTEN])
        (folder / name / "loop.json").write_text(json.dumps({"options": options}))
    for number in range(times):
        service = Service(folder, *words).start()
        loads = {
            name: Load(f"{service.url}/v1/loops/{name}", seed=number * 1000 + at, threads=2)
            for at, name in enumerate(names)
        }
        try:
            service.wait()
            for load in loads.values():
                load.start()
            until(lambda: all(len(load.rewarded) > 10 for load in loads.values()))  # noqa: B023 - called here
            time.sleep(draw.random() * 0.8)
            if number == times - 1:
                until(lambda: all((folder / name / "snapshot.oam").exists() for name in names))
        finally:
            service.kill()
            for load in loads.values():
                load.join()
        for name, load in loads.items():
            known[name][0].update(load.ranked)
            known[name][1].update(load.rewarded)
    return known


@pytest.mark.parametrize("most", ["32", "3"])
def test_a_service_of_four_busy_loops_is_killed(tmp_path: Path, most: str) -> None:
    names = [f"loop{number}" for number in range(4)]
    known = killed_with_loops(tmp_path / "loops", names, 2, "--max_open_loops", most)
    for name in names:
        check(tmp_path / "loops" / name, *known[name])


@pytest.mark.slow
def test_a_service_of_twenty_busy_loops_is_killed_twenty_times(tmp_path: Path) -> None:
    names = [f"loop{number}" for number in range(20)]
    times = int(os.environ.get("ONLINEAUTO_KILLS", "20"))
    known = killed_with_loops(tmp_path / "loops", names, times, "--max_open_loops", "20")
    for name in names:
        check(tmp_path / "loops" / name, *known[name])


@pytest.mark.slow
def test_killed_a_hundred_times_under_load_while_it_ships_its_log(tmp_path: Path) -> None:
    folder, copy = tmp_path / "loop", tmp_path / "disk2"
    copy.mkdir()
    ship = ("--ship", str(copy))
    ranked, rewarded = killed(folder, int(os.environ.get("ONLINEAUTO_KILLS", "100")), *ship, seed=2)
    check(folder, ranked, rewarded)
    with Service(folder, *OFTEN, *ship) as service:
        service.wait()
        status = f"{service.url}/v1/status"
        until(lambda: httpx.get(status, timeout=30).json()["copies"][0]["behind_bytes"] == 0)
        assert service.stop() == 0
    restored = restore_folder(copy, tmp_path / "restored")
    assert (restored.torn, restored.gaps, restored.damaged) == (0, [], [])
    check(tmp_path / "restored", ranked, rewarded)


def test_a_stopped_service_has_learnt_and_saved_its_log(tmp_path: Path) -> None:
    folder = tmp_path / "loop"
    with (
        Service(folder, "--reward_wait", "100") as service,
        httpx.Client(base_url=service.url, timeout=30) as client,
    ):
        for number in range(30):
            body = {"event_id": f"e{number}", "actions": {"a": {"x": 1}, "b": {"y": 1}}}
            client.post("/v1/rank", json=body)
            client.post("/v1/reward", json={"event_id": f"e{number}", "reward": 1.0})
        assert service.stop() == 0
    log = SegmentLog(folder / "log")
    learner = LogLearner(folder, log, CONFIGURATION)
    assert (learner.learnt, learner.position) == (30, log.end)
    learner.close(snapshot=False)
    log.close()
