"""``onlineauto import-personalizer``: from an exported log and settings to a service with a warm model."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from onlineauto.cli.main import main
from onlineauto.service.loop.loop import Loop
from onlineauto.workspace.options import REGISTRY

CONFIGURATION = {
    "rewardWaitTime": "PT20M",
    "defaultReward": 0.0,
    "rewardAggregation": "sum",
    "explorationPercentage": 0.25,
    "modelExportFrequency": "PT5M",
    "logRetentionDays": 90,
    "learningMode": "Apprentice",
}
POLICY = {
    "name": "mine",
    "arguments": "--cb_explore_adf --epsilon 0.2 --power_t 0.4 -l 0.5 --dsjson --no_such_flag 3 -b 14 -q ::",
}


def decision(number: int, draw: random.Random) -> dict[str, Any]:
    """Return a line as Personalizer logs it: the users of each kind like one of two topics."""
    kind, chosen = draw.choice(("old", "young")), draw.randrange(2)
    cost = -float((kind == "old") == (chosen == 1))
    return {
        "_label_cost": cost,
        "_label_probability": 0.5,
        "_label_Action": chosen + 1,
        "_labelIndex": chosen,
        "o": [{"EventId": f"e{number}", "v": -cost}],
        "Timestamp": "2026-09-01T10:00:00.0000000Z",
        "Version": "1",
        "EventId": f"e{number}",
        "a": [chosen + 1, 2 - chosen],
        "c": {"FromUrl": [], "user": {kind: 1}, "_multi": [{"topic": {"sport": 1}}, {"topic": {"art": 1}}]},
        "p": [0.5, 0.5],
        "VWState": {"m": "m"},
    }


def slots(number: int) -> dict[str, Any]:
    """Return a line of an event with two slots."""
    return {
        "Timestamp": "2026-09-01T10:00:00Z",
        "EventId": f"s{number}",
        "c": {
            "user": {"old": 1},
            "_multi": [{"topic": {"sport": 1}}, {"topic": {"art": 1}}, {"topic": {"news": 1}}],
            "_slots": [{"_id": "top", "place": {"big": 1}}, {"_id": "side", "_inc": [0, 2]}],
        },
        "_outcomes": [
            {"_label_cost": -1.0, "_id": f"s{number}", "_a": [2, 0, 1], "_p": [0.6, 0.2, 0.2]},
            {"_label_cost": 0.0, "_id": f"t{number}", "_a": [0], "_p": [1.0]},
        ],
    }


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder, draw = tmp_path / "export", random.Random(1)
    logs = folder / "data" / "2026" / "09"
    logs.mkdir(parents=True)
    lines = [json.dumps(decision(number, draw)) for number in range(400)]
    (logs / "01_0.json").write_text("\n".join([*lines[:200], "{broken"]))
    (logs / "02_0.json.gz").write_bytes(gzip.compress("\n".join(lines[200:]).encode()))
    (logs / "03_0.json").write_text("\n".join(json.dumps(slots(n)) for n in range(20)))
    (folder / "configuration.json").write_text(json.dumps(CONFIGURATION, indent=2))
    (folder / "learning-settings.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(POLICY, indent=2).encode())
    return folder


def test_an_export_becomes_a_service_with_a_warm_model(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import-personalizer", str(export), str(tmp_path / "loop")]) == 0
    printed = capsys.readouterr().out
    assert "learnt: 440 decisions of 3 files" in printed
    assert "skipped: 1 lines" in printed
    assert "no such options: --no_such_flag 3" in printed
    assert "left out, because the search of --automl chooses them: -q ::" in printed
    command = printed.splitlines()[-1].partition(f"onlineauto serve {tmp_path / 'loop'} ")[2]
    assert "--epsilon 0.25" in command
    assert "--bit_precision 14" in command
    assert "--automl 4" in command
    loop = Loop(tmp_path / "loop", REGISTRY.parse(command))
    settings = loop.join.settings
    assert (settings.reward_wait, settings.aggregation, settings.mode) == (1200.0, "sum", "apprentice")
    pmf = {}
    for kind in ("old", "young"):
        event = {"c": {"user": {kind: 1}, "_multi": [{"topic": {"sport": 1}}, {"topic": {"art": 1}}]}}
        pmf[kind] = loop.published.predictor.predict(json.dumps(event).encode() + b"\n").tolist()
    assert pmf["old"][1] > 0.5 > pmf["young"][1]
    loop.close()
    assert main(["import-personalizer", str(export), str(tmp_path / "loop")]) == 1
    assert "is the folder of a service already" in capsys.readouterr().err


def test_given_options_replace_those_of_the_policy(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--cb_explore_adf --softmax -b 12"
    assert main(["import-personalizer", str(export), str(tmp_path / "loop"), "--options", options]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("--bit_precision 12 --cb_explore_adf --softmax")


def test_a_folder_without_a_log_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "policy.json").write_text(json.dumps(POLICY))
    assert main(["import-personalizer", str(tmp_path / "empty"), str(tmp_path / "loop")]) == 1
    assert "has no log of Personalizer" in capsys.readouterr().err
    assert not (tmp_path / "loop").exists()
    assert main(["import-personalizer", str(tmp_path / "empty")]) == 2


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("configuration.json", b'{"rewardWaitTime":5}', 1, "configuration.json cannot be read"),
        ("configuration.json", b'{"rewardWaitTime":"PT20M","defaultReward":"a"}', 1, "defaultReward"),
        ("configuration.json", b'{"rewardWaitTime":"PT0S"}', 2, "reward_wait is 0.0"),
        (
            "configuration.json",
            b'{"rewardWaitTime":"PT20M","learningMode":"No"}',
            2,
            "learningMode takes one of",
        ),
        ("configuration.json", b'{"rewardWaitTime":' + b"9" * 5000 + b"}", 0, "configuration: none found"),
        ("deep.json", b'{"a":' + b"[" * 5000, 0, "configuration: taken over"),
        ("learning-settings.json", b'{"arguments":"--cb_explore_adf \\"q"}', 2, "No closing quotation"),
        ("data/2026/09/02_0.json.gz", b"no gzip", 1, "02_0.json.gz cannot be read"),
        (
            "data/2026/09/02_0.json.gz",
            gzip.compress(b'{"c":1}' * 999, mtime=0)[:-20],
            1,
            "02_0.json.gz cannot be read",
        ),
        ("data/2026/09/03_0.json", b'{"c":{"_slots":' + b"[" * 9000 + b"\n", 0, "skipped: 2 lines"),
        ("data/2026/09/03_0.json", b'{"c":{"_slots":[{"_id":\xff}]}}\n', 0, "skipped: 2 lines"),
    ],
)
def test_a_damaged_export_is_reported_with_its_file(
    name: str,
    content: bytes,
    code: int,
    message: str,
    export: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (export / name).write_bytes(content)
    assert main(["import-personalizer", str(export), str(tmp_path / "loop")]) == code
    printed = capsys.readouterr()
    assert message in (printed.err if code else printed.out)
    assert code == 0 or printed.err.count("\n") == 1


def test_options_without_a_closing_quotation_are_reported(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import-personalizer", str(export), str(tmp_path / "loop"), "--options", "'--cb"]) == 2
    assert "No closing quotation" in capsys.readouterr().err
