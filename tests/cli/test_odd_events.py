"""Events that are not learnt are reported with their position and the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command

pytestmark = pytest.mark.lane("quick")

CONTEXT = '"c":{"U":{"id":"u"},"_multi":[{"T":{"t":"A"}},{"T":{"t":"B"}}],"_slots":[{"S":{"x":1}}]}'
OUTCOMES = '"_outcomes":[{"_label_cost":1,"_a":[1,0],"_p":[0.5,0.5]}]'


@pytest.mark.parametrize("flag", ["--cb 2", "--cb_explore 2"])
def test_an_action_without_a_cost_is_reported(run: Command, flag: str, tmp_path: Path) -> None:
    (tmp_path / "events").write_text("1 |a x\n1:1:0.5 |a y\n1 2 |a x\n")
    report = run(f"-d events {flag}").err
    assert (
        "events:1:1: action '1' has no cost and no probability, and does not limit the choice; label not used"
        in report
    )
    assert "3 problems in the input: 3 x action has no cost and no probability" in report
    assert "number of examples = 3\n" in report


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("shared |u a\n0:1:.5 |a x\n1:0:.5 |a y\n\n", "3:1: label '1:0:.5' on a second line of the event"),
        ("0:1:.5 1:0:.5 |a x\n|a y\n\n", "1:8: second label '1:0:.5' on a line that is one action"),
        ("0:1:.5 |a x\n0:1:.5 |a y\n", "2:1: label '0:1:.5' on a second line of the event"),
    ],
)
def test_a_second_label_has_a_fitting_hint(run: Command, text: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "events").write_text(text)
    report = run("-d events --cb_explore_adf", code=1).err
    assert f"events:{place}" in report
    assert "an event has one label, of the action that was chosen, and an empty line ends it" in report


@pytest.mark.parametrize("line", [f"{{{CONTEXT},{OUTCOMES}}}", f"{{{OUTCOMES},{CONTEXT}}}"])
def test_slots_within_c_are_read_by_both_formats(run: Command, line: str, tmp_path: Path) -> None:
    (tmp_path / "events").write_text(f"{line}\n" * 3)
    predictions = []
    for flag in ("--json", "--dsjson"):
        report = run(f"-d events -p p {flag} --ccb_explore_adf").err
        predictions.append((tmp_path / "p").read_text())
        assert "problem" not in report
        assert "average loss = n.a." not in report, "the outcomes are learnt"
    assert len(predictions[0].split()) == 3
    assert predictions[0] == predictions[1]
