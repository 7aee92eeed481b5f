"""Files of format 1 load, predict and learn like the models that wrote them, and are saved again.

The figures are compared to six digits, since the last bit of an exponential depends on the processor.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onlineauto import Workspace

DATA = Path(__file__).resolve().parent.parent / "data"
FIGURES: dict[str, Any] = json.loads((DATA / "figures.json").read_text("utf-8"))


def fixture(name: str) -> bytes:
    return gzip.decompress((DATA / f"{name}.gz").read_bytes())


def predicted(workspace: Workspace, events: list[str]) -> NDArray[np.float32]:
    return np.array([workspace.predict(event) for event in events])


@pytest.mark.parametrize("name", ["regression", "lines", "search", "bag", "slots", "exact"])
def test_a_stored_model_predicts_and_learns_like_the_one_that_was_saved(name: str, tmp_path: Path) -> None:
    figures = FIGURES[name]
    events = figures["events"]
    workspace = Workspace.load(fixture(f"{name}.model"))
    np.testing.assert_allclose(predicted(workspace, events), figures["predicted"], rtol=1e-6)
    learnt = np.array([workspace.learn(event) for event in events])
    np.testing.assert_allclose(learnt, figures["learnt"], rtol=1e-6)
    assert not np.allclose(learnt, figures["predicted"], rtol=1e-6)  # learning shows in the figures

    workspace.save(tmp_path / "new.model")
    again = Workspace.load(tmp_path / "new.model")
    np.testing.assert_array_equal(predicted(again, events), predicted(workspace, events))


def test_a_file_of_blocks_reads_as_its_text_does(tmp_path: Path) -> None:
    blocks, figures = tmp_path / "events.blocks", FIGURES["blocks"]
    blocks.write_bytes(fixture("events.blocks"))
    options: dict[str, Any] = {"cb_explore_adf": True, "quadratic": ["ua"], "softmax": True}
    sources = (blocks, figures["text"].encode())
    of_blocks, of_text = (
        np.concatenate(
            [outcomes.score for _, outcomes in Workspace(bit_precision=5, **options).stream(source)]
        )
        for source in sources
    )
    np.testing.assert_array_equal(of_blocks, of_text)
    np.testing.assert_allclose(of_blocks, figures["scores"], rtol=1e-6)


def test_a_new_model_explores_by_scaled_squarecb_until_epsilon_is_given(tmp_path: Path) -> None:
    event = "shared |u a\n0:-1:0.5 |z z0\n|z z1\n\n"
    workspace = Workspace(cb_explore_adf=True, automl=2, hash_bits=6)
    for i in range(200):
        workspace.learn(event if i % 2 else "shared |u a\n|z z0\n0:0:0.5 |z z1\n\n")
    workspace.save(tmp_path / "new.model")
    again = Workspace.load(tmp_path / "new.model")
    pmf = again.predict(event)
    np.testing.assert_array_equal(pmf, workspace.predict(event))
    assert 0.005 <= pmf[1] < 0.024
    greedy = Workspace.load(tmp_path / "new.model", epsilon=0.05)
    np.testing.assert_allclose(greedy.predict(event), [0.975, 0.025], rtol=1e-6)
