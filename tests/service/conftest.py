from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from onlineauto.service.log.segment_log import SegmentLog
from tests.service.traffic import records

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> SegmentLog:
    """A log of 400 decisions, most of them with rewards, in several segments."""
    made = SegmentLog(tmp_path / "log", segment_bytes=40_000)
    for line in records(400):
        made.append([line])
    made.sync()
    return made
