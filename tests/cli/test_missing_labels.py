"""One prediction for each event that is read: a label that is NaN is a label that is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from onlineauto.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

LOG = (
    '{{"_label_cost":{cost},"_label_probability":{p},"_labelIndex":0,"a":[1,2],'
    '"c":{{"U":{{"id":"u"}},"_multi":[{{"T":{{"t":"A"}}}},{{"T":{{"t":"B"}}}}]}},"p":[0.5,0.5]}}\n'
)
SLOTS = (
    '{{"c":{{"U":{{"id":"u"}},"_multi":[{{"T":{{"t":"A"}}}},{{"T":{{"t":"B"}}}}],'
    '"_slots":[{{"S":{{"x":1}}}}]}},"_outcomes":[{{"_label_cost":{cost},"_a":[0,1],"_p":[{p},0.5]}}]}}\n'
)
KINDS = {
    "text": ("", "{cost} |u a\n", ""),
    "weight": ("", "1 {p} |u a\n", ""),
    "json": ("--json", '{{"_label":{cost},"u":{{"a":1}}}}\n', ""),
    "json text": ("--json", '{{"_label":"{plain}","u":{{"a":1}}}}\n', ""),
    "cb": ("--cb 2", "1:{cost}:{p} |u a\n", ""),
    "bandit": ("--cb_explore_adf", "shared |u a\n0:{cost}:{p} |a x\n|a y\n\n", ""),
    "bandit json": ("--cb_explore_adf --dsjson", LOG, ""),
    "bandit, probability": ("--cb_explore_adf", "shared |u a\n0:1:{p} |a x\n|a y\n\n", ""),
    "slots": (
        "--ccb_explore_adf",
        "ccb shared |u a\nccb action |a x\nccb action |a y\nccb slot 0:{cost}:{p},1:0.5 |s a\n\n",
        "",
    ),
    "slots json": ("--ccb_explore_adf --dsjson", SLOTS, ""),
    "no slots json": ("--ccb_explore_adf --dsjson", LOG, ""),
}


def written(kind: str, *, missing: int) -> str:
    """Return four events, of which the one with index `missing` has NaN for a label."""
    options, form, _ = KINDS[kind]
    nan = '"NaN"' if "json" in options else "nan"
    numbers = [(nan, nan, "nan") if i == missing else ("1", "0.5", "1") for i in range(4)]
    return "".join(form.format(cost=cost, p=p, plain=plain) for cost, p, plain in numbers)


def run(path: Path, options: str, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    """Return the predictions of a run, and what it reports."""
    (path / "events").write_text(text)
    words = ["-d", str(path / "events"), "-p", str(path / "p"), "-P", "1", *options.split()]
    assert main(words) == 0
    return [line for line in (path / "p").read_text().splitlines() if line], capsys.readouterr().err


@pytest.mark.parametrize("missing", range(4))
@pytest.mark.parametrize("test", ["", "-t"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_event_has_a_prediction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, test: str, missing: int
) -> None:
    text = written(kind, missing=missing)
    predictions, report = run(tmp_path, f"{KINDS[kind][0]} {test}", text, capsys)
    assert len(predictions) == 4
    assert "1 problem in the input" in report
    assert "label not used" in report
    assert "number of examples = 4\n" in report


@pytest.mark.parametrize("kind", ["text", "json text", "bandit", "bandit json", "slots", "slots json"])
def test_an_event_without_a_label_is_not_learnt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    options = KINDS[kind][0]
    without = "".join(
        written(kind, missing=9).splitlines(keepends=True)[len(written(kind, missing=9).splitlines()) // 4 :]
    )
    expected, _ = run(tmp_path, options, without, capsys)
    found, _ = run(tmp_path, options, written(kind, missing=0), capsys)
    assert found[1:] == expected
