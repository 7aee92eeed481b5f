"""The live page of a store: its endpoints, and the page in a browser."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from onlineauto.cli.main import main
from onlineauto.cli.study_page import StudyHandlers, study_app
from onlineauto.service.http.tokens import Tokens, add_token
from onlineauto.tune import Float, Int, Study
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.store import open_store
from onlineauto.tune.store.sql_store import SqlStore
from onlineauto.tune.trial import claim_of
from tests.service.browser import PROGRAM, draw, page_text
from tests.service.in_process import AppClient
from tests.tune.studies import asked
from tests.waiting import PATIENCE, until

EVIL = "<script>alert('study')</script>/../ü"
ERROR = "<img src=x onerror=alert(1)> & <b>shape</b>"
SPACE = {"rate": Float(1e-3, 1, log=True), "depth": Int(1, 9)}


def made(url: str, name: str = "rates", **words: Any) -> Study:
    settings = {"max_resource": 9, "searcher": "random", "max_trials": 9, **words}
    return Study(SPACE, name=name, storage=url, **settings)


def loss(config: Any, resource: int) -> float:
    return float(config["rate"] + config["depth"] + 1 / resource)


def client_of(url: str, tokens: Tokens | None = None) -> AppClient:
    return AppClient(study_app(StudyHandlers(url), tokens or Tokens()))


def study_at(client: httpx.Client, name: str = "rates") -> Any:
    answer = client.get(f"/v1/studies/{quote(name, safe='')}")
    assert answer.status_code == 200, answer.text
    return answer.json()["study"]


def test_the_list_has_each_study_with_its_trials_and_its_best(url: str) -> None:
    study = made(url)
    study.run(loss)
    made(url, EVIL)
    with client_of(url) as client:
        both = client.get("/v1/studies").json()
        assert [each["name"] for each in both] == [EVIL, "rates"]
        assert both[0]["states"] == {}
        assert both[0]["best"] is None
        assert both[1]["states"] == {"TERMINATED": 9}
        assert both[1]["best"]["value"] == study.best_value
        assert both[1]["is_done"]
        assert study_at(client, EVIL)["name"] == EVIL
        assert "onlineauto studies" in client.get("/").text


def test_a_study_is_described_as_its_api_does(url: str) -> None:
    study = made(url)
    study.run(loss)
    with client_of(url) as client:
        found = study_at(client)
    told = [row for row in study.history() if row["told"]]
    assert found["curve"]["points"] == [
        [at, row["value"], row["resource"], row["trial"]] for at, row in enumerate(told, 1)
    ]
    last = found["curve"]["best"][-1]
    assert last[1:3] == [study.best_value, study.best_trial.number]
    ended = {each["from"]: each["ended"] for each in found["rungs"]}
    assert ended == {level: sum(row["resource"] == level for row in told) for level in (1, 3, 9)}
    first, second, third = found["rungs"]
    assert first["promoted"]["count"] + first["stopped"]["count"] == first["ended"]
    tops = [max(row["resource"] for row in told if row["trial"] == trial) for trial in range(9)]
    assert second["stopped"]["latest"] == [trial for trial in range(9) if tops[trial] == 3]
    assert third["finished"]["latest"] == [trial for trial in range(9) if tops[trial] == 9]
    assert first["best"] == min(row["value"] for row in told if row["resource"] == 1)
    assert [name for name, _ in found["configs"]["axes"]] == ["rate", "depth"]
    assert len(found["configs"]["lines"]) == found["configs"]["count"]
    assert found["configs"]["importance"][0]["depth"] >= 0


def test_a_running_study_is_followed_live(url: str) -> None:
    study = made(url, lease=50)
    with client_of(url) as client:
        path = "/v1/studies/rates"
        empty = client.get(path)
        assert (empty.json()["study"]["trials"], empty.json()["leases"]) == (0, [])
        tag = {"If-None-Match": empty.headers["etag"]}
        assert client.get(path, headers=tag).status_code == 304
        assert not client.get(path, headers=tag).content
        job = asked(study)
        changed = client.get(path, headers=tag)
        assert changed.status_code == 200
        (lease,) = changed.json()["leases"]
        assert (lease["trial"], lease["attempt"], lease["owner"]) == (0, 0, job.owner)
        assert 0 < lease["seconds"] <= 50
        until(lambda: study_at(client)["states"] == {"RUNNING": 1})
        assert study_at(client)["goals"] == {"0": job.resource}
        study.tell(job, 4.25)
        until(lambda: study_at(client)["values"] == 1)
        assert study_at(client)["best"]["value"] == 4.25
        assert client.get(path).json()["leases"] == []


def test_the_page_shows_expired_leases(url: str) -> None:
    study = made(url, lease=50)
    assert open_store(url, "rates").heartbeat([claim_of(asked(study))], -7) == []
    with client_of(url) as client:
        (lease,) = client.get("/v1/studies/rates").json()["leases"]
    assert lease["seconds"] <= -7


def test_equal_errors_are_reported_once(url: str) -> None:
    study = made(url, retries=1, scheduler="fifo")
    for error in (ERROR, ERROR, "other", ERROR):
        job = asked(study)
        study.fail(job, error)
    with client_of(url) as client:
        failures = study_at(client)["failures"]
    assert {row["error"] for row in failures["groups"]} <= {ERROR, "other"}
    assert sum(row["count"] for row in failures["groups"]) == failures["trials"]
    states = [trial.state for trial in study.trials if trial.error]
    assert sum(row["goes_on"] for row in failures["groups"]) == states.count("PENDING")  # type: ignore[arg-type]


def test_several_objectives_have_a_front_and_constraints_are_counted(url: str) -> None:
    study = made(url, max_trials=30, mode={"loss": "min", "speed": "max"}, searcher="tpe")
    study.run(
        lambda config: {
            "loss": config["depth"],
            "speed": config["depth"] ** 2 * config["rate"],
            "constraints": {"memory": config["depth"] - 7.5},
        }
    )
    with client_of(url) as client:
        found = study_at(client)
    assert sorted(each["trial"] for each in found["front"]["trials"]) == [
        trial.number for trial in study.best_trials
    ]
    violated = [trial for trial in study.trials if not trial.is_feasible]
    assert found["constraints"][0]["name"] == "memory"
    assert found["constraints"][0]["violated"] == len(violated) == found["infeasible"]
    assert found["curve"] is None
    assert [sorted(shares) for shares in found["configs"]["importance"]] == [["depth", "rate"]] * 2


def test_a_large_study_has_a_small_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlineauto.tune.watching._POINTS", 80)
    study = made(f"sqlite:///{tmp_path / 's.db'}", max_trials=150, scheduler="fifo")
    for number in range(150):
        job = asked(study)
        if number % 3:
            study.tell(job, 1.0 / (1 + number))
        else:
            study.fail(job, f"error {number}" + "x" * 5000)
    with client_of(f"sqlite:///{tmp_path / 's.db'}") as client:
        answer = client.get("/v1/studies/study")
        assert answer.status_code == 404
        answer = client.get("/v1/studies/rates")
    found = answer.json()["study"]
    assert len(answer.content) < 200_000
    assert found["values"] == 100
    assert len(found["curve"]["points"]) == 80
    assert found["curve"]["points"][-1][0] == 100
    assert (
        found["curve"]["best"][-1][1] == found["best"]["value"] == min(p[1] for p in found["curve"]["points"])
    )
    assert (found["failures"]["kinds"], len(found["failures"]["groups"])) == (50, 20)
    assert found["failures"]["groups"][0]["error"].startswith("error 147")


def test_the_store_is_read_and_never_written(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    study = made(f"sqlite:///{file}")
    study.run(loss)

    def content() -> list[Any]:
        with closing(sqlite3.connect(file)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
            return [
                *tables,
                *connection.execute("SELECT * FROM onlineauto_record"),
                *connection.execute("SELECT study, version FROM onlineauto_snapshot"),
            ]

    before = content()
    handlers = StudyHandlers(f"sqlite:///{file}")
    with AppClient(study_app(handlers, Tokens())) as client:
        study_at(client)
        reader = handlers._reader
        assert reader is not None
        with pytest.raises(Exception, match="readonly"), reader._engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM onlineauto_study")
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert client.request(method, "/v1/studies/rates").status_code == 405
    assert content() == before


def test_a_store_without_a_study_is_empty_until_one_begins(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    sqlite3.connect(file).close()
    file.touch()
    with client_of(f"sqlite:///{file}") as client:
        assert client.get("/v1/studies").json() == []
        assert client.get("/v1/studies/rates").status_code == 404
        made(f"sqlite:///{file}")
        assert [each["name"] for each in client.get("/v1/studies").json()] == ["rates"]


def test_a_store_that_is_missing_locked_or_newer_is_named_and_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onlineauto.tune.store.store_reader._BUSY", 0.1)
    file, away = tmp_path / "s.db", tmp_path / "away.db"
    made(f"sqlite:///{file}").run(loss)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # writes all into one file

    def message(client: httpx.Client) -> str:
        for path in ("/v1/studies", "/v1/studies/rates"):
            answer = client.get(path)
            assert answer.status_code == 503
        return str(answer.json()["error"]["message"])

    with client_of(f"sqlite:///{file}") as client:
        assert study_at(client)["trials"] == 9
        file.rename(away)
        assert "there is no file" in message(client)
        assert not file.exists()
        away.rename(file)
        assert study_at(client)["trials"] == 9
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            assert "a process holds the lock" in message(client)
            connection.execute("ROLLBACK")
            assert study_at(client)["trials"] == 9
            connection.execute("UPDATE onlineauto_schema SET version = 99")
            assert "has schema 99, which a later version of onlineauto wrote" in message(client)
            connection.execute("UPDATE onlineauto_schema SET version = 1")
        assert study_at(client)["trials"] == 9


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["sqlite:///missing.db", "--serve"], 2, "missing.db, so no study"),
        (["sqlite:///other.db", "--serve"], 1, "is damaged, or not a store"),
        (["sqlite:///newer.db", "--serve"], 1, "has schema 99"),
        (["sqlite:///s.db", "--serve", "--host", "0.0.0.0"], 2, "there are no tokens"),  # noqa: S104
        (["sqlite:///s.db", "--serve", "--tokens", "none"], 2, "--tokens none: there is no such file"),
        (["mysql://x", "--serve"], 2, "a store cannot be in mysql"),
        ([], 2, "studies takes one store"),
        (["sqlite:///s.db", "--port", "70000"], 2, "--port"),
    ],
)
def test_a_page_that_cannot_be_served_is_explained(
    words: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("s", "newer"):
        made(f"sqlite:///{name}.db")
    with closing(sqlite3.connect("newer.db")) as connection:
        connection.execute("UPDATE onlineauto_schema SET version = 99")
        connection.commit()
    Path("other.db").write_bytes(b"not a database" * 100)
    assert main(["studies", *words]) == code
    assert message in capsys.readouterr().err
    assert not Path("missing.db").exists()


def test_a_token_is_needed_where_there_are_tokens_and_a_page_of_another_site_gets_nothing(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    made(url)
    reading, ranking = (add_token(tmp_path / "tokens", [scope]) for scope in ("read", "rank"))
    with client_of(url, Tokens(tmp_path / "tokens")) as client:
        assert client.get("/").status_code == 200
        for path in ("/v1/studies", "/v1/studies/rates"):
            statuses = [
                client.get(path, headers=headers).status_code
                for headers in ({}, *({"Authorization": f"Bearer {each}"} for each in (ranking, reading)))
            ]
            assert statuses == [401, 403, 200]
    with client_of(url) as client:
        assert client.get("/v1/studies", headers={"Origin": "http://evil.example"}).status_code == 403
        assert client.get("/v1/studies", headers={"Host": "evil.example"}).status_code == 403
        assert "default-src 'none'" in client.get("/").headers["content-security-policy"]


def test_a_study_that_cannot_be_opened_does_not_hide_the_others(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    made(url, "a")
    made(url, "b")
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        connection.execute("UPDATE onlineauto_record SET body = 'x' WHERE version = 1 AND study = 1")
        connection.commit()
    with client_of(url) as client:
        first, second = client.get("/v1/studies").json()
        assert "record 1 of" in first["error"]
        assert second["trials"] == 0
        assert study_at(client, "b")["trials"] == 0


def test_damage_of_an_open_study_affects_only_its_page(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    study, _ = made(url, "a"), made(url, "b")
    handlers = StudyHandlers(url)
    with AppClient(study_app(handlers, Tokens())) as client:
        assert study_at(client, "a")["trials"] == study_at(client, "b")["trials"] == 0
        study.ask()
        with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
            connection.execute("UPDATE onlineauto_record SET version = 9 WHERE version = 2 AND study = 1")
            connection.commit()
        open_studies = handlers._known.copy()
        answer = client.get("/v1/studies/a")
        assert answer.status_code == 422
        assert "record 2 of" in answer.text
        assert handlers._known == open_studies, "the store was closed"
        assert handlers._known["b"].watch is not None
        assert client.get("/v1/studies/a").status_code == 422
        assert study_at(client, "b")["trials"] == 0
        assert "record 2 of" in client.get("/v1/studies").json()[0]["error"]


def test_studies_that_were_opened_longest_ago_are_forgotten_beyond_the_records_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onlineauto.cli.study_page._MOST_RECORDS", 2)
    url = f"sqlite:///{tmp_path / 's.db'}"
    for name in "abc":
        made(url, name)
    handlers = StudyHandlers(url)
    with AppClient(study_app(handlers, Tokens())) as client:
        for name in "abcb":
            study_at(client, name)
        assert [name for name, value in handlers._known.items() if value.watch] == ["c", "b"]
        assert not handlers._known["a"].text
        assert [each["trials"] for each in client.get("/v1/studies").json()] == [0, 0, 0]


def test_a_log_of_optuna_and_a_custom_scheduler_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Own(FifoScheduler):
        name = "own"

    url = f"sqlite:///{tmp_path / 's.db'}"
    SqlStore(url, "a log").begin({"kind": "study", "settings": {"log": "optuna"}})
    made(url, "custom", scheduler=Own())
    made(url)
    assert main(["studies", url]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "a log: it is a log of optuna, and no study of onlineauto",
        "custom: the study has a custom scheduler 'own': pass it as scheduler=",
        "rates: no trials",
    ]
    with client_of(url) as client:
        assert [each.get("error", "") for each in client.get("/v1/studies").json()] == [
            *(line.partition(": ")[2] for line in lines[:2]),
            "",
        ]
        assert client.get("/v1/studies/custom").status_code == 422
        assert study_at(client)["trials"] == 0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str], str]]:
    """Yield the page of a store in a process: its address, the process, and the URL of the store."""
    url = f"sqlite:///{tmp_path / 's.db'}"
    made(url, EVIL)
    command = [sys.executable, "-m", "onlineauto", "studies", url, "--serve", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.match(r"(http://127\.0\.0\.1:\d+/) shows the studies of ", line)
    assert found is not None, line
    yield found[1], process, url
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_page(
    served: tuple[str, subprocess.Popen[str], str], number: signal.Signals
) -> None:
    address, process, _ = served
    assert len(httpx.get(f"{address}v1/studies", timeout=PATIENCE).json()) == 1
    process.send_signal(number)
    assert process.wait(PATIENCE) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


@pytest.mark.ci
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
def test_a_browser_shows_a_study_and_escapes_its_texts(
    served: tuple[str, subprocess.Popen[str], str], tmp_path: Path
) -> None:
    address, _, url = served
    study = Study.load(EVIL, storage=url)
    empty = page_text(address, tmp_path)
    assert "No trial has a value yet." in empty
    assert "none yet" in empty
    for number in range(6):
        job = asked(study)
        if number == 3:
            study.fail(job, ERROR)
        else:
            study.tell(job, loss(job.config, job.resource))
    assert study.ask() is not None
    page = page_text(address, tmp_path)
    body = page.split("<script>")[0]
    assert "&lt;script&gt;alert('study')&lt;/script&gt;/../ü" in body
    assert "&lt;img src=x onerror=alert(1)&gt; &amp; &lt;b&gt;shape&lt;/b&gt;" in body
    assert "<img" not in body
    assert f"The best is {study.best_value:.6g}, of trial {study.best_trial.number} at 1." in body
    assert "1 jobs of 1 workers" in body
    assert re.search(r"lease[^>]*>in \d+ s<", body)
    assert body.count("<svg") == 2
    # The page has polled several times, and has drawn what changed once.
    assert 'data-redrawn="1"' in page
    draw(page, tmp_path / "page.png", tmp_path, size=(390, 2000))
    assert (tmp_path / "page.png").stat().st_size > 20_000
