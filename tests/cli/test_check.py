"""The verb ``check``: each fault of a log is found, and a sound log has none."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest

from onlineauto import InputError, OptionError, Workspace, datasets
from onlineauto.api.log_check import LogReport, check_log
from onlineauto.cli.main import main

ARMS = ("art", "news", "sport")


def log(
    n: int = 600,
    *,
    context: Callable[[float], str] | None = None,
    probabilities: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3),
    logged: float | None = None,
    seed: int = 1,
) -> list[str]:
    """Return events in VW text whose actions are drawn with `probabilities`, and say `logged` if given."""
    draw = random.Random(seed)
    events = []
    for number in range(n):
        chosen = draw.choices(range(3), probabilities)[0]
        cost = -float(draw.random() < 0.5)
        user = f"u{number % 7}" if context is None else context(cost)
        lines = [f"shared |user {user} s{draw.random():.6f}"]
        for arm, name in enumerate(ARMS):
            label = f"{arm}:{cost}:{logged or probabilities[arm]} " if arm == chosen else ""
            lines.append(f"{label}|item {name}")
        events.append("\n".join(lines) + "\n\n")
    return events


def codes(report: LogReport) -> dict[str, str]:
    return {finding.code: finding.severity for finding in report.findings}


def found(events: list[str]) -> dict[str, str]:
    return codes(check_log("".join(events).encode()))


def test_sound_log_has_no_findings() -> None:
    assert found(log()) == {}


@pytest.mark.parametrize("name", ["cb-surveys-u", "cb-surveys-e", "cb-penbased-u", "cb-diamonds-u"])
@pytest.mark.lane("ci")
def test_installed_sets_have_no_errors(name: str) -> None:
    assert codes(check_log(datasets.path(name))) == {}


def greedy(n: int = 2000, arms: int = 10, epsilon: float = 0.01) -> list[str]:
    """Return a sound log of a policy that hardly explores; the reward depends on the action alone."""
    draw, events = random.Random(2), []
    for number in range(n):
        favourite = number % 3
        weights = [epsilon / arms + (1 - epsilon) * (arm == favourite) for arm in range(arms)]
        chosen = draw.choices(range(arms), weights)[0]
        lines = [f"shared |user s{draw.random():.6f}"]
        for arm in range(arms):
            label = f"{arm}:{-float(arm == 0)}:{weights[arm]} " if arm == chosen else ""
            lines.append(f"{label}|item a{arm}")
        events.append("\n".join(lines) + "\n\n")
    return events


def periodic(n: int = 2000) -> list[str]:
    """Return a sound log whose contexts come again and again, with the same choices and rewards."""
    hours = (f"hour h{number % 24}" for number in range(n))
    return [f"shared |{hour}\n0:-{number % 2}:1 |item a\n|item b\n\n" for number, hour in enumerate(hours)]


def test_sound_logs_have_no_errors() -> None:
    assert "error" not in found(greedy()).values()
    assert found(periodic())["repeated-part"] == "note"


@pytest.mark.parametrize(
    ("events", "code", "severity"),
    [
        (
            [event.replace("|item news", "|item art") for event in log()],
            "duplicate-actions",
            "error",
        ),
        (log(logged=0.1), "wrong-probabilities", "error"),
        (log(logged=0.9), "wrong-probabilities", "warning"),
        (log(probabilities=(0.5, 0.5, 0.0)), "never-tried", "warning"),
        (log(context=lambda cost: "lucky" if cost else "unlucky"), "leak", "error"),
        (log(context=lambda cost: f"price:{2 * cost + 5}"), "leak", "error"),
        (log() + log()[100:300], "repeated-part", "error"),
        ([event.replace(":-1.0:", ":-0.0:") for event in log()], "constant-cost", "warning"),
        ([event.replace(":-1.0:", ":1.0:") for event in log()], "positive-costs", "note"),
        ([*log(), "shared |user a\n0:x:0.5 |item art\n|item news\n\n"], "malformed", "error"),
        (["shared |user a\n|item art\n|item news\n\n"] * 300, "unlabelled", "error"),
    ],
    ids=lambda value: value if isinstance(value, str) else "log",
)
def test_fault_is_found(events: list[str], code: str, severity: str) -> None:
    assert found(events) == {code: severity}


def test_constant_namespace_is_a_note() -> None:
    events = [event.replace("|user", "|site same |user") for event in log()]
    assert found(events) == {"constant": "note"}


def decisions(n: int = 300) -> list[dict[str, object]]:
    draw = random.Random(3)
    lines: list[dict[str, object]] = []
    for number in range(n):
        p = [0.5, 0.3, 0.2]
        chosen = draw.choices(range(3), p)[0]
        order = [chosen, *(arm for arm in range(3) if arm != chosen)]
        actions = [{"item": {name: 1}} for name in ARMS]
        lines.append(
            {
                "_label_cost": -float(draw.random() < 0.5),
                "_label_probability": p[chosen],
                "_label_Action": chosen + 1,
                "_labelIndex": chosen,
                "Timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.0000000Z",
                "EventId": f"e{number}",
                "a": [arm + 1 for arm in order],
                "p": [p[arm] for arm in order],
                "c": {"user": {"s": draw.random()}, "_multi": actions},
            }
        )
    return lines


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"p": [0.5, 0.3, 0.1]}, "bad-probabilities"),
        ({"a": [1, 1, 2]}, "bad-ranking"),
        ({"EventId": "e5"}, "repeated-ids"),
        ({"Timestamp": "2025-01-01T00:00:00.0000000Z"}, "times-go-back"),
    ],
)
def test_fault_of_a_dsjson_log_is_found(change: dict[str, object], code: str, tmp_path: Path) -> None:
    sound = decisions()
    path = tmp_path / "log.dsjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in sound))
    assert codes(check_log(path, dsjson=True)) == {}
    sound[200] |= change
    path.write_text("".join(json.dumps(line) + "\n" for line in sound))
    report = check_log(path, dsjson=True)
    (finding,) = (finding for finding in report.findings if finding.code == code)
    assert (finding.count, finding.places) == (1, ["line 201"])


def test_later_rewards_are_joined_and_those_without_a_decision_are_reported(tmp_path: Path) -> None:
    path, lines = tmp_path / "log.dsjson", decisions(200)
    rewards = [{"EventId": f"e{number}", "RewardValue": number % 2} for number in range(210)]
    unlabelled = [{name: line[name] for name in line if "label" not in name} for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*unlabelled, *rewards]))
    report = check_log(path, dsjson=True)
    assert (report.labelled, codes(report)) == (200, {"unmatched-rewards": "warning"})


def test_places_name_the_file_if_there_are_several(tmp_path: Path) -> None:
    paths = [tmp_path / "a.dsjson", tmp_path / "b.dsjson"]
    for path in paths:
        path.write_text("".join(json.dumps(line) + "\n" for line in decisions(30)))
    (finding,) = (
        finding for finding in check_log(paths, dsjson=True).findings if finding.code == "repeated-ids"
    )
    assert (finding.count, finding.places[0]) == (30, f"{paths[1]}, line 1")


@pytest.mark.parametrize("later", ["2026-01-01T00:00:00.5Z", "2026-01-01T01:30:00+01:00"])
def test_times_are_compared_as_times(later: str, tmp_path: Path) -> None:
    path, lines = tmp_path / "log.dsjson", decisions(2)
    for line, time in zip(lines, ("2026-01-01T00:00:00Z", later), strict=True):
        line["Timestamp"] = time
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "times-go-back" not in codes(check_log(path, dsjson=True))


COLUMNS: dict[str, Any] = {
    "context": ["user", "site"],
    "actions": "item",
    "reward": "click",
    "probability": "p",
}


def table(n: int = 400) -> dict[str, list[Any]]:
    """Return a sound log in columns."""
    draw = random.Random(4)
    return {
        "user": [f"u{draw.randrange(9)}" for _ in range(n)],
        "site": [f"s{draw.randrange(3)}" for _ in range(n)],
        "item": [draw.choice(ARMS) for _ in range(n)],
        "click": [float(draw.random() < 0.4) for _ in range(n)],
        "p": [1 / 3] * n,
        "when": [datetime(2026, 1, 1) + timedelta(minutes=row) for row in range(n)],
    }


@pytest.mark.parametrize("kind", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_faults_of_a_frame_are_found_by_row(kind: Any) -> None:
    columns = table()
    assert codes(check_log(kind(columns), **COLUMNS, time="when")) == {}
    columns["p"][5:7] = [1.5, 0.0]
    columns["click"][9] = None
    columns["when"][20] = columns["when"][3]
    columns["site"] = ["only"] * 400
    report = check_log(kind(columns), **COLUMNS, time="when")
    found = {finding.code: finding.places for finding in report.findings}
    assert {
        place for finding in report.findings if finding.code == "malformed" for place in finding.places
    } == {
        "row 5",
        "row 6",
    }
    assert found["times-go-back"] == ["row 20"]
    assert codes(report)["constant"] == "note"
    assert (report.events, report.labelled) == (398, 397)


def test_context_that_describes_the_logged_action_is_a_leak() -> None:
    columns = table()
    draw, prices = random.Random(5), {"art": (3, 4), "news": (7, 8), "sport": (9, 11)}
    columns["price"] = [draw.choice(prices[item]) for item in columns["item"]]
    report = check_log(pandas.DataFrame(columns), **COLUMNS | {"context": ["user", "site", "price"]})
    (finding,) = report.findings
    assert (finding.severity, finding.code) == ("warning", "leak")
    assert finding.message.startswith("namespace 'price' of the context tells which action was logged")


def test_context_by_which_actions_are_chosen_is_no_leak() -> None:
    columns = table()
    columns["item"] = [ARMS[int(user[1]) % 3] for user in columns["user"]]
    columns["p"] = [0.99] * 400
    assert "leak" not in codes(check_log(pandas.DataFrame(columns), **COLUMNS))


def test_support_of_a_policy_on_a_frame() -> None:
    policies = {"uniform": Workspace(cb_explore_adf=True, epsilon=1.0)}
    report = check_log(pandas.DataFrame(table()), **COLUMNS, policies=policies)
    (finding,) = (finding for finding in report.findings if finding.code == "support")
    assert (finding.severity, finding.count) == ("note", 400)
    with pytest.raises(InputError, match="policies need a log that can be read twice"):
        check_log(iter([]), policies=policies)


@pytest.mark.parametrize("kind", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_column_of_times_is_no_feature(kind: Any) -> None:
    columns = {name: column for name, column in COLUMNS.items() if name != "context"}
    assert codes(check_log(kind(table()), **columns, time="when")) == {}


@pytest.mark.parametrize("kind", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_column_of_times_in_the_context_is_named_as_the_time(kind: Any) -> None:
    columns = {name: column for name, column in COLUMNS.items() if name != "context"}
    frame = kind(table() | {"when": [None, *table()["when"][1:]]})
    message = r"row 1: when: .*, such as the weekday and the hour; .* check_log\(…, time='when'\)$"
    with pytest.raises(InputError, match=message):
        check_log(frame, **columns)
    with pytest.raises(InputError, match=r"such as the weekday and the hour$"):
        check_log(kind(table()), **columns, time="click", context=["when"])


def test_times_that_cannot_be_compared_are_refused() -> None:
    frame = pandas.DataFrame(table() | {"when": [datetime(2026, 1, 1), 3] * 200})
    with pytest.raises(InputError, match="column 'when' has values that cannot be compared: row 1"):
        check_log(frame, **COLUMNS, time="when")


def test_constant_feature_of_a_namespace_is_a_note() -> None:
    events = [event.replace("|user ", "|user price:3 ") for event in log()]
    (finding,) = check_log("".join(events).encode()).findings
    assert (finding.code, finding.count) == ("constant", 1)
    assert finding.message == "features of the context are the same in all events, in 'user'"
    varied = [event.replace("price:3", f"price:{3 + number % 2}") for number, event in enumerate(events)]
    assert found(varied) == {}


def test_policy_that_reads_by_other_options_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in decisions(5)))
    with pytest.raises(OptionError, match="other options"):
        check_log(path, policies={"p": Workspace(cb_explore_adf=True)}, dsjson=True)


def test_log_that_no_policy_can_be_evaluated_on_still_has_its_findings(tmp_path: Path) -> None:
    events = log()
    events[5] = events[5].replace(f":{1 / 3} ", " ")
    path = tmp_path / "log.txt"
    path.write_text("".join(events))
    report = check_log(path, policies={"p": Workspace(cb_explore_adf=True)})
    assert codes(report)["no-support"] == "error"


def test_command_prints_findings_with_lines_and_fails_on_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "log.txt", tmp_path / "report.json"
    path.write_text("".join(log(logged=0.1)))
    assert main(["check", str(path), "--report", str(report), "--quiet"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith(
        "600 events, 600 with a logged action, 3 different actions, costs from -1 to 0\n"
    )
    assert "error: wrong-probabilities: 3" in printed
    assert "line 2" in printed
    assert [finding["code"] for finding in json.loads(report.read_bytes())["findings"]] == [
        "wrong-probabilities"
    ]


@pytest.mark.lane("ci")
def test_command_says_how_many_events_support_a_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.txt"
    path.write_text("".join(log()))
    assert main(["check", str(path), "--policy", "--cb_explore_adf --epsilon 0.1", "--quiet"]) == 0
    assert "note: support: " in capsys.readouterr().out


def test_standard_input_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2
    assert "name its file" in capsys.readouterr().err
