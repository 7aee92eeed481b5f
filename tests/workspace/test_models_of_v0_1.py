"""Models of release 0.1 load for good, predict what they predicted, and learn on.

Single lines learn on as they did, to five digits, since members are learnt in float32. The ensemble of
bandits learns its weights by another rule since then. Predictions of the loaded model are compared to six
digits, since the last bit of an exponential depends on the processor.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.log.segment_log import SegmentLog
from onlineauto.workspace.inspection.inspection import inspection
from tests.service.traffic import CONFIGURATION

if TYPE_CHECKING:
    from numpy.typing import NDArray

DATA = Path(__file__).resolve().parent.parent / "data"
FIGURES: dict[str, Any] = json.loads(gzip.decompress((DATA / "v0_1_figures.json.gz").read_bytes()))
MODELS = ["bandit", "many_actions", "lines", "slots"]


def stored(name: str) -> bytes:
    return gzip.decompress((DATA / f"v0_1_{name}.gz").read_bytes())


def predictions(workspace: Workspace, events: list[str]) -> NDArray[np.float32]:
    return np.array([workspace.predict(event) for event in events])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_v0_1_predicts_as_it_did_and_learns_on(
    name: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    figures = FIGURES[name]
    events = figures["events"]
    workspace = Workspace.load(stored(f"{name}.model"))
    assert not recwarn.list
    assert workspace.searching.predicts[0] == figures["who"].replace("stack", "ensemble")
    np.testing.assert_allclose(predictions(workspace, events), figures["predicted"], rtol=1e-6)
    workspace.save(tmp_path / "again.model")
    again = Workspace.load(tmp_path / "again.model")
    for each in (workspace, again):
        learnt = np.array([each.learn(event) for event in events])
        np.testing.assert_allclose(learnt[0], figures["learnt"][0], rtol=1e-6)
        atol = 0.0 if name == "lines" else 0.05
        np.testing.assert_allclose(learnt, figures["learnt"], rtol=1e-5, atol=atol)
        weights = {part["who"]: part["weight"] for part in inspection(each, names={})["stack"]}
        before = {who: value for who, value in figures["weights"].items() if value is not None}
        assert weights.keys() >= before.keys()
        if name == "lines":
            unchanged = {who: value and pytest.approx(value, rel=1e-5) for who, value in before.items()}
            assert weights == unchanged | {"trees": 0.0}  # a member of later versions
    assert workspace.weights.tobytes() == again.weights.tobytes()


@pytest.mark.parametrize(("what", "predicted"), [("stack", "predicted"), ("champion", "champion")])
def test_a_model_of_v0_1_that_only_predicts_does_so(what: str, predicted: str) -> None:
    figures = FIGURES["bandit"]
    workspace = Workspace.load(stored(f"bandit_{what}.model"), testonly=True)
    found = predictions(workspace, figures["events"])
    np.testing.assert_allclose(found, figures[predicted], rtol=1e-6)


def test_a_service_of_v0_1_goes_on_with_its_log(tmp_path: Path) -> None:
    figures = FIGURES["service"]
    with tarfile.open(fileobj=io.BytesIO(stored("service.tar"))) as archive:
        if hasattr(tarfile, "data_filter"):  # not in Python before 3.11.4
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(tmp_path)  # noqa: S202 - a file of ours
    learner = LogLearner(tmp_path / "state", SegmentLog(tmp_path / "log"), CONFIGURATION)
    assert learner.learnt == figures["learnt_at_snapshot"]
    while learner.step():
        pass
    assert learner.learnt == figures["learnt"]
    np.testing.assert_allclose(learner.workspace.predict(figures["event"]), figures["predicted"], rtol=1e-6)
    assert abs(learner.workspace.weights).sum() == pytest.approx(figures["weights"], rel=1e-5)
    learner.close()
