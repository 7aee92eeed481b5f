"""The number of workers may change during a run; a backend that is not installed is named."""

from __future__ import annotations

import importlib.util

import pytest

from datasets.generate import text
from onlineauto import OptionError, Workspace
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.cluster.partitions.run import PartitionedRun

SHORT = RoundSchedule(alone=256, head=8, shortest=128, longest=64, growth=4)


def _workspace() -> Workspace:
    return Workspace(cb_explore_adf=True, live_configs=2, bit_precision=12)


def test_a_run_rests_and_is_resized_and_changes_no_bit() -> None:
    source = text("planted", events=900, seed=5)
    with PartitionedRun(expected := _workspace(), source, schedule=SHORT) as whole:
        whole.step()
    with PartitionedRun(resized := _workspace(), source, schedule=SHORT) as run:
        while run.position.events < SHORT.alone:
            run.learn_round()
        for size in (1, 3, 0, 2):
            if size:
                run.resize(size)
            else:
                run.rest()
            assert run.pool.size == 0 or size
            assert run.learn_round()
            assert run.pool.size == max(size, 1)
        run.step()
    assert resized.weights.tobytes() == expected.weights.tobytes()


def test_threads_have_no_merge_servers() -> None:
    with pytest.raises(OptionError, match="--servers needs --backend ray"):
        PartitionedRun(_workspace(), b"", workers=2, servers=1)


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_the_extra_of_a_backend_that_is_missing_is_named() -> None:
    with pytest.raises(OptionError, match=r"no module 'ray' here: .*\[ray\]"):
        PartitionedRun(_workspace(), b"", workers=2, backend="ray")
