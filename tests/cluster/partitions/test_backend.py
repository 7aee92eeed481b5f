"""The number of workers may change during a run; a backend that is not installed is named."""

from __future__ import annotations

import importlib.util

import pytest

from datasets.generate import text
from onlineauto import OptionError, Workspace
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.cluster.partitions.local import ProcessPool
from onlineauto.cluster.partitions.pool import InlinePool
from onlineauto.cluster.partitions.run import PartitionedRun

SHORT = RoundSchedule(alone=256, head=8, shortest=128, longest=64, growth=4)


def _workspace() -> Workspace:
    return Workspace(cb_explore_adf=True, live_configs=2, bit_precision=12)


def test_a_run_is_resized_from_this_process_to_two_and_back() -> None:
    source = text("planted", events=900, seed=5)
    with PartitionedRun(expected := _workspace(), source, schedule=SHORT) as whole:
        whole.step()
    sizes, kinds = {2: 2, 5: 3, 8: 1}, []
    with PartitionedRun(resized := _workspace(), source, schedule=SHORT) as run:
        for number, _ in enumerate(run):
            if number in sizes:
                run.resize(sizes[number])
            kinds.append(type(run.pool))
    assert kinds[0] is InlinePool
    assert kinds[-1] is ProcessPool
    assert resized.weights.tobytes() == expected.weights.tobytes()


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_the_extra_of_a_backend_that_is_missing_is_named() -> None:
    with pytest.raises(OptionError, match=r"no module 'ray' here: .*\[ray\]"):
        PartitionedRun(_workspace(), b"", workers=2, backend="ray")
