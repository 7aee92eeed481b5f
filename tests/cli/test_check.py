"""The verb ``check``: each fault of a log is found, and a sound log has none."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from onlineauto import datasets
from onlineauto.cli.main import main
from onlineauto.evaluation.log_check import LogReport, check_log

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


@pytest.mark.parametrize(
    ("events", "code", "severity"),
    [
        (
            [event.replace("|item news", "|item art") for event in log()],
            "duplicate-actions",
            "error",
        ),
        (log(logged=0.9), "wrong-probabilities", "error"),
        (log(probabilities=(0.5, 0.5, 0.0)), "never-tried", "warning"),
        (log(context=lambda cost: "lucky" if cost else "unlucky"), "leak", "error"),
        (log(context=lambda cost: f"price:{2 * cost + 5}"), "leak", "error"),
        (log() + log()[100:300], "repeated-part", "error"),
        ([event.replace(":-1.0:", ":-0.0:") for event in log()], "constant-cost", "warning"),
        ([event.replace(":-1.0:", ":1.0:") for event in log()], "positive-costs", "note"),
        ([event.replace("0:", "x:", 1) for event in log()], "malformed", "error"),
        (["shared |user a\n|item art\n|item news\n\n"] * 300, "unlabelled", "error"),
    ],
    ids=lambda value: value if isinstance(value, str) else "log",
)
def test_fault_is_found(events: list[str], code: str, severity: str) -> None:
    assert found(events).get(code) == severity


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


def test_command_prints_findings_with_lines_and_fails_on_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "log.txt", tmp_path / "report.json"
    path.write_text("".join(log(logged=0.9)))
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
