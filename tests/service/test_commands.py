"""The commands ``serve`` and ``loop``."""

from __future__ import annotations

import io
import json
import re
import socket
from pathlib import Path

import httpx
import pytest

from onlineauto.cli.main import main
from onlineauto.errors import InputError
from onlineauto.service.http.tokens import Tokens, add_token
from onlineauto.service.log.segment_log import SegmentLog, sealed
from onlineauto.service.loop.folder import FolderLock
from onlineauto.service.loop.loop import Loop
from onlineauto.service.options import VERSION
from onlineauto.workspace.workspace import Workspace
from tests.service.serving import MODEL, Service
from tests.service.traffic import CONFIGURATION, decision, record, records, reward
from tests.waiting import until


def run_command(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, err = capfd.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "one folder"),
        (["loop"], "give --cb_explore_adf"),
        (["loop", "--cb_explore_adf", "--host", "0.0.0.0"], "there are no tokens"),  # noqa: S104
        (["loop", "--cb_explore_adf", "-f", "x"], "--final_regressor has no effect on a service"),
        (["loop", "--cb_explore_adf", "--workers", "4"], "--workers has no effect on a service; --learners"),
        (["loop", "--cb_explore_adf", "--passes", "3"], "--passes has no effect on a service"),
        (["loop", "--cb_explore_adf", "-t"], "--testonly has no effect on a service"),
        (["loop", "--cb_explore_adf", "-i", "x"], "PUT /v1/model replaces the model"),
        (["loop", "--cb_explore_adf", "--mode", "never"], "mode takes one of online"),
        (["loop", "--cb_explore_adf", "--reward_aggregation", "median"], "one of first, last"),
        (["loop", "--cb_explore_adf", "--reward_wait", "1e9"], "at most 30 days"),
        (["loop", "--cb_explore_adf", "--reward_wait", "P31D"], "at most 30 days"),
        (["loop", "--cb_explore_adf", "--reward_wait", "soon"], "a duration like PT10M"),
        (["loop", "--ccb_explore_adf"], "send POST /v1/rank/slots"),
        (["loop", "--cb_explore_adf", "--control", "half"], "takes a share such as 5%"),
        (["loop", "--cb_explore_adf", "--control", "60%"], "give shares from 0 to 0.5"),
        (["loop", "--cb_explore_adf", "--guardrails", "a b"], "give a name of at most 64 letters"),
        (["loop", "--cb_explore_adf", "--guardrails", "a,a:rollback"], "at most 8 different names"),
        (["loop", "--cb_explore_adf", "--guardrails", "reward:rollback"], "give --control 5%"),
        (["loop", "--cb_explore_adf", "--guardrails", "reward", "--control", "1%"], "1.5% of the units"),
        (["loop", "--follow", "http://127.0.0.1:1", "--guardrails", "reward"], "settings of its learner"),
        (["loop", "--follow", "http://127.0.0.1:1", "--standby", "x"], "--standby is for the learner"),
        (["loop", "--cb_explore_adf", "--standby", "nowhere", "--port", "0"], "--standby does not exist"),
        (["loop", "--cb_explore_adf", "--tokens", "nowhere"], "there is no such file"),
        (
            ["loop", "--cb_explore_adf", "--ship", "nowhere"],
            "--ship nowhere: there is no such folder; make it",
        ),
        (["loop", "--cb_explore_adf", "--host", "no.such.host.invalid"], "there are no tokens"),
        (["loop", "--cb_explore_adf", "--prot", "1"], "--port"),
        (["loop", "--cb_explore_adf", "--cost_range", "0,1"], "give their range as --reward_range LOW,HIGH"),
        (["loop", "--cb_explore_adf", "--reward_range", "1"], "takes two numbers"),
        (["loop", "--cb_explore_adf", "--reward_range", "1,0"], "the lower one first"),
        (["loop", "--cb_explore_adf", "--reward_range", "1,2"], "with the default reward between them"),
    ],
)
def test_invalid_options_are_reported(
    words: list[str],
    message: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run_command(capfd, "serve", *words, "--port", "0")
    assert code == 2
    assert message in err


@pytest.mark.parametrize("alone", ["--ship", "--log_topic", "--follow"])
def test_options_of_one_loop_are_rejected_where_there_are_others(
    alone: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "loop.json").write_text('{"options": "--cb_explore_adf"}')
    model = [] if alone == "--follow" else ["--cb_explore_adf"]
    (tmp_path / "x").mkdir()
    words = (*model, alone, str(tmp_path / "x"), "--port", "0")
    code, _, err = run_command(capfd, "serve", str(tmp_path), *words)
    assert code == 2
    assert f"{alone} is for the loop 'default' only" in err


def test_the_address_of_a_learner_needs_a_scheme(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("serve", str(tmp_path / "rank"), "--follow", "learner:8001", "--port", "0")
    code, _, err = run_command(capfd, *words)
    *lines, message = err.splitlines()
    starting, failed = map(json.loads, lines)
    assert (code, starting["event"], failed["event"]) == (1, "starting", "failed")
    assert message == f"onlineauto: error: {failed['message']}"
    assert "'learner:8001' is not the address of a service: give http://HOST:PORT" in err


def test_an_address_that_is_taken_is_named(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, err = run_command(capfd, "serve", "loop", "--cb_explore_adf", "--port", port)
    assert code == 2
    failed, _ = err.splitlines()
    assert f"cannot listen to 127.0.0.1:{port}" in json.loads(failed)["message"]


def test_a_service_whose_folder_is_in_use_logs_its_failure(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = FolderLock(tmp_path / "loop")
    words = ("serve", str(tmp_path / "loop"), "--cb_explore_adf", "--port", "0", "--quiet")
    code, _, err = run_command(capfd, *words)
    other.release()
    failed, _ = err.splitlines()
    line = json.loads(failed)
    assert (code, line["level"], line["event"]) == (1, "critical", "failed")
    assert "another service runs in" in line["message"]


@pytest.mark.ci
def test_a_folder_can_be_inspected_and_exported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "loop"
    with Service(folder) as service, httpx.Client(base_url=service.url, timeout=30) as client:
        for number in range(40):
            actions = {"a": {"x": {"one": 1}}, "b": {"x": {"two": 1}}}
            body = {"event_id": f"e{number}", "context": {"u": {f"v{number % 3}": 1}}, "actions": actions}
            answer = client.post("/v1/rank", json=body).json()
            client.post("/v1/reward", json={"event_id": f"e{number}", "reward": float(answer["index"])})
        assert client.post("/v1/rank", json={"event_id": "e1", "actions": {"e1": 5}}).status_code == 400
        for host in ("rebound.example:8001", "[bad", ""):
            assert client.get("/v1/status", headers={"Host": host}).status_code == 403
        assert client.get("/healthz", headers={"Host": "localhost"}).status_code == 200
        (folder / "tokens").write_text("damaged\n")
        until(lambda: client.get("/v1/status").status_code == 401)
        (folder / "tokens").unlink()
        token = add_token(folder / "tokens", ["admin"])
        client.headers["Authorization"] = f"Bearer {token}"
        until(lambda: client.get("/v1/status").status_code == 200)
        with (folder / "tokens").open("a") as lines:
            lines.write("damaged\n")
        until(lambda: client.get("/v1/status").json()["warnings"] != [])
        assert "the tokens cannot be read, the earlier ones hold" in client.get("/v1/status").text
        (folder / "tokens").unlink()
        with client.stream("GET", "/v1/events") as stream:
            assert next(stream.iter_lines()).startswith('data: {"ranked":40')
            assert service.stop() == 0  # a page that watches does not keep it waiting
    assert "e1" not in re.sub(r'"time":"[^"]*"', "", service.log.read_text())  # no ids, no features
    starting, *_, stopped = map(json.loads, service.log.read_text().splitlines())
    assert (starting["event"], starting["version"]) == ("starting", VERSION)
    assert stopped["event"] == "stopped"
    assert (folder / "snapshot.oam").stat().st_mode & 0o777 == 0o600
    code, out, _ = run_command(capfd, "loop", str(folder))
    assert code == 0
    assert re.search(r"joined +40", out)
    code, out, _ = run_command(capfd, "loop", str(folder), "--event", "e7")
    assert "the action is the one that its id and its probabilities give" in out
    assert out.count('"EventId":"e7"') == 2
    code, out, _ = run_command(capfd, "loop", str(folder), "--event", "e7", "--app", "x")
    assert "the seed is not that of app 'x'" in out
    assert run_command(capfd, "loop", str(folder), "--event", "nobody")[0] == 1
    _, _, err = run_command(capfd, "loop", str(tmp_path / "lop"), "--new_token", "rank")
    assert err == f"{tmp_path / 'lop'} is a new folder\n"
    code, token, err = run_command(capfd, "loop", str(folder), "--new_token", "rank,reward")
    assert err == ""
    headers = {"authorization": f"Bearer {token.strip()}"}
    assert Tokens(folder / "tokens").scopes(headers) == {"rank", "reward"}
    assert run_command(capfd, "loop", str(folder), "--new_token", "root")[0] == 2
    new_token = ("loop", str(folder), "--new_token", "rank", "--token_loops")
    code, token, _ = run_command(capfd, *new_token, "shop,news")
    headers = {"authorization": f"Bearer {token.strip()}"}
    assert Tokens(folder / "tokens").scopes(headers, "news") == {"rank"}
    assert Tokens(folder / "tokens").scopes(headers, "default") == frozenset()
    assert run_command(capfd, *new_token, "no such")[0] == 2
    assert run_command(capfd, "loop", str(folder), "--token_loops", "shop")[0] == 2
    log, model = tmp_path / "joined.dsjson", tmp_path / "model.oam"
    assert run_command(capfd, "loop", str(folder), "--export", str(log))[0] == 0
    assert run_command(capfd, "-d", str(log), "--dsjson", *MODEL, "-f", str(model), "--quiet")[0] == 0
    assert weights_of(model) == weights_of(folder / "snapshot.oam")
    assert (
        run_command(capfd, "evaluate", str(log), "--dsjson", "--policy", "--cb_explore_adf -q ::", "--quiet")[
            0
        ]
        == 0
    )


def weights_of(path: Path) -> bytes:
    file = io.BytesIO()
    workspace = Workspace.load(path, dsjson=True)
    workspace.learner.current_pass = 0  # the command line has ended a pass, and a service never does
    workspace.save(file)
    return file.getvalue()


def test_a_folder_without_a_log_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = run_command(capfd, "loop", str(tmp_path))
    assert (code, "it has no log" in err) == (1, True)
    assert run_command(capfd, "loop")[0] == 2


def test_events_are_erased_while_no_service_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "loop"
    log = SegmentLog(folder / "log")
    log.append(list(records(20)))
    log.close()
    held = FolderLock(folder)
    code, _, err = run_command(capfd, "loop", str(folder), "--erase", "e1,e2")
    assert code == 1
    assert "stop it before" in err
    held.release()
    code, out, _ = run_command(capfd, "loop", str(folder), "--erase", "e1,e2")
    assert (code, out) == (0, f"{folder}: 2 decisions have no features now, 0 had none already\n")
    _, out, _ = run_command(capfd, "loop", str(folder), "--erase", "e1,e3")
    assert out == f"{folder}: 1 decisions have no features now, 1 had none already\n"
    lines = [line for _, line in SegmentLog(folder / "log").lines(0) if b'"EventId":"e1"' in line]
    assert b'"article"' not in b"".join(lines)
    assert b'"_tag":"politics"' in lines[0]
    assert run_command(capfd, "loop", str(folder), "--erase", "nobody")[0] == 1


def test_the_events_of_a_user_are_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = SegmentLog(tmp_path / "loop" / "log")
    users = {"e1": "tom", "e2": "ann", "tom": "ann", "e3": "tom"}
    log.append([decision(event_id, 1.0, user=user) for event_id, user in users.items()])
    damaged = decision("e4", 1.0, user="tom").replace(b"e4", b"e5")
    log.append([reward("e1", 2.0, 1.0), damaged, decision("e6", 1.0, user="tom")])
    log.close()
    code, out, err = run_command(capfd, "loop", str(tmp_path / "loop"), "--find", "tom")
    assert (code, out.split()) == (0, ["e1", "e3", "e6"])
    assert "is damaged, and may belong to 'tom'" in err


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Zoë", ["name", "escaped"]),
        ("user/17", ["slash"]),
        ("17", ["number", "float", "twice"]),
        ('a"b', ["quoted"]),
        ("171", ["others"]),
        ("true", []),
        ("18446744073709551617", ["large"]),
    ],
)
def test_events_are_found_however_a_name_or_value_is_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, found: list[str]
) -> None:
    values = {
        "name": '{"Zoë":2}',
        "escaped": r'{"id":"Zo\u00eb"}',
        "slash": r'{"id":"user\/17"}',
        "number": '{"id":17}',
        "float": '{"id":[17.0]}',
        "twice": '{"id":17,"id":18}',
        "quoted": r'{"id":"a\"b"}',
        "others": '{"id":"user-17","is":true,"n":171}',
        "large": '{"id":18446744073709551617}',
    }
    log = SegmentLog(tmp_path / "loop" / "log")
    for event_id, value in values.items():
        line = decision(event_id, 2.0).replace(b'{"tom":1}', value.encode())
        log.append([sealed(line[: line.rindex(b',"crc":')] + b"}")])
    log.close()
    code, out, err = run_command(capfd, "loop", str(tmp_path / "loop"), "--find", text)
    assert (code, out.split(), err) == (0, found, "")


def test_events_are_erased_in_the_logs_of_rank_servers_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / "learner", tmp_path / "rank1"]
    for folder, count in zip(folders, (20, 10), strict=True):
        log = SegmentLog(folder / "log")
        log.append(list(records(count)))
        log.close()
    names = [str(each) for each in folders]
    held = FolderLock(folders[1])
    assert run_command(capfd, "loop", *names, "--erase", "e1")[0] == 1
    assert b"".join(line for _, line in SegmentLog(folders[0] / "log").lines(0)).count(b'"article"') >= 20
    held.release()
    code, out, err = run_command(capfd, "loop", *names, "--erase", "e1,e18,nobody")
    assert (code, [line.partition(": ")[2][:11] for line in out.splitlines()]) == (
        1,
        ["2 decisions", "1 decisions"],
    )
    assert "no decision nobody" in err
    for folder in folders:
        lines = [line for _, line in SegmentLog(folder / "log").lines(0) if b'"EventId":"e1"' in line]
        assert b'"article"' not in b"".join(lines)
    code, _, err = run_command(capfd, "loop", *names, "--erase", "e18")
    assert code == 1
    assert f"none of these decisions is in {names[1]}:" in err


def test_an_erasure_skips_and_locates_damaged_records(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = list(records(20))
    for number, line in enumerate(lines):  # wherever it is
        before = [*lines[:number], line[:40] + b"?" + line[41:], *lines[number + 1 :], lines[0]]
        folder = tmp_path / str(number)
        log = SegmentLog(folder / "log")
        log.append(before)
        log.close()
        code, out, _ = run_command(capfd, "loop", str(folder), "--erase", "e1,e18")
        assert code == 0
        assert "1 records cannot be read; a feature may be left in them\n" in out
        assert f"the record at byte {sum(map(len, lines[:number]))} of 0" in out
        after = [each for _, each in SegmentLog(folder / "log", keep_damaged=True).lines(0)]
        for old, new in zip(before, after, strict=True):
            ours = any(b'"EventId":"%b"' % name in old for name in (b"e1", b"e18"))
            assert len(new) == len(old)
            assert b'"article"' not in new if ours else new == old


def test_a_log_with_a_lost_segment_works_once_its_gap_is_filled(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = list(records(60))
    for lost in ("missing", "shorter", "both"):
        folder = tmp_path / lost
        log = SegmentLog(folder / "log", segment_bytes=4000)
        for line in lines:
            log.append([line])
        log.close()
        paths = sorted((folder / "log").iterdir())
        begins = [int(path.stem) for path in paths]
        gaps = []
        if lost != "shorter":
            paths[2].unlink()
            gaps.append((begins[2], begins[3]))
        if lost != "missing":
            with paths[4].open("r+b") as file:
                file.truncate(1000)
            gaps.append((begins[4] + 1000, begins[5]))
        with pytest.raises(InputError, match=rf"bytes are missing.*onlineauto loop {folder} --fill_gaps"):
            SegmentLog(folder / "log")
        held = FolderLock(folder)
        assert run_command(capfd, "loop", str(folder), "--fill_gaps")[0] == 1
        held.release()
        code, out, _ = run_command(capfd, "loop", str(folder), "--fill_gaps")
        wanted = [
            f"the positions {begin} to {end} of the log are lost: {end - begin} bytes" for begin, end in gaps
        ]
        assert (code, out.splitlines()) == (0, wanted)
        code, out, _ = run_command(capfd, "loop", str(folder))
        assert (code, len(re.findall("was skipped: ", out))) == (0, len(gaps))
        learner = Loop(folder, CONFIGURATION, settings={"reward_wait": 30.0})
        while learner.learn():
            pass
        whole = [
            line for _, line in learner.log.lines(0) if line.startswith(b'{"Type":"rank"') and line in lines
        ]
        assert learner.learner.learnt == len(whole) > 30
        assert learner.learner.skipped == len(gaps)
        learner.close()
        code, out, _ = run_command(capfd, "loop", str(folder), "--fill_gaps")
        assert (code, out) == (0, "nothing is missing between the segments of the log\n")
    with paths[0].open("ab") as file:
        file.write(b"more")
    code, _, err = run_command(capfd, "loop", str(folder), "--fill_gaps")
    assert code == 1
    assert f"cut it to {begins[1]} bytes" in err


@pytest.mark.parametrize("how", ["last is missing", "last is short", "only is missing"])
def test_a_lost_end_of_a_log_is_no_gap_and_its_remedy_works(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], how: str
) -> None:
    folder = tmp_path / "loop"
    log = SegmentLog(folder / "log", segment_bytes=1 << 20 if how == "only is missing" else 4000)
    for line in records(60):
        log.append([line])
    log.close()
    learner = Loop(folder, CONFIGURATION, settings={"reward_wait": 30.0})
    learner.close()
    last = max((folder / "log").iterdir())
    if how == "last is short":
        with last.open("r+b") as file:
            file.truncate(100)
    else:
        last.unlink()
    code, out, err = run_command(capfd, "loop", str(folder), "--fill_gaps")
    assert (code, out) == (1, "")
    assert f"or move {folder / 'snapshot.oam'} to another folder" in err
    with pytest.raises(InputError, match=r"or move snapshot.oam to another folder"):
        Loop(folder, CONFIGURATION)
    (folder / "snapshot.oam").rename(tmp_path / "snapshot.oam")
    code, out, _ = run_command(capfd, "loop", str(folder), "--fill_gaps")
    assert (code, out) == (0, "nothing is missing between the segments of the log\n")
    Loop(folder, CONFIGURATION).close()


def test_flags_of_other_programs_name_the_alternative(capfd: pytest.CaptureFixture[str]) -> None:
    for flag, name in (("--daemon", "onlineauto serve"), ("--oaa", "AutoMLClassifier")):
        code, _, err = run_command(capfd, flag, "3")
        assert code == 2
        assert name in err


def test_records_that_cannot_be_applied_are_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = SegmentLog(tmp_path / "loop/log")
    log.append([*records(3), record("settings", 9.0, Settings={"unheard_of": 1}), *records(3)])
    log.close()
    code, out, _ = run_command(capfd, "loop", str(tmp_path / "loop"))
    assert code == 0
    assert re.search(r"skipped +1\n", out)
    assert re.search(r"the record at byte \d+ of 0+\.dsjson was skipped: .*unheard_of", out)


@pytest.mark.ci
def test_a_declared_range_outlasts_a_restart(tmp_path: Path) -> None:
    for words in (["--reward_range", "0,1"], []):
        with Service(tmp_path / "loop", *words) as service:
            answer = httpx.post(f"{service.url}/v1/reward", json={"event_id": "e", "reward": 2})
            assert answer.status_code == 422
            settings = httpx.get(f"{service.url}/v1/status").json()["settings"]
            assert settings["reward_range"] == [0.0, 1.0]
