"""Odd events with slots, between two good ones, are read as the wheel reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.parity import ours
from tests.parity.odd_slots import (
    GOOD_LOG,
    GOOD_TEXT,
    ODD_LOGS,
    ODD_TEXTS,
    STOPPING_TEXTS,
)
from tests.parity.result import differences

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.wheel import Wheel

LOG, TEXT = "--dsjson --ccb_explore_adf", "--ccb_explore_adf"
ODD = [
    *((LOG, f"{GOOD_LOG}\n{line}\n{GOOD_LOG}\n") for line in ODD_LOGS),
    *((TEXT, GOOD_TEXT + event + GOOD_TEXT) for event in ODD_TEXTS),
]


@pytest.mark.parametrize("flags", ["", "-q ::"])
@pytest.mark.parametrize(("kind", "text"), ODD)
def test_as_the_wheel(kind: str, text: str, flags: str, wheel: Wheel, tmp_path: Path) -> None:
    file = tmp_path / "stream"
    file.write_text(text, newline="")
    argv = f"{kind} {flags}".split()
    found = differences(wheel.run(argv, file=file), ours.run(argv, file=file), models=True)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("event", STOPPING_TEXTS)
def test_where_the_wheel_stops(event: str, wheel: Wheel, tmp_path: Path) -> None:
    """It ends well after what it has read of the event, without its last slots; we end with an error."""
    file = tmp_path / "stream"
    file.write_text(GOOD_TEXT + event + GOOD_TEXT, newline="")
    theirs, mine = wheel.run(TEXT.split(), file=file), ours.run(TEXT.split(), file=file)
    assert mine.code == 1
    assert theirs.predictions[:3] == mine.predictions[:3]
    assert len(theirs.predictions) == len(mine.predictions)
