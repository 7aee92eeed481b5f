"""Many loops in one service: their life, what closes and opens them, tokens, limits, metrics and damage."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from onlineauto.cli.main import main
from onlineauto.errors import OptionError
from onlineauto.options import Configuration
from onlineauto.service.client import Client
from onlineauto.service.http import loop_sites as hosting
from onlineauto.service.http.endpoint import Endpoint, RequestBatch, RequestGuard, SharedRoom, Waiting
from onlineauto.service.http.loops import LoopsApplication, loops_application
from onlineauto.service.http.server import open_loop
from onlineauto.service.http.status import MOST_LABELS
from onlineauto.service.http.tokens import Tokens, add_token
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.log.segment_log import SegmentLog, read_record
from onlineauto.service.loop.loop import Loop
from onlineauto.service.loop.loops import Loops, loop_names
from onlineauto.service.loop.telemetry import JsonLines
from onlineauto.service.options import ServeOptions
from onlineauto.service.refused import RefusedError
from onlineauto.workspace.options import REGISTRY
from tests.service.in_process import RANK, AppClient
from tests.service.serving import Service
from tests.waiting import until

MODEL = "--cb_explore_adf --bit_precision 12"
AT_ONCE = f"{MODEL} --learn_at reward --publish_every 0"


class Clock:
    """The clock of all loops of a test."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class LoopsClient(AppClient):
    """A client of a service with many loops."""

    app: LoopsApplication

    def __init__(self, folder: Path, *, clock: Clock | None = None, **options: Any) -> None:
        self.folder, self.clock, waiting = folder, clock, Waiting()
        self.opened: list[str] = []

        def opening(
            folder: Path, model: Configuration, options: ServeOptions, *, applies: bool, deliver: Any
        ) -> Loop:
            self.opened.append(folder.name)
            settings = options.settings() if applies else {}
            return open_loop(folder, model, options, settings=settings, deliver=deliver)

        loops = Loops(folder, opening, inherited=AT_ONCE, clock=clock or time.time)
        default = Loop(folder, REGISTRY.parse(MODEL), deliver=waiting.deliver)
        given = {
            "tokens": Tokens(),
            "most": 1000,
            "hosts": (),
            "max_open": 32,
            "close_idle": 600.0,
            **options,
        }
        super().__init__(loops_application(default, waiting, loops, trim=lambda: None, **given))

    def create(self, name: str, options: str = "") -> dict[str, Any]:
        """Create a loop, and return its line of the list."""
        answer = self.put(f"/v1/loops/{name}", json={"options": options})
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    def rank(self, name: str, event_id: str | None = None) -> httpx.Response:
        return self.post(f"/v1/loops/{name}/rank", json=RANK | {"event_id": event_id})

    def reward(self, name: str, event_id: str, reward: float = 1.0) -> httpx.Response:
        return self.post(f"/v1/loops/{name}/reward", json={"event_id": event_id, "reward": reward})

    def loop(self, name: str) -> dict[str, Any]:
        """Return the line of a loop in the list."""
        summary: dict[str, Any] = self.get(f"/v1/loops/{name}").json()
        return summary

    def closed(self, name: str) -> dict[str, Any]:
        """Return the line of a loop once it is closed."""
        until(lambda: not self.loop(name)["open"], what=lambda: self.loop(name))
        return self.loop(name)


Serve = Callable[..., LoopsClient]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return a function that starts a service in this process; the one before it is stopped."""
    monkeypatch.setattr(hosting, "_SWEEP", 0.02)
    clients: list[LoopsClient] = []

    def start(*, clock: Clock | None = None, **options: Any) -> LoopsClient:
        if clock is not None:
            monkeypatch.setattr("onlineauto.service.loop.loop.SteadyClock", lambda: clock)
        for client in clients:
            client.__exit__()
        clients.append(LoopsClient(tmp_path / "service", clock=clock, **options))
        return clients[-1].__enter__()

    yield start
    for client in clients:
        client.__exit__()


def records(folder: Path) -> list[Any]:
    log = SegmentLog(folder / "log", read_only=True)
    return [read_record(line) for _, line in log.lines(0)]


def message_of(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["message"])


def test_a_loop_is_created_ranked_rewarded_and_listed(serve: Serve) -> None:
    client = serve()
    created = client.create("shop")
    assert (created["name"], created["state"], created["open"], created["options"]) == (
        "shop",
        "active",
        True,
        AT_ONCE,
    )
    assert client.rank("shop", "e1").status_code == 200
    assert client.reward("shop", "e1").status_code == 204
    until(lambda: client.loop("shop")["learnt"] == 1)
    assert [loop["name"] for loop in client.get("/v1/loops").json()] == ["default", "shop"]
    assert client.loop("shop")["ranked"] == 1
    assert client.loop("default")["ranked"] == 0
    kinds = [record.kind for record in records(client.folder / "shop")]
    assert kinds == ["settings", "rank", "reward"]


@pytest.mark.parametrize(
    ("path", "of"),
    [
        ("/v1/loops/shop/v1/rank", "shop"),
        ("/v1/loops/default/rank", "default"),
        ("/v1/rank", "default"),
        ("/v1/loops/shop/personalizer/v1.1-preview.2/rank", "shop"),
    ],
)
def test_every_path_has_the_same_path_below_a_loop(serve: Serve, path: str, of: str) -> None:
    client = serve()
    client.create("shop")
    actions = [{"id": name, "features": [{"x": 1}]} for name in ("a", "b")]
    body = {"actions": actions} if "personalizer" in path else RANK
    for count in (1, 2):  # the second head is known
        answer = client.post(path, json=body)
        assert answer.is_success, answer.text
        assert client.loop(of)["ranked"] == count
    assert client.post(f"/v1/loops/{of}/activate/a/b").status_code == 204
    assert client.get(f"/v1/loops/{of}/status").json()["ranked"] == 2
    assert "<html" in client.get(f"/v1/loops/{of}/").text
    assert client.get(f"/v1/loops/{of}/healthz").text == "ok\n"
    assert client.get(f"/v1/loops/{of}/loops").status_code == 404
    assert client.get(f"/v1/loops/{of}/rank").headers["allow"] == "POST"


def test_a_folder_of_today_is_the_loop_default(serve: Serve) -> None:
    client = serve()
    assert client.post("/v1/rank", json=RANK | {"event_id": "e"}).status_code == 200
    before = {path.relative_to(client.folder) for path in client.folder.rglob("*")}
    assert {path.parts[0] for path in before} == {"log", "lock", "models", "identity.json"}
    assert "loop=" not in client.get("/metrics").text
    for answer in (
        client.patch("/v1/loops/default", json={"state": "paused"}),
        client.delete("/v1/loops/default"),
    ):
        assert answer.status_code == 409
        assert "has the folder of the service" in message_of(answer)


def test_a_loop_continues_after_a_restart(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    first = client.rank("shop", "e1").json()
    client.reward("shop", "e1")
    client = serve()
    assert not client.loop("shop")["open"]
    assert (client.loop("shop")["ranked"], client.loop("shop")["learnt"]) == (1, 1)
    assert client.rank("shop", "e1").json()["pmf"] == first["pmf"]
    assert client.loop("shop")["open"]


def test_a_loop_in_a_file_is_read_at_the_start(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "service" / "shop"
    folder.mkdir(parents=True)
    (folder / "loop.json").write_text(json.dumps({"options": f"{MODEL} --reward_wait 30"}))
    client = serve()
    assert client.rank("shop").status_code == 200
    assert client.get("/v1/loops/shop/status").json()["settings"]["reward_wait"] == 30


def test_settings_changed_over_http_outlive_the_closing_of_a_loop(serve: Serve) -> None:
    client = serve(close_idle=0.0)
    client.create("shop", f"{MODEL} --reward_wait 30")
    client.patch("/v1/loops/shop/settings", json={"reward_wait": 40})
    client.closed("shop")
    assert client.get("/v1/loops/shop/status").json()["settings"]["reward_wait"] == 40
    answer = client.patch("/v1/loops/shop", json={"options": f"{MODEL} --reward_wait 50"})
    assert answer.status_code == 200, answer.text
    assert client.get("/v1/loops/shop/status").json()["settings"]["reward_wait"] == 50


def test_a_paused_loop_takes_rewards_only(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    client.rank("shop", "e1")
    assert client.patch("/v1/loops/shop", json={"state": "paused"}).json()["state"] == "paused"
    answer = client.rank("shop", "e2")
    assert answer.status_code == 409
    assert "'shop' is paused" in message_of(answer)
    assert client.reward("shop", "e1").status_code == 204
    until(lambda: client.loop("shop")["learnt"] == 1)
    client = serve()
    assert client.rank("shop").status_code == 409
    client.patch("/v1/loops/shop", json={"state": "active"})
    assert client.rank("shop").status_code == 200


def test_an_archived_loop_is_closed_until_it_is_active_again(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    client.rank("shop", "e1")
    assert client.patch("/v1/loops/shop", json={"state": "archived"}).json()["open"] is False
    for answer in (client.rank("shop"), client.reward("shop", "e1"), client.get("/v1/loops/shop/status")):
        assert answer.status_code == 410
        assert "PATCH /v1/loops/shop" in message_of(answer)
    assert client.loop("shop")["ranked"] == 1
    client.patch("/v1/loops/shop", json={"state": "active"})
    assert client.rank("shop", "e1").status_code == 200
    assert client.loop("shop")["ranked"] == 1


def test_the_folder_of_a_removed_loop_is_kept(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    client.rank("shop", "e1")
    folder = Path(client.delete("/v1/loops/shop").json()["folder"])
    assert folder.parent == client.folder / "removed"
    assert [record.kind for record in records(folder)] == ["settings", "rank"]
    for answer in (client.rank("shop"), client.get("/v1/loops/shop"), client.delete("/v1/loops/shop")):
        assert answer.status_code == 404
        assert "GET /v1/loops lists" in message_of(answer)
    client.create("shop")
    assert client.loop("shop")["ranked"] == 0
    folder.rename(client.folder / "old")
    client = serve()
    assert client.loop("old")["ranked"] == 1


def test_a_head_is_checked_again_once_its_loop_is_paused_or_removed(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    endpoint, _ = client.app.find(b"POST", b"/v1/loops/shop/rank")
    assert isinstance(endpoint, Endpoint)
    accepts = [endpoint.accepts(0)]
    for state in ("paused", "active"):
        client.patch("/v1/loops/shop", json={"state": state})
        accepts.append(endpoint.accepts(0))
    client.delete("/v1/loops/shop")
    assert [*accepts, endpoint.accepts(0)] == [True, False, True, False]


def handle(client: LoopsClient, *requests: tuple[str, str]) -> list[Any]:
    """Return what handlers of `ServiceHandlers` return or raise for the loop `shop`, which begin in order."""

    async def begin() -> list[Any]:
        handlers: Any = client.app._handlers
        given = [
            (name, SimpleNamespace(path={"loop": "shop"}, body=body.encode())) for name, body in requests
        ]
        return await asyncio.gather(
            *(getattr(handlers, name)(request) for name, request in given), return_exceptions=True
        )

    return list(client.call(begin))


def test_a_loop_that_is_being_removed_is_not_changed(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    patches = [("change_loop", f'{{"options": "{MODEL}"}}'), ("change_loop", '{"state": "paused"}')]
    removed, *changed = handle(client, ("remove_loop", ""), *patches)
    assert removed.status == 200
    assert [error.status for error in changed] == [404, 404]
    assert not (client.folder / "shop").exists()
    assert client.loop("shop")["error"]["message"].startswith("there is no loop 'shop'")


def test_a_loop_that_is_being_removed_is_created_again(serve: Serve) -> None:
    client = serve()
    client.create("shop", MODEL)
    client.rank("shop")
    removed, *created = handle(client, ("remove_loop", ""), ("create_loop", "{}"), ("create_loop", "{}"))
    assert [reply.status for reply in (removed, *created)] == [200, 201, 200]
    assert client.loop("shop") | {"ranked": 0, "options": AT_ONCE} == client.loop("shop")
    wrong = ("create_loop", '{"options": "--automl 4"}')
    removed, *created = handle(client, ("remove_loop", ""), wrong, wrong)
    assert ["give --cb_explore_adf" in str(error) for error in created] == [True, True]


def test_changes_of_a_loop_at_the_same_time_are_all_kept(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    handle(client, ("change_loop", f'{{"options": "{MODEL}"}}'), ("change_loop", '{"state": "paused"}'))
    assert (client.loop("shop")["options"], client.loop("shop")["state"]) == (MODEL, "paused")
    handle(client, ("change_loop", '{"state": "active"}'), ("change_loop", f'{{"options": "{AT_ONCE}"}}'))
    assert (client.loop("shop")["options"], client.loop("shop")["state"]) == (AT_ONCE, "active")


def test_options_of_a_loop_cannot_be_made_empty(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    answer = client.patch("/v1/loops/shop", json={"options": ""})
    assert answer.status_code == 422
    assert message_of(answer) == "the options of the loop 'shop' cannot be empty"


def test_wrong_options_in_a_file_are_listed_before_the_loop_is_asked(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    client.rank("shop")
    client.__exit__()
    (client.folder / "shop" / "loop.json").write_text(json.dumps({"options": f"{MODEL} --port 3"}))
    client = serve()
    client.patch("/v1/loops/shop", json={"state": "paused"})
    shop = client.loop("shop")
    assert "loop.json cannot be read: --port is an option of the service" in shop["error"]
    assert (shop["ranked"], shop["state"]) == (1, "paused")
    assert client.patch("/v1/loops/shop", json={"options": MODEL}).json()["error"] == ""


def test_a_folder_of_another_service_becomes_a_loop(serve: Serve, tmp_path: Path) -> None:
    client = serve()
    Loop(client.folder / "old", REGISTRY.parse(MODEL)).close()
    options = f"{MODEL} --app default"
    assert client.create("old", options)["error"] == ""
    assert client.create("new")["options"] == AT_ONCE
    Loop(tmp_path / "other", REGISTRY.parse(MODEL)).close()
    (tmp_path / "other").rename(client.folder / "other")
    answer = client.put("/v1/loops/other", json={"options": "--cb_explore_adf --bit_precision 13"})
    assert answer.status_code == 422
    assert (client.folder / "other" / "log").exists()


def test_a_created_loop_is_created_once(serve: Serve) -> None:
    client = serve()
    client.create("shop", MODEL)
    assert client.put("/v1/loops/shop").status_code == 200
    assert client.put("/v1/loops/shop", json={"options": MODEL}).status_code == 200
    answer = client.put("/v1/loops/shop", json={"options": f"{MODEL} --epsilon 0.3"})
    assert answer.status_code == 409
    assert "PATCH /v1/loops/shop changes them" in message_of(answer)


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("Shop", 400, "a loop cannot be called 'Shop'"),
        ("..", 400, "a loop cannot be called"),
        ("%2e%2e", 400, "a loop cannot be called '..'"),
        ("%2e%2e%2fx", 404, "there is no loop '..'"),
        ("-a", 400, "beginning with a letter or digit"),
        ("a" * 65, 400, "at most 64 characters"),
        ("log", 400, "the service has a file or a loop of this name"),
        ("default", 400, "the service has a file or a loop of this name"),
        ("removed", 400, "the service has a file or a loop of this name"),
        ("leases", 400, "the service has a file or a loop of this name"),
    ],
)
def test_a_name_is_checked(serve: Serve, name: str, status: int, message: str) -> None:
    client = serve()
    raw = http.client.HTTPConnection("127.0.0.1", client.base_url.port)  # httpx would resolve the dots
    raw.request("PUT", f"/v1/loops/{name}", body="{}")
    answer = raw.getresponse()
    assert answer.status == status
    assert message in json.loads(answer.read())["error"]["message"]
    raw.close()
    assert {path.name for path in client.folder.iterdir()} <= {
        "log",
        "lock",
        "models",
        "identity.json",
        "snapshot.oam",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--automl 4", "give --cb_explore_adf"),
        (f"{MODEL} --port 1", "--port is an option of the service, not of a loop"),
        (f"{MODEL} --ship x", "--ship is an option of the service"),
        (f"{MODEL} -f x", "--final_regressor has no effect on a service"),
        (f"{MODEL} --cache_file x", "--cache_file has no effect on a service"),
        (f"{MODEL} folder", "a loop has no folder in its options: 'folder'"),
        (f"{MODEL} --reward_wait soon", "a duration like PT10M"),
        (f"{MODEL} --guardrails reward:rollback", "give --control 5%"),
        (f"{MODEL} --epsilon 2", "--epsilon cannot be 2"),
    ],
)
def test_options_of_a_loop_are_checked_as_those_of_serve(serve: Serve, options: str, message: str) -> None:
    client = serve()
    for count in range(2):  # nothing stays locked
        answer = client.put("/v1/loops/shop", json={"options": options})
        assert answer.status_code == 422, count
        assert message in message_of(answer)
    assert not (client.folder / "shop").exists()
    assert client.rank("shop").status_code == 404
    client.create("shop")
    answer = client.patch("/v1/loops/shop", json={"options": options})
    assert answer.status_code == 422
    assert client.loop("shop")["options"] == AT_ONCE
    assert client.rank("shop").status_code == 200


def test_an_idle_loop_is_closed_and_opened_by_a_request(serve: Serve) -> None:
    client = serve(close_idle=0.0)
    client.create("shop")
    threads = threading.active_count()
    client.rank("shop", "e1")
    client.reward("shop", "e1")
    closed = client.closed("shop")
    assert (closed["ranked"], closed["rewarded"], closed["learnt"]) == (1, 1, 1)
    assert threading.active_count() <= threads
    assert not any(thread.name == "onlineauto-work shop" for thread in threading.enumerate())
    assert client.rank("shop", "e1").json()["event_id"] == "e1"
    assert client.rank("shop", "e2").json()["model"] == "000000000001"


def test_the_loop_that_was_asked_least_recently_is_closed_for_another(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_now = property(lambda site: site.handlers is not None and not site._lock.locked())
    monkeypatch.setattr(hosting.LoopSite, "can_close", open_now)  # whatever is written or learnt just now
    client = serve(max_open=2)
    for name in ("a", "b"):
        client.create(name)
    client.rank("a")
    client.create("c")
    client.closed("b")
    assert client.loop("a")["open"]
    client.rank("b")
    client.closed("a")
    assert client.loop("c")["open"]


def test_no_loop_is_opened_while_all_are_busy(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "_NO_PLACE", 0.1)
    monkeypatch.setattr(hosting, "_SPARE", 0)
    client = serve(max_open=1)
    client.create("a")
    monkeypatch.setattr(hosting.LoopSite, "can_close", False)
    answer = client.put("/v1/loops/b")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "1 loops are busy, and no more can be open (--max_open_loops)" in message_of(answer)
    monkeypatch.undo()
    assert client.create("b")["open"]


@pytest.mark.parametrize("state", ["active", "archived"])
def test_waits_that_end_in_a_closed_loop_are_learnt(serve: Serve, state: str) -> None:
    clock = Clock()
    client = serve(close_idle=0.0, clock=clock)
    client.create("shop", f"{MODEL} --reward_wait 60")
    client.rank("shop", "e1")
    client.patch("/v1/loops/shop", json={"state": state})
    assert client.closed("shop")["pending"] == 1
    opened = len(client.opened)
    clock.now += 59
    time.sleep(0.1)  # several sweeps
    assert len(client.opened) == opened
    clock.now += 2
    until(lambda: client.loop("shop")["learnt"] == 1, what=lambda: client.loop("shop"))
    assert client.closed("shop")["pending"] == 0
    time.sleep(0.1)
    assert len(client.opened) == opened + 1


def test_waits_that_end_while_the_service_is_stopped_are_learnt_at_its_start(serve: Serve) -> None:
    clock = Clock()
    client = serve(clock=clock)
    client.create("shop", f"{MODEL} --reward_wait 60")
    client.create("calm")
    client.rank("shop", "e1")
    client.__exit__()
    clock.now += 61
    client = serve(clock=clock)
    until(lambda: client.loop("shop")["learnt"] == 1, what=lambda: client.loop("shop"))
    assert client.opened == ["shop"]


def test_a_loop_whose_log_has_grown_since_its_closing_is_learnt_at_the_start(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    client.rank("shop", "e1")
    client = serve()  # closes it
    folder = client.folder / "shop"
    client.rank("shop", "e2")
    client.reward("shop", "e2")
    before = json.loads((folder / "closed.json").read_text())
    until(lambda: client.loop("shop")["learnt"] == 1)
    client.__exit__()
    (folder / "closed.json").write_text(json.dumps(before))  # as after a kill
    client = serve()
    until(lambda: client.opened == ["shop"])


def test_a_token_is_for_its_loops(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    admin, shop = add_token(path, ["admin"]), add_token(path, ["rank", "read"], ["shop", "news"])
    client = serve(tokens=Tokens(path))
    client.headers["authorization"] = f"Bearer {admin}"
    for name in ("shop", "other"):
        client.create(name)
    client.headers["authorization"] = f"Bearer {shop}"
    assert client.rank("shop").status_code == 200
    assert client.reward("shop", "e").status_code == 403
    for answer in (client.rank("other"), client.rank("none"), client.post("/v1/rank", json=RANK)):
        assert answer.status_code == 403
        assert message_of(answer) == "this token is only for news, shop"
    assert client.rank("news").status_code == 404
    assert [loop["name"] for loop in client.get("/v1/loops").json()] == ["shop"]
    assert client.get("/v1/loops/other").status_code == 403
    for answer in (
        client.put("/v1/loops/news"),
        client.patch("/v1/loops/shop", json={"state": "paused"}),
        client.delete("/v1/loops/shop"),
        client.get("/metrics"),
    ):
        assert answer.status_code == 403
    assert client.get("/v1/loops/shop/metrics").status_code == 200
    del client.headers["authorization"]
    for answer in (client.rank("shop"), client.rank("none"), client.get("/v1/loops")):
        assert answer.status_code == 401


@pytest.mark.parametrize("line", ["a" * 64 + " rank shop more", "a" * 64 + " shop"])
def test_a_line_of_tokens_has_at_most_three_words(tmp_path: Path, line: str) -> None:
    (tmp_path / "tokens").write_text(line)
    with pytest.raises(Exception, match="names of loops if the token is not for all"):
        Tokens(tmp_path / "tokens")


def test_a_loop_that_takes_too_much_leaves_room_for_others() -> None:
    room = SharedRoom(100)
    greedy, calm, later = (RequestGuard(Tokens(), print, most=100, room=room) for _ in range(3))
    room.is_shared = True
    for _ in range(75):
        greedy.admit()
    with pytest.raises(RefusedError, match="the others need the rest"):
        greedy.admit()
    for _ in range(18):
        calm.admit()
    later.admit()
    greedy.release()
    assert (greedy.served, room.served) == (74, 93)
    alone = RequestGuard(Tokens(), print, most=100, room=SharedRoom(100))
    for _ in range(100):
        alone.admit()


@pytest.mark.parametrize(("is_shared", "sizes"), [(True, [128, 128, 44]), (False, [300])])
def test_a_turn_has_a_part_of_the_requests_of_a_busy_loop(is_shared: bool, sizes: list[int]) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.sizes: list[int] = []

        def begin(self, requests: list[Any]) -> None:
            self.sizes.append(len(requests))

    async def answer() -> list[int]:
        room, endpoint = SharedRoom(1000), Recorder()
        room.is_shared = is_shared
        batch = RequestBatch(nullcontext, room)
        for number in range(300):
            batch.add(endpoint, number)  # type: ignore[arg-type]
        for _ in range(5):
            await asyncio.sleep(0)
        return endpoint.sizes

    assert asyncio.run(answer()) == sizes


def test_the_rate_of_a_loop_is_limited(serve: Serve) -> None:
    client = serve()
    client.create("shop", f"{AT_ONCE} --max_rate 5")
    client.create("calm")
    answers = [client.rank("shop") for _ in range(20)]
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert message_of(refused) == "more than 5 requests a second (--max_rate)"
    assert answers[0].status_code == 200
    assert client.rank("calm").status_code == 200
    client.patch("/v1/loops/shop", json={"options": f"{AT_ONCE} --max_rate 10000"})
    assert {client.rank("shop").status_code for _ in range(20)} == {200}


def test_a_large_request_counts_as_several(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("onlineauto.service.http.endpoint.time.monotonic", lambda: now)
    guard = RequestGuard(Tokens(), print, rate=10.0)
    guard.admit(size=100 * 4096)
    now = 9.0  # the credit is -91 + 90
    with pytest.raises(RefusedError):
        guard.admit()
    now = 9.3
    guard.admit()


def test_limits_of_a_loop_are_its_own(serve: Serve) -> None:
    client = serve()
    client.create("shop", f"{AT_ONCE} --max_pending 1 --max_body 400")
    client.create("calm")
    assert client.rank("shop").status_code == 200
    answer = client.rank("shop")
    assert answer.status_code == 429
    assert "--max_pending 1" in message_of(answer)
    assert client.post("/v1/loops/shop/rank", content=b" " * 500).status_code == 413
    assert client.rank("calm").status_code == 200


def test_metrics_have_the_loop_as_a_label(serve: Serve) -> None:
    client = serve(close_idle=0.0)
    client.create("shop")
    client.rank("shop", "e1")
    client.closed("shop")
    text = client.get("/metrics").text
    assert 'onlineauto_ranked_total{loop="shop"} 1.0\n' in text
    assert 'onlineauto_ranked_total{loop="default"} 0.0\n' in text
    assert 'onlineauto_requests_total{endpoint="rank",loop="shop",status="200"} 1.0\n' in text
    assert "onlineauto_loops 1.0\n" in text
    assert "\nprocess_resident_memory_bytes " in text
    assert "onlineauto_open_loops 0.0\n" in text
    assert text.count("# TYPE onlineauto_ranked_total") == 1
    assert text.count("onlineauto_connections{") + text.count("onlineauto_connections ") == 3


def test_the_number_of_labels_is_limited(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_LABELS == 100
    monkeypatch.setattr("onlineauto.service.http.status.MOST_LABELS", 1)
    client = serve()
    for name in ("a", "b", "c"):
        client.create(name)
        client.rank(name)
    client.rank("c")
    lines = client.get("/metrics").text.splitlines()
    ranked = [line for line in lines if line.startswith("onlineauto_ranked_total{")]
    assert ranked == [
        f'onlineauto_ranked_total{{loop="{loop}"}} {n}.0'
        for loop, n in (("default", 0), ("a", 1), ("other", 3))
    ]
    assert 'onlineauto_ready{loop="other"} 1.0' in lines
    assert 'onlineauto_requests_total{endpoint="rank",loop="other",status="200"} 3.0' in lines
    assert not any('policy="live"' in line and 'loop="other"' in line for line in lines)


def test_a_damaged_loop_is_reported_by_name_and_hurts_no_other(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    client = serve()
    for name in ("shop", "calm"):
        client.create(name)
        client.rank(name, "e1")
    client.__exit__()
    folder = client.folder / "shop"
    segment = next((folder / "log").glob("*"))
    segment.rename(segment.with_name(f"{7:020d}.dsjson"))
    (folder / "snapshot.oam").unlink()
    (client.folder / "bad").mkdir()
    (client.folder / "bad" / "loop.json").write_text("{")
    client = serve()
    for name, why in (("shop", "no longer has its beginning"), ("bad", "loop.json cannot be read")):
        answer = client.rank(name)
        assert answer.status_code == 503
        assert f"the loop '{name}' cannot be opened" in message_of(answer)
        assert why in client.loop(name)["error"]
        assert any(getattr(record, "loop", "") == name for record in caplog.records)
    assert client.opened.count("shop") <= 2
    client.rank("shop")
    assert client.opened.count("shop") <= 2  # it is not tried at each request
    assert client.rank("calm").status_code == 200
    assert client.get("/readyz").status_code == 200
    answer = client.patch("/v1/loops/bad", json={"state": "paused"})
    assert answer.status_code == 409
    assert "loop.json cannot be read" in message_of(answer)
    assert (client.folder / "bad" / "loop.json").read_text() == "{"
    assert client.patch("/v1/loops/bad", json={"options": MODEL}).status_code == 200
    assert client.rank("bad").status_code == 200
    assert client.delete("/v1/loops/shop").status_code == 200


def test_a_folder_with_a_name_that_no_loop_can_have_is_reported(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "service" / "Shop"
    folder.mkdir(parents=True)
    (folder / "loop.json").write_text(json.dumps({"options": MODEL}))
    client = serve()
    assert client.rank("Shop").status_code == 503
    assert "a loop cannot be called 'Shop'" in client.loop("Shop")["error"]


def test_the_log_names_the_loop_whose_learning_fails(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    client, lines = serve(), io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(JsonLines())
    logging.getLogger("onlineauto.service").addHandler(handler)
    client.create("shop")
    step = LogLearner.step

    def fail(learner: LogLearner) -> int:
        if learner.folder.name == "shop" and learner.position < learner.log.durable:
            raise OSError("the disk is away")
        return step(learner)

    monkeypatch.setattr(LogLearner, "step", fail)
    client.rank("shop")
    until(lambda: "the disk is away" in client.loop("shop")["error"])
    logging.getLogger("onlineauto.service").removeHandler(handler)
    stopped = next(line for line in map(json.loads, lines.getvalue().splitlines()) if "error" in line)
    assert (stopped["event"], stopped["loop"]) == ("learning_stopped", "shop")
    assert client.get("/healthz").status_code == 200
    assert client.get("/v1/loops/shop/healthz").status_code == 503
    [warning] = client.get("/v1/status").json()["warnings"]
    assert warning.startswith("the loop shop has failed: learning has stopped")
    assert "onlineauto_loops_failed 1.0\n" in client.get("/metrics").text
    monkeypatch.undo()
    until(lambda: client.loop("shop")["error"] == "")


def test_a_client_has_the_address_of_a_loop(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    with Client(str(client.base_url.join("/v1/loops/shop"))) as ranking:
        decision = ranking.rank({"user": {"age": 30}}, {"a": {"x": {"one": 1}}, "b": {"x": {"two": 1}}})
        assert not decision.fallback
        assert ranking.reward(decision, 1.0)
    assert client.loop("shop")["rewarded"] == 1


def test_a_restored_loop_has_its_options(serve: Serve, tmp_path: Path) -> None:
    client = serve()
    client.create("shop")
    client.rank("shop", "e1")
    assert main(["loop", str(client.folder / "shop"), "--backup", str(tmp_path / "copy")]) == 0
    assert main(["loop", str(client.folder / "again"), "--restore", str(tmp_path / "copy")]) == 0
    client = serve()
    assert client.loop("again")["options"] == AT_ONCE
    assert client.rank("again", "e1").status_code == 200
    assert client.loop("again")["ranked"] == 1


def test_a_backup_has_all_loops_and_names_those_that_it_has_not(
    serve: Serve, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    client = serve()
    for name in ("shop", "news"):
        client.create(name)
        client.rank(name, f"e-{name}")
    folder, copy, again = (str(tmp_path / name) for name in ("service", "copy", "again"))
    assert main(["loop", folder, "--backup", copy]) == 0
    (tmp_path / "service/broken").mkdir()
    (tmp_path / "service/broken/loop.json").write_text("{}")
    assert main(["loop", folder, "--backup", copy]) == 1
    assert "are not in the backup: broken" in capfd.readouterr().err
    assert main(["loop", f"{again}/shop", "--restore", f"{copy}/shop"]) == 0  # a restore that was stopped
    assert main(["loop", again, "--restore", copy]) == 0
    assert loop_names(again) == ["news", "shop"]
    capfd.readouterr()
    assert main(["loop", again, "--find", "age"]) == 0
    assert capfd.readouterr().out.split("\n")[:2] == ["news e-news", "shop e-shop"]
    assert main(["loop", f"{again}/shop", "--event", "e-shop"]) == 0
    assert "the action is the one" in capfd.readouterr().out


@pytest.mark.ci
def test_a_rank_server_follows_a_loop(serve: Serve, tmp_path: Path) -> None:
    client = serve()
    client.create("shop")
    address = str(client.base_url.join("/v1/loops/shop"))
    with (
        Service(tmp_path / "rank", "--follow", address, "--app", "shop", model=()) as ranking,
        httpx.Client(base_url=ranking.url, timeout=60.0) as asking,
    ):
        assert asking.post("/v1/rank", json=RANK | {"event_id": "e1"}).status_code == 200
        assert asking.post("/v1/reward", json={"event_id": "e1", "reward": 1.0}).status_code == 204
        until(lambda: client.loop("shop")["learnt"] == 1)


def test_a_loop_that_is_removed_while_it_answers_loses_nothing(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    acknowledged, statuses, stop = set[str](), set[int](), threading.Event()

    def ask(number: int) -> None:
        with httpx.Client(base_url=client.base_url, timeout=30.0) as asking:
            for count in range(10_000):
                event_id = f"{number}-{count}"
                answer = asking.post("/v1/loops/shop/rank", json=RANK | {"event_id": event_id})
                statuses.add(answer.status_code)
                if answer.status_code == 200:
                    acknowledged.add(event_id)
                elif stop.is_set():
                    return

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(acknowledged) > 40)
    folder = Path(client.delete("/v1/loops/shop").json()["folder"])
    stop.set()
    for thread in threads:
        thread.join()
    assert statuses == {200, 404}
    assert acknowledged <= {record.event_id for record in records(folder) if record.kind == "rank"}


@pytest.mark.parametrize("spare", [0, 1])
def test_requests_of_a_loop_that_is_closed_and_opened_all_the_time_are_answered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    monkeypatch.setattr(hosting, "_SPARE", spare)
    client = serve(max_open=1)
    names = ("a", "b", "c")
    for name in names:
        client.create(name)

    def ask(name: str) -> None:
        with httpx.Client(base_url=client.base_url, timeout=60.0) as asking:
            for count in range(20):
                body = RANK | {"event_id": f"e{count}"}
                assert asking.post(f"/v1/loops/{name}/rank", json=body).status_code == 200
                answered[name] += 1

    answered = dict.fromkeys(names, 0)
    threads = [threading.Thread(target=ask, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answered.values()) == {20}
    for name in names:
        ranks = [record.event_id for record in records(client.folder / name) if record.kind == "rank"]
        assert ranks == [f"e{count}" for count in range(20)]


def test_a_service_that_ships_its_log_has_no_other_loops(serve: Serve) -> None:
    client = serve(alone="--ship")
    answer = client.put("/v1/loops/shop")
    assert answer.status_code == 400
    assert "--ship is for the loop 'default'" in message_of(answer)


def test_the_page_of_all_loops_and_that_of_one(serve: Serve) -> None:
    client = serve()
    client.create("shop")
    assert "GET /v1/loops" not in client.get("/loops").text
    assert 'fetch("/v1/loops"' in client.get("/loops").text
    assert 'fetch(BASE + "/v1/events"' in client.get("/v1/loops/shop/").text
    with client.stream("GET", "/v1/loops/shop/v1/events") as events:
        line = next(events.iter_lines())
        assert json.loads(line.removeprefix("data: "))["ranked"] == 0


def test_a_watched_loop_stays_open(serve: Serve) -> None:
    client = serve(close_idle=0.0)
    client.create("shop")
    with client.stream("GET", "/v1/loops/shop/events") as events:
        next(events.iter_lines())
        time.sleep(0.1)  # several sweeps
        assert client.loop("shop")["open"]
    client.closed("shop")


def test_a_wrong_options_text_is_an_option_error() -> None:
    from onlineauto.service.loop.loops import loop_options

    with pytest.raises(OptionError, match="is not a command line"):
        loop_options("--cb_explore_adf '")
