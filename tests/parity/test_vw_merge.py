"""Merged models equal those that VW merges."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from onlineauto.interop.vw.model import load_vw_model
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.save_load import load_model
from onlineauto.workspace.workspace import Workspace
from tests.parity.automl_streams import content
from tests.parity.exact import command_line
from tests.parity.vw import VwRunner
from tests.parity.vw_models import ModelCase, run_exact, run_vw, same_text

_CASES = [
    ModelCase(*line.strip().split(maxsplit=1))
    for line in """
    numbers -q ab
    numbers --sgd -l 0.1
    numbers --adaptive -l 0.1 --cubic abc
    numbers --normalized -l 0.1
    numbers --invariant -l 0.01 --noconstant
    numbers --power_t 0.3 -q ::
    weighted --sgd -l 0.05
    signs --link logistic
    bandit --cb_adf --cb_type dr
    bandit --cb_adf --rank_all --cb_type ips
    bandit --cb_explore_adf -q UA
    bandit --cb_explore_adf --cb_type dm --sgd -l 0.01
    bandit --cb_explore_adf --squarecb
    bandit --cb_explore_adf --first 150
    bandit --cb_explore_adf --synthcover
    bandit --cb_explore_adf --softmax --lambda 3
    bandit --cb_explore_adf --bag 3
    bandit --cb_explore_adf --cover 2
    slots --ccb_explore_adf
    slots --ccb_explore_adf -q UA --cb_type ips
    slots --ccb_explore_adf -q :: --sgd -l 0.01
    slots --ccb_explore_adf --ccb_no_slot_index -q UA
    classic_bandit --cb 4
    classic_bandit --cb_explore 4 --cb_type dr
    """.strip().splitlines()
]


def _merge(names: Sequence[str], base: str | None, directory: str) -> None:
    """Merge models by VW in a separate process."""
    import vowpalwabbit

    os.chdir(directory)
    kept = "--quiet --preserve_performance_counters -i"
    models = [vowpalwabbit.Workspace(f"{kept} {name}") for name in names]
    began = None if base is None else vowpalwabbit.Workspace(f"{kept} {base}")
    vowpalwabbit.merge_models(began, models).save("merged.vw")


def _parts(stream: str, directory: Path) -> None:
    """Write a stream in five parts of different sizes."""
    data = content(stream, events=320)
    end = b"\n\n" if data.startswith((b"shared", b"ccb")) else b"\n"
    events = data.rstrip(b"\n").split(end)
    for part, (begin, stop) in enumerate([(0, 60), (60, 100), (100, 200), (200, 260), (260, 320)]):
        (directory / f"part{part}").write_bytes(end.join(events[begin:stop]) + end)


def _tells_slots(case: ModelCase) -> bool:
    return "--ccb_explore_adf" in case.flags and "--ccb_no_slot_index" not in case.flags


@pytest.mark.parametrize("based", [False, True], ids=["from scratch", "from a base"])
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.id)
def test_merged_models_equal_those_of_vw(case: ModelCase, based: bool, vw: VwRunner, tmp_path: Path) -> None:
    refused = based and _tells_slots(case)
    _parts(case.stream, tmp_path)
    run_vw(vw, f"{case.flags} -d part0 -f base.vw", directory=tmp_path)
    run_exact("convert base.vw base.oam", directory=tmp_path)
    begun = "-i base.vw --preserve_performance_counters" if based else case.flags
    names = ["one", "two", "three"]
    for part, name in enumerate(names, 1):
        run_vw(vw, f"{begun} -d part{part} -f {name}.vw", directory=tmp_path)
        run_exact(f"convert {name}.vw {name}.oam", directory=tmp_path)
    process = multiprocessing.get_context("spawn").Process(
        target=_merge, args=([f"{name}.vw" for name in names], "base.vw" if based else None, str(tmp_path))
    )
    process.start()
    process.join()
    assert (process.exitcode != 0) == refused
    merging = f"merge one.oam two.oam three.oam {'--base base.oam' if based else ''} -f merged.oam"
    if refused:
        code, _, err = command_line(merging.split(), directory=tmp_path)
        assert code == 2
        assert "cannot be merged from a base, nor by Vowpal Wabbit" in err
        return
    run_exact(merging, directory=tmp_path)
    _same_models(tmp_path)
    run_vw(vw, "-t -i merged.vw -d part4 -p expected", directory=tmp_path)
    run_exact("-t -i merged.oam -d part4 -p actual", directory=tmp_path)
    assert same_text(tmp_path, "expected", "actual")


def _same_models(directory: Path) -> None:
    expected, their_run = load_vw_model(directory / "merged.vw", REGISTRY.parse(""))
    found, our_run = load_model(Workspace, directory / "merged.oam", REGISTRY.parse(""))
    theirs_, ours_ = expected.learner.model, found.learner.model
    assert (theirs_.weights[:, :3].view(np.uint32) == ours_.weights[:, :3].view(np.uint32)).all()
    assert theirs_.lanes[0].tolist() == ours_.lanes[0].tolist()
    assert theirs_.sums[0, :2].tolist() == ours_.sums[0, :2].tolist()
    assert theirs_.shared[[0, 3, 4]].tolist() == ours_.shared[[0, 3, 4]].tolist()
    for name in ("example_number", "weighted_labelled", "total_features", "weighted_labels", "sum_loss"):
        assert their_run["progress"][name] == our_run["progress"][name], name
