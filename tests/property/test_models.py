"""Every model continues the same after it was saved and loaded; damaged files are rejected."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pytest

from onlineauto.automl.decisions import PredictWith
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.errors import InputError, OptionError
from onlineauto.options import Configuration
from onlineauto.workspace.model_file import HEAD, MAGIC
from onlineauto.workspace.predict_only import PredictOnly
from onlineauto.workspace.workspace import Workspace
from tests.property.model_draws import draw_configuration, draw_stream
from tests.property.snapshot import predictions_of

pytestmark = pytest.mark.lane("ci")

N_TRIPLES, N_DEFAULT = 250, 60
"""On every push, and in the default lane; slow are ten times as many others."""
N_CORRUPTIONS = 10_000


def saved(workspace: Workspace, *, predict_only: PredictOnly = False) -> bytes:
    file = io.BytesIO()
    workspace.save(file, predict_only=predict_only)
    return file.getvalue()


def learn(workspace: Workspace, events: list[str]) -> list[Outcomes]:
    return [outcomes for _, outcomes in workspace.stream("".join(events).encode())]


def draw(seed: int) -> tuple[Configuration, list[str], int]:
    """Options, a stream, and where it is split."""
    chance = random.Random(seed)
    configuration = draw_configuration(chance)
    events = draw_stream(chance, configuration, n=chance.choice([60, 200, 500]))
    return configuration, events, chance.randrange(len(events) + 1)


def seeds(n: int, *, slow: int = 0) -> list[object]:
    """`n` seeds, of which those from `N_DEFAULT` on are for the lane ``ci``, and others for the slow one."""
    more = [pytest.param(seed, marks=pytest.mark.ci) for seed in range(N_DEFAULT, n)]
    many = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(N_TRIPLES, N_TRIPLES + slow)]
    return [*range(min(n, N_DEFAULT)), *more, *many]


@pytest.mark.parametrize("seed", seeds(N_TRIPLES, slow=10 * N_TRIPLES))
def test_saved_and_loaded_model_continues_the_same(seed: int) -> None:
    configuration, events, split = draw(seed)
    one = Workspace(configuration=configuration)
    learn(one, events[:split])
    model = saved(one)
    assert saved(one) == model
    other = Workspace.load(model)
    assert other.configuration.command(kept=True) == configuration.command(kept=True)
    assert saved(other) == model
    uninterrupted = Workspace(configuration=configuration)
    learn(uninterrupted, events[:split])
    expected = learn(uninterrupted, events[split:])
    for workspace in (one, other):
        found = learn(workspace, events[split:])
        if expected:
            assert predictions_of(found) == predictions_of(expected)
        assert saved(workspace) == saved(uninterrupted)


def test_saved_drift_detector_continues() -> None:
    chance = random.Random(5)
    learnt = [f"{number % 2} |a x{number % 2} |b y\n" for number in range(6000)]
    lost = [f"{chance.choice([-2, 3])} |a x |b y\n" for _ in range(3000)]
    events = learnt + lost
    one = Workspace(automl=2, on_drift="reopen", default_lease=4000)
    learn(one, events[:5500])
    other = Workspace.load(saved(one))
    for workspace in (one, other):
        learn(workspace, events[5500:])
        assert workspace.searching.n_alarms > 0
    assert saved(other) == saved(one)


def test_saved_screening_continues_before_its_namespaces_are_seen_again() -> None:
    parts = "1 |a x |b y\n0 |a y |b y\n" * 20, "0 |\n" * 3, "1 |a x |b y\n" * 30
    one, other = Workspace(automl=2), Workspace(automl=2)
    for block in one.read("".join(parts).encode()):
        one.learn_block(block)
    for part in parts:
        for block in other.read(part.encode()):
            other.learn_block(block)
        other = Workspace.load(saved(other))
    assert saved(other) == saved(one)


@pytest.mark.parametrize("seed", seeds(N_TRIPLES))
def test_the_champion_alone_predicts_the_same(seed: int) -> None:
    configuration, events, split = draw(seed)
    workspace = Workspace(configuration=configuration)
    learn(workspace, events[:split])
    try:
        alone = Workspace.load(saved(workspace, predict_only=True), testonly=True)
    except OptionError as refused:
        refusals = (
            "has no champion that predicts the same alone",
            "with --ccb_explore_adf and interactions is not",
        )
        if not any(each in str(refused) for each in refusals):
            raise
        return
    options: dict[str, Any] = {"testonly": True}
    if configuration.get("automl") and not workspace.semantics.spins_off_weights:
        options["predict_with"] = "champion"
    whole = Workspace.load(saved(workspace), **options)
    assert saved(Workspace.load(saved(alone), testonly=True)) == saved(alone)
    assert len(saved(alone)) <= len(saved(workspace)) + 256
    expected, found = learn(whole, events[split:]), learn(alone, events[split:])
    searches, bounds = configuration.get("automl"), workspace.learner.task.exploration.bounds
    if workspace.semantics.spins_off_weights and (searches or bounds):
        return  # VW crosses no namespaces then that it meets later, and forgets how much it has learnt
    for one, other in zip(expected, found, strict=True):
        assert one.score.tobytes() == other.score.tobytes()
        assert one.prediction.tobytes() == other.prediction.tobytes()


@pytest.mark.parametrize("seed", seeds(N_TRIPLES // 5, slow=N_TRIPLES))
def test_predict_only_model_predicts_the_same(seed: int) -> None:
    configuration, events, split = draw(seed)
    workspace = Workspace(configuration=configuration)
    learn(workspace, events[:split])
    if workspace.semantics.spins_off_weights:
        return  # there is no ensemble, and the champion alone is another test's
    ensemble = workspace.searching.live_configs.arrays.ensemble
    if ensemble.on and seed % 2:  # as if it were proved better
        workspace.searching.live_configs.apply(PredictWith("ensemble", "loss"), workspace.learner.model)
    model = saved(workspace, predict_only="ensemble")
    small, whole = Workspace.load(model, testonly=True), Workspace.load(saved(workspace), testonly=True)
    assert saved(small) == model
    for block in workspace.read("".join(events[split:]).encode()):
        expected = _predicted(workspace.predict_block(block))
        assert _predicted(small.predict_block(block)) == expected
        assert _predicted(small.predictor().predict_block(block)) == expected
    found, expected_of_run = (learn(each, events[split:]) for each in (small, whole))
    assert list(map(_predicted, found)) == list(map(_predicted, expected_of_run))


def _predicted(outcomes: Outcomes) -> list[bytes]:
    """Bytes of what was predicted; features are counted otherwise where several configs share products."""
    return [getattr(outcomes, name).tobytes() for name in ("score", "action", "prediction", "raw", "loss")]


@pytest.fixture(scope="module")
def model() -> bytes:
    configuration, events, split = draw(3)
    workspace = Workspace(configuration=configuration)
    learn(workspace, events[:split])
    return saved(workspace)


def test_corrupted_files_are_rejected(model: bytes) -> None:
    chance = random.Random(0)
    for number in range(N_CORRUPTIONS):
        damaged = bytearray(model)
        kind = number % 4
        if kind == 0:
            damaged[chance.randrange(len(model))] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del damaged[chance.randrange(len(model)) :]
        elif kind == 2:
            first = chance.randrange(len(model))
            damaged[first : first + chance.randrange(1, 64)] = chance.randbytes(chance.randrange(64))
        else:
            damaged += chance.randbytes(chance.randrange(1, 64))
        if damaged == model:
            continue
        with pytest.raises(InputError):
            Workspace.load(bytes(damaged))


def test_damaged_file_is_rejected_with_the_reason(model: bytes) -> None:
    later = bytearray(model)
    np.frombuffer(later, HEAD, count=1, offset=len(MAGIC))["version"][0] = 99
    for data, message in [
        (b"", "the model is not a model file of onlineauto"),
        (b"1 |a b\n", "the model is not a model file of onlineauto"),
        (model[:20], "the model is a model file that was cut off"),
        (model[:-1], "the model has .* bytes, but its header says"),
        (bytes(later), "the model is a model file of version 99, but this onlineauto reads versions up to 1"),
        (model[:-40] + bytes([model[-40] ^ 1]) + model[-39:], "the model is damaged: its checksum"),
    ]:
        with pytest.raises(InputError, match=message):
            Workspace.load(data)
