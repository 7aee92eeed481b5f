"""A run that could read nothing fails, and says which flag would help; odd labels are counted."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.cli.conftest import Command

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
def test_hints(run: Command, text: str, flags: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(2 * text, encoding="latin-1")
    error = run(f"log {flags}", code=1).err.splitlines()[-1]
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
def test_runs_without_labels_fail_unless_they_predict(
    run: Command, text: str, flags: str, code: int, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(text)
    run(f"log --quiet {flags}", code=code)


def test_a_log_without_costs_is_rejected_with_advice(run: Command, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        '{"EventId":"x","a":[1,2],"c":{"_multi":[{"x":1},{"x":2}]},"p":[0.8,0.2]}\n'
    )
    run("log --dsjson --cb_explore_adf", code=1, err="no event has its cost; rewards that came later")
    run("log --dsjson --cb_explore_adf -t")


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
    run: Command, labels: tuple[int, ...], flags: str, warning: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("".join(f"{label} |a x{label}\n" for label in labels))
    warnings = [
        line for line in run(f"log --loss_function logistic {flags}").err.splitlines() if "warning" in line
    ]
    assert len(warnings) == bool(warning)
    if warning:
        assert warnings[0].startswith(f"onlineauto: warning: {warning}")


def test_a_full_disk_is_named_for_a_model(run: Command, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(ADF)
    assert run("log --cb_explore_adf -f /dev/full", code=1).err.endswith(
        "error: cannot write /dev/full: No space left on device\n"
    )


@pytest.mark.parametrize("output", ["-p", "--journal", "--extra_metrics"])
def test_a_full_disk_is_named(run: Command, output: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(ADF)
    words = [str(tmp_path / "log"), "--cb_explore_adf", "--automl", output, "/dev/full"]
    assert run(words, code=1).err.endswith("onlineauto: error: /dev/full: no space left on device\n")


@pytest.mark.parametrize("packed", [False, True])
def test_rewards_without_a_decision(run: Command, packed: bool, tmp_path: Path) -> None:
    message = "there are rewards, and no decision; AutoML.join in Python joins the log of decisions with them"
    for text, code in ((b'{"EventId":"e1","RewardValue":1.0}\n' * 3, 1), (b"", 0)):
        (tmp_path / "rewards").write_bytes(gzip.compress(text) if packed else text)
        printed = run("-d rewards --dsjson --cb_explore_adf --quiet", code=code)
        assert (message in printed.err) == (code == 1)


DSJSON = (
    '{{"_label_cost":{cost},"_label_probability":{p},"_labelIndex":0,"a":[1,2],'
    '"c":{{"U":{{"id":"u"}},"_multi":[{{"T":{{"t":"A"}}}},{{"T":{{"t":"B"}}}}]}},"p":[0.5,0.5]}}\n'
)
SLOTS = (
    '{{"c":{{"U":{{"id":"u"}},"_multi":[{{"T":{{"t":"A"}}}},{{"T":{{"t":"B"}}}}],'
    '"_slots":[{{"S":{{"x":1}}}}]}},"_outcomes":[{{"_label_cost":{cost},"_a":[0,1],"_p":[{p},0.5]}}]}}\n'
)
KINDS = {
    "text": ("", "{cost} |u a\n"),
    "weight": ("", "1 {p} |u a\n"),
    "json": ("--json", '{{"_label":{cost},"u":{{"a":1}}}}\n'),
    "json text": ("--json", '{{"_label":"{plain}","u":{{"a":1}}}}\n'),
    "cb": ("--cb 2", "1:{cost}:{p} |u a\n"),
    "bandit": ("--cb_explore_adf", "shared |u a\n0:{cost}:{p} |a x\n|a y\n\n"),
    "bandit json": ("--cb_explore_adf --dsjson", DSJSON),
    "bandit, probability": ("--cb_explore_adf", "shared |u a\n0:1:{p} |a x\n|a y\n\n"),
    "slots": (
        "--ccb_explore_adf",
        "ccb shared |u a\nccb action |a x\nccb action |a y\nccb slot 0:{cost}:{p},1:0.5 |s a\n\n",
    ),
    "slots json": ("--ccb_explore_adf --dsjson", SLOTS),
    "no slots json": ("--ccb_explore_adf --dsjson", DSJSON),
}


def written(kind: str, *, missing: int) -> str:
    """Return four events, of which the one with index `missing` has NaN for a label."""
    options, form = KINDS[kind]
    nan = '"NaN"' if "json" in options else "nan"
    numbers = [(nan, nan, "nan") if i == missing else ("1", "0.5", "1") for i in range(4)]
    return "".join(form.format(cost=cost, p=p, plain=plain) for cost, p, plain in numbers)


def predictions_and_report(run: Command, folder: Path, options: str, text: str) -> tuple[list[str], str]:
    (folder / "events").write_text(text)
    report = run(f"-d events -p p -P 1 {options}").err
    return [line for line in (folder / "p").read_text().splitlines() if line], report


@pytest.mark.parametrize("missing", range(4))
@pytest.mark.parametrize("test", ["", "-t"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_event_has_a_prediction(
    run: Command, tmp_path: Path, kind: str, test: str, missing: int
) -> None:
    text = written(kind, missing=missing)
    predictions, report = predictions_and_report(run, tmp_path, f"{KINDS[kind][0]} {test}", text)
    assert len(predictions) == 4
    assert "1 problem in the input" in report
    assert "label not used" in report
    assert "number of examples = 4\n" in report


@pytest.mark.parametrize("kind", ["text", "json text", "bandit", "bandit json", "slots", "slots json"])
def test_an_event_without_a_label_is_not_learnt(run: Command, tmp_path: Path, kind: str) -> None:
    options, lines = KINDS[kind][0], written(kind, missing=9).splitlines(keepends=True)
    expected, _ = predictions_and_report(run, tmp_path, options, "".join(lines[len(lines) // 4 :]))
    found, _ = predictions_and_report(run, tmp_path, options, written(kind, missing=0))
    assert found[1:] == expected
