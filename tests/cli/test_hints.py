"""A run that could read nothing fails, and says which flag would help; odd labels are counted."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from onlineauto.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

LOG = (
    '{"_label_cost":-1,"_label_probability":0.8,"_label_Action":1,"_labelIndex":0,"EventId":"x","a":[1,2],'
    '"c":{"u":{"a":"b"},"_multi":[{"x":{"y":"z"}},{"x":{"y":"q"}}]},"p":[0.8,0.2]}\n'
)
JSON = (
    '{"u":{"a":"b"},"_multi":[{"x":{"y":"z"}}],"_label_cost":-1,"_label_probability":0.8,"_labelIndex":0}\n'
)
ADF = "shared |a x\n0:-1:0.5 |b y\n|b z\n\n"
CCB = "ccb shared |a x\nccb action |b y\nccb action |b z\nccb slot 0:-1:0.5 |\n\n"


@pytest.mark.parametrize(
    ("text", "flags", "hint"),
    [
        (LOG, "", "the log of a decision service: add --dsjson --cb_explore_adf"),
        (LOG, "--cb_explore_adf", "the log of a decision service: add --dsjson"),
        (LOG, "--dsjson", "events of a contextual bandit: add --cb_explore_adf"),
        (JSON, "--cb_explore_adf", "this looks like JSON: add --json"),
        (JSON, "--json", "events of a contextual bandit: add --cb_explore_adf"),
        ('{"_label":1,"a":{"x":2}}\n', "", "this looks like JSON: add --json"),
        ("1 |a x\n", "--json", "this looks like VW's text: leave out the flag of JSON"),
        (ADF, "", "'shared' lines are of a contextual bandit: add --cb_explore_adf"),
        (ADF, "--cb_explore 2", "use --cb_explore_adf"),
        (ADF, "--ccb_explore_adf", "use --cb_explore_adf"),
        (CCB, "", "these events have slots: use --ccb_explore_adf"),
        (CCB, "--cb_explore_adf", "these events have slots: use --ccb_explore_adf"),
        ("1:0:0.5 |a x\n2:1:.5 |a y\n", "", "or --cb_explore K if each event is one line"),
        ("1:0:0.5 |a x\n2:1:.5 |a y\n", "--cb_adf", "use --cb_explore K"),
        ("1 |a x\n", "--cb_explore_adf", "leave out the flag of the bandit"),
        ("a,b,c\n1,2,3\n", "", "this looks like a table"),
        ("\x89PNG\x1a\n\0\n", "", "this is not text"),
        ("x |a b\n", "", "no event could be read; see the problems above"),
    ],
)
def test_hints(text: str, flags: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_text(2 * text, encoding="latin-1")
    assert main([str(path), *flags.split()]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("onlineauto: error: no")
    assert hint in error


@pytest.mark.parametrize(
    ("text", "flags", "code"),
    [
        ("", "", 0),
        ("x |a b\n1 |a b\n", "", 0),
        ("|a b\n|a c\n", "", 0),
        ("x |a b\n|a c\n", "", 1),
        ("x |a b\n|a c\n", "-t", 0),
        ("x |a b\n", "--vw_exact", 0),
        ("x |a b\n" + 4 * "1 |a b\n", "--holdout_after 1 --passes 2", 0),
    ],
)
def test_what_counts_as_nothing(text: str, flags: str, code: int, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    assert main([str(path), "--quiet", *flags.split()]) == code


def test_rewards_that_came_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_text('{"EventId":"x","a":[1,2],"c":{"_multi":[{"x":1},{"x":2}]},"p":[0.8,0.2]}\n')
    assert main([str(path), "--dsjson", "--cb_explore_adf"]) == 1
    assert "no event has its cost; rewards that came later" in capsys.readouterr().err
    assert main([str(path), "--dsjson", "--cb_explore_adf", "-t"]) == 0


@pytest.mark.parametrize(
    ("labels", "flags", "warning"),
    [
        ((2, -1, 3, 1), "", "2 labels outside [-1, 1], where the logistic loss means nothing"),
        ((2, -1), "", "1 label outside [-1, 1]"),
        ((0, 1), "", "labels are 0 and 1, and --loss_function logistic takes -1 for no"),
        ((0, 1), "--logistic_min 0", ""),
        ((-1, 0, 1), "", ""),
        ((-1, 1), "", ""),
    ],
)
def test_labels_of_the_logistic_loss(
    labels: tuple[int, ...], flags: str, warning: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"{label} |a x{label}\n" for label in labels))
    assert main([str(path), "--loss_function", "logistic", *flags.split()]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warnings) == bool(warning)
    if warning:
        assert warnings[0].startswith(f"onlineauto: warning: {warning}")


def test_a_full_disk_is_named_for_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text(ADF)
    assert main([str(tmp_path / "log"), "--cb_explore_adf", "-f", "/dev/full"]) == 1
    assert capsys.readouterr().err.endswith("error: cannot write /dev/full: No space left on device\n")


@pytest.mark.parametrize("output", ["-p", "--journal", "--extra_metrics"])
def test_a_full_disk_is_named(output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text(ADF)
    words = [str(tmp_path / "log"), "--cb_explore_adf", "--automl", output, "/dev/full"]
    assert main(words) == 1
    assert capsys.readouterr().err.endswith("onlineauto: error: /dev/full: no space left on device\n")


@pytest.mark.parametrize("packed", [False, True])
def test_rewards_without_a_decision(packed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rewards"
    for text, code in ((b'{"EventId":"e1","RewardValue":1.0}\n' * 3, 1), (b"", 0)):
        path.write_bytes(gzip.compress(text) if packed else text)
        assert main(["-d", str(path), "--dsjson", "--cb_explore_adf", "--quiet"]) == code
    message = "there are rewards, and no decision; AutoML.join in Python joins the log of decisions with them"
    assert message in capsys.readouterr().err
