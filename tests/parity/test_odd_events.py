"""Odd lines of JSON and odd events with slots, between ordinary events, are read like by VW."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parity import exact
from tests.parity.odd_json import GOOD_JSON, ODD_JSON, STOPPING_JSON
from tests.parity.odd_slots import GOOD_LOG, GOOD_TEXT, ODD_LOGS, ODD_TEXTS, STOPPING_TEXTS
from tests.parity.result import Result, differences
from tests.parity.vw import VwRunner

SLOT_LOG, SLOT_TEXT, CONTEXT = "--dsjson --ccb_explore_adf", "--ccb_explore_adf", "--json --cb_explore_adf"
SLOTS = [
    *((SLOT_LOG, f"{GOOD_LOG}\n{line}\n{GOOD_LOG}\n") for line in ODD_LOGS),
    *((SLOT_TEXT, GOOD_TEXT + event + GOOD_TEXT) for event in ODD_TEXTS),
]
JSON = [(flags, line) for flags, lines in ODD_JSON.items() for line in lines]


def run_both(flags: str, text: str, vw: VwRunner, directory: Path) -> tuple[Result, Result]:
    """Run VW and exact mode on a text."""
    file = directory / "stream"
    file.write_text(text, newline="")
    return vw.run(flags.split(), file=file), exact.run(flags.split(), file=file)


def assert_same(flags: str, text: str, vw: VwRunner, directory: Path) -> None:
    found = differences(*run_both(flags, text, vw, directory), models=True)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("flags", ["", "-q ::"])
@pytest.mark.parametrize(("kind", "text"), SLOTS)
def test_slots(kind: str, text: str, flags: str, vw: VwRunner, tmp_path: Path) -> None:
    assert_same(f"{kind} {flags}", text, vw, tmp_path)


@pytest.mark.parametrize(("kind", "line"), JSON)
def test_json(kind: str, line: str, vw: VwRunner, tmp_path: Path) -> None:
    text = f"{GOOD_JSON[kind]}\n{line}\n{GOOD_JSON[kind]}\n"
    assert_same(f"{kind} -q :: --chain_hash", text, vw, tmp_path)


@pytest.mark.parametrize("kind", ODD_JSON)
def test_all_lines_of_json_in_one_file(kind: str, vw: VwRunner, tmp_path: Path) -> None:
    assert_same(kind, "\n".join(ODD_JSON[kind]), vw, tmp_path)


@pytest.mark.parametrize("event", STOPPING_TEXTS)
def test_exact_mode_stops_with_an_error_where_vw_stops_in_silence(
    event: str, vw: VwRunner, tmp_path: Path
) -> None:
    expected, actual = run_both(SLOT_TEXT, GOOD_TEXT + event + GOOD_TEXT, vw, tmp_path)
    assert actual.code == 1
    assert expected.predictions[:3] == actual.predictions[:3]
    assert len(expected.predictions) == len(actual.predictions)


@pytest.mark.parametrize("line", STOPPING_JSON)
def test_json_with_a_wrong_label_has_the_predictions_of_vw_until_it_stops(
    line: str, vw: VwRunner, tmp_path: Path
) -> None:
    good = GOOD_JSON[CONTEXT]
    expected, actual = run_both(CONTEXT, f"{good}\n{line}\n{good}\n", vw, tmp_path)
    assert (actual.code == 0) == (expected.code == 0)
    assert actual.predictions[: len(expected.predictions)] == expected.predictions
