"""A service whose learner has several processes is killed while it is far behind its log."""

from __future__ import annotations

import io
import shutil
import time
from random import Random
from typing import TYPE_CHECKING

import pytest

from onlineauto.cluster.partitions.rounds import Rounds
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.log.segment_log import SegmentLog
from tests.service.serving import Service
from tests.service.traffic import CONFIGURATION, records
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

DECISIONS = 30_000
WORDS = ("--learners", "2", "--snapshot_every", "0.1", "--quiet")


def model_of(folder: Path, log: SegmentLog) -> tuple[bytes, int]:
    learner = LogLearner(folder, log, CONFIGURATION, learners=Rounds(1, plans=False))
    while learner.step():
        pass
    file = io.BytesIO()
    learner.workspace.save(file)
    learner.close(snapshot=False)
    return file.getvalue(), learner.learnt


@pytest.mark.ci
def test_each_decision_is_learnt_once_and_the_model_is_that_of_the_log(tmp_path: Path) -> None:
    folder, draw = tmp_path / "loop", Random(1)
    log = SegmentLog(folder / "log")
    log.append([*records(DECISIONS)])
    log.sync()
    log.close()
    for _ in range(3):
        service = Service(folder, *WORDS).start()
        until(lambda: (folder / "rounds").exists() or service.process.poll() is not None)  # noqa: B023
        time.sleep(draw.random())
        service.kill()
    with Service(folder, *WORDS):
        pass
    log = SegmentLog(folder / "log")
    parts = [[*map(int, line.split())] for line in (folder / "rounds").read_text().splitlines()]
    assert sum(end - begin for begin, end in parts) > 4 << 20
    whole = tmp_path / "whole"
    whole.mkdir()
    shutil.copy(folder / "rounds", whole)
    wanted, learnt = model_of(whole, log)
    assert learnt == DECISIONS
    assert model_of(folder, log) == (wanted, learnt)
    log.close()
