"""Long vectors: what members and live configs do with them, beside their reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onlineauto import Workspace
from onlineauto.engine.ensemble.inputs import make_inputs
from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.ensemble.vector_kernels import (
    make_basis,
    register_vectors,
    see_vectors,
    take_vectors,
)
from onlineauto.engine.records.ensemble import (
    MOST_FEATURES,
    MOST_IN_VECTORS,
    MOST_NUMBERS,
    PROJECTED,
    InVectors,
    Known,
    Taken,
)
from onlineauto.features.records import make_stream
from tests.naive.blocks import Line, make_block
from tests.naive.vectors import Vectors, split

pytestmark = pytest.mark.lane("quick")

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "automl": 3, "default_lease": 200, "bit_precision": 14}


def test_vectors_are_read_like_their_reference_implementation() -> None:
    """Of five vectors the last is left out; the third has more numbers than the remaining capacity."""
    draw = np.random.default_rng(3)
    sizes, heads = (60, 100, 300, 70, 80), (2**32 - 20, 7, 1000, 5000, 9000)
    inputs, twin = make_inputs(on=True).vectors, Vectors()
    taken = Taken(
        values=np.zeros(MOST_FEATURES, np.float32),
        raw=np.zeros(MOST_NUMBERS),
        words=np.zeros(MOST_FEATURES, np.uint32),
        n_words=np.zeros(1, np.int64),
        vectors=np.zeros((2, 1 + MOST_IN_VECTORS), np.float32),
    )
    for _ in range(300):
        spans = []
        for name, (head, size) in enumerate(zip(heads, sizes, strict=True)):
            numbers = draw.normal(name, 1.0 + name, size).astype(np.float32)
            numbers[draw.integers(size)] = draw.choice([np.nan, np.inf, 1e30])
            if draw.random() < 0.9:
                of = tuple(((head + i) % 2**32, float(x)) for i, x in enumerate(numbers))
                spans.append((b"%d" % name, of))
        stream = make_stream(make_block([(Line(spans=tuple(spans)),)]), np.zeros(1, bool))
        _, runs = split([feature for _, of in spans for feature in of])
        register_vectors(inputs, stream, 0)
        twin.meet(runs)
        n = int(inputs.vectors[InVectors.NUMBERS])
        take_vectors(inputs, stream, 0, taken)
        np.testing.assert_allclose(taken.vectors[0, 1 : 1 + n], twin.numbers(runs), rtol=1e-4, atol=1e-5)
        if see_vectors(inputs, taken):
            make_basis(inputs)
        twin.see(runs)
    assert len(twin) == n == MOST_IN_VECTORS
    means = [x for each in twin.known.values() for x in each.mean]
    np.testing.assert_allclose(inputs.vector_mean, means, rtol=1e-5)
    assert inputs.vectors[InVectors.PROJECTED] == len(twin.basis) == PROJECTED
    np.testing.assert_allclose(inputs.basis @ inputs.basis.T, np.eye(PROJECTED), atol=1e-5)


def embedded(n: int, *, numbers: int, signal: float, of_actions: int = 0) -> tuple[bytes, NDArray[Any]]:
    """Return events of two words and a vector, and the mean reward of each action for each."""
    draw = np.random.default_rng(1)
    weights, by_word = draw.normal(size=(3, max(numbers, 1))), draw.random((6, 3))
    vectors = [" ".join(f":{x:.4f}1" for x in draw.normal(size=of_actions)) for _ in range(3)]
    text, means = [], []
    for _ in range(n):
        x, word = draw.normal(size=numbers), int(draw.integers(6))
        mean = by_word[word] + signal * (np.tanh(weights[:, :numbers] @ x) if numbers else 0.0)
        vector = " |v " + " ".join(f":{each:.4f}1" for each in x) if numbers else ""
        text.append(f"shared |w w{word} u{draw.integers(4)}{vector}")
        logged = int(draw.integers(3))
        for action in range(3):
            label = f"0:{-mean[action] - 0.3 * draw.normal():.4f}:0.333333 " if action == logged else ""
            text.append(f"{label}|a {vectors[action] if of_actions else f'a{action}'}")
        text.append("")
        means.append(mean)
    return ("\n".join(text) + "\n").encode(), np.array(means)


def gain(text: bytes, means: NDArray[Any], **options: Any) -> tuple[float, Workspace]:
    """Return the part of the possible gain over the best action that greedy choices of the last half have."""
    workspace = Workspace(**OPTIONS | options)
    chosen = np.concatenate([each.action[each.rows["action_start"]] for _, each in workspace.stream(text)])
    rows = np.arange(len(chosen) // 2, len(chosen))
    best = means[rows].mean(axis=0).max()
    return float(
        (means[rows, chosen[rows]].mean() - best) / (means[rows].max(axis=1).mean() - best)
    ), workspace


def test_a_vector_of_noise_does_no_harm() -> None:
    """As many actions are chosen right with 96 numbers of noise as without, but for a few."""
    plain, noisy = (gain(*embedded(2000, numbers=n, signal=0.0))[0] for n in (0, 96))
    assert noisy > plain - 0.1


def test_vectors_tell_which_action_is_best() -> None:
    text, means = embedded(2000, numbers=96, signal=0.5)
    reached, workspace = gain(text, means)
    assert reached > 0.5
    ensemble = workspace.searching.live_configs.arrays.ensemble
    assert ensemble.members.inputs.tally[Known.NUMBERS] == PROJECTED
    assert states_of(ensemble).state_of("vectors").regression.weights[:3].any(axis=1).all()
    used = {names for live in range(3) for names in workspace.searching.interactions(live)}
    assert (b"a", b"v") in used
    assert not any(b"v" in names and names != (b"a", b"v") for names in used)


def test_actions_are_known_by_their_vectors() -> None:
    text, means = embedded(600, numbers=0, signal=0.0, of_actions=64)
    _, workspace = gain(text, means)
    inputs = workspace.searching.live_configs.arrays.ensemble.members.inputs
    assert inputs.tally[Known.ACTIONS] == 3
    assert inputs.vectors.vectors[InVectors.NUMBERS] == 0


def test_single_lines_have_the_member_of_vectors() -> None:
    draw, text = np.random.default_rng(5), []
    for _ in range(400):
        x = draw.normal(size=80)
        text.append(f"{x[:4].sum():.4f} |v " + " ".join(f":{each:.4f}1" for each in x))
    workspace = Workspace(automl=3, predict_with="ensemble").fit("\n".join(text).encode())
    ensemble = workspace.searching.live_configs.arrays.ensemble
    weights = states_of(ensemble).state_of("vectors").regression.weights[0, 1:81]
    assert weights[:4].min() > 5 * np.abs(weights[4:]).mean()


def test_zeros_of_vectors_do_not_slow_the_others() -> None:
    draw, losses = np.random.default_rng(2), []
    numbers = draw.normal(size=300)
    for zeros in (0, 200):
        vector = " ".join([":0"] * zeros)
        lines = [f"{2 * x:.4f} |a x:{x:.4f} |v {vector}" for x in numbers]
        found = [each.loss for _, each in Workspace().stream("\n".join(lines).encode())]
        losses.append(float(np.concatenate(found).mean()))
    assert losses[0] == losses[1]
