"""VW has the same results on a rewritten file of events with slots as on the original."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from onlineauto import convert, read
from onlineauto.interop import read_named, write_dsjson, write_text
from tests.parity.case import content
from tests.parity.result import differences
from tests.parity.vw import VwRunner

CCB: dict[str, Any] = {"ccb_explore_adf": True}
FLAGS = [*["--ccb_explore_adf", "-q", "::", "--all_slots_loss"]]


def written(path: Path, how: str, to: str) -> Path:
    """Write the events of a text to a file of the same name in another directory."""
    out = path.parent / to / path.name
    out.parent.mkdir()
    text = path.read_bytes()
    if how == "blocks":
        convert(text, out.parent / "blocks", **CCB)
        convert(out.parent / "blocks", out, **CCB)
        return out
    events = read_named(text, **CCB) if how == "names" else read(text, **CCB).events()
    (write_dsjson if to == "log" else write_text)(events, out)
    return out


@pytest.mark.parametrize("stream", ["slots", "slots_seeded", "slots_rewards"])
@pytest.mark.parametrize("how", ["names", "hashes", "blocks"])
def test_text(stream: str, how: str, vw: VwRunner, tmp_path: Path) -> None:
    path = original(tmp_path, stream)
    expected = vw.run(FLAGS, file=path)
    found = differences(expected, vw.run(FLAGS, file=written(path, how, "text")), models=True)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("stream", ["slots", "slots_seeded", "slots_rewards"])
@pytest.mark.parametrize("how", ["names", "hashes"])
def test_log(stream: str, how: str, vw: VwRunner, tmp_path: Path) -> None:
    path = by_halves(original(tmp_path, stream))
    expected = vw.run(FLAGS, file=path)
    found = differences(expected, vw.run([*FLAGS, "--dsjson"], file=written(path, how, "log")), models=True)
    assert not found, "\n".join(found)


def original(directory: Path, stream: str) -> Path:
    """Return a file with those events of a stream that native mode has a use for."""
    path = directory / "events"
    write_text(read_named(content(stream, events=100), **CCB), path)
    return path


def by_halves(path: Path) -> Path:
    """Round all numbers of a file to halves: those that VW reads from text and JSON as the same."""
    halves = re.sub(r"\d+\.\d+", lambda found: str(math.ceil(2 * float(found[0])) / 2), path.read_text())
    path.write_text(halves)
    return path
