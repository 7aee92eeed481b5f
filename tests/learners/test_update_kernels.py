"""Gradient descent: the kernels against a dictionary of cells, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onlineauto.exact.semantics import interleaved_lanes
from onlineauto.features.records import RUN
from onlineauto.features.records import Example as Listed
from onlineauto.jit import kernel
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    GRAVITY,
    MAX_LABEL,
    MIN_LABEL,
    LearnedLabel,
    ModelLane,
    T,
    clip,
    dot,
    materialize,
    update,
    update_four,
)
from onlineauto.learners.gradient_kernels import see_label as see
from onlineauto.learners.model import initial_state, initial_table, make_model, read_cells
from onlineauto.learners.rule import make_rule
from onlineauto.workspace.options import REGISTRY
from tests.naive.bandit import make_twin
from tests.naive.learner import Learner

pytestmark = pytest.mark.lane("sampled")

F = np.float32
CELLS, LANES = 8, 2
SMALLEST = 1e-20
X = st.one_of(
    st.sampled_from([1.0, -1.0, 0.5, SMALLEST, -SMALLEST, 1e20]),
    st.floats(-100, 100, width=32).filter(lambda x: x != 0),
).map(F)
FEATURES = st.lists(st.tuples(st.integers(0, CELLS - 1), X), max_size=6)
WEIGHT = st.one_of(st.sampled_from([1.0, 1.0, 2.0]), st.floats(0, 100, width=32)).map(F)
LABELS = {
    "hinge": st.sampled_from([-1.0, 1.0]).map(F),
    "logistic": st.sampled_from([-1.0, 1.0]).map(F),
    "poisson": st.sampled_from([0.0, 1.0, 4.0]).map(F),
}
ANY_LABEL = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(-10, 10, width=32)).map(F)

SUBSETS = [
    {
        name: True
        for name, chosen in zip(("adaptive", "normalized", "invariant"), choice, strict=True)
        if chosen
    }
    or {"sgd": True}
    for choice in product((True, False), repeat=3)
]
LOSSES: list[dict[str, object]] = [
    {"loss_function": "squared"},
    {"loss_function": "classic"},
    {"loss_function": "hinge"},
    {"loss_function": "logistic"},
    {"loss_function": "quantile", "quantile_tau": 0.25},
    {"loss_function": "expectile", "expectile_q": 0.125},
    {"loss_function": "poisson"},
]
OTHERS: list[dict[str, object]] = [
    {"power_t": 0.25},
    {"power_t": 0.0},
    {"power_t": 1.0},
    {"initial_t": 3.0},
    {"initial_weight": 0.125},
    {"learning_rate": 0.01},
    {"l1": 0.01},
    {"l2": 0.01},
    {"l1": 0.001, "l2": 0.001},
    {"l1": 1e4},
    {"min_prediction": -0.5},
    {"max_prediction": 0.5, "min_prediction": 0.0},
]


@dataclass
class Example:
    """A labelled list of features of a lane."""

    features: list[tuple[int, np.float32]]
    label: np.float32
    weight: np.float32
    lane: int


class Compiled:
    """Kernels, called like the engine calls them."""

    def __init__(self, options: dict[str, object]) -> None:
        configuration = REGISTRY.from_keywords(**options)
        self.rule = make_rule(configuration)
        table = initial_table(configuration, cells=CELLS, lanes=LANES)
        shape = interleaved_lanes(4, configs=LANES, parts=1, policies=0)
        self.model = make_model(configuration, table, shape, training=True)
        self.shared, self.lanes = self.model.shared, self.model.lanes
        if not (self.rule.adaptive or self.rule.normalized) and "initial_t" not in options:
            assert self.shared[T] == 1

    @property
    def cells(self) -> NDArray[np.float32]:
        return read_cells(self.model)

    def learn(self, example: Example) -> tuple[np.float32, np.float32]:
        listed, place = listed_features(example), ModelLane(example.lane, example.lane)
        squares = squares_of(example)
        see(self.rule, self.shared, example.label)
        raw = F(dot(self.rule, self.model, place, listed, F(0.25)))
        p = F(clip(self.shared, raw))
        if example.weight > 0:
            lesson = LearnedLabel(example.label, example.weight)
            update(self.rule, self.model, place, listed, p, lesson, squares)
        self.shared[T] += example.weight
        return raw, p


def listed_features(example: Example) -> Listed:
    """Return the features of an example in runs, with runs of other lanes between them."""
    holders = np.ones((3, LANES), bool)
    holders[2] = False
    holders[2, (example.lane + 1) % LANES] = True
    pieces = [example.features[:2], [(0, F(7))], example.features[2:]]
    features = [feature for piece in pieces for feature in piece]
    ends = np.cumsum([len(piece) for piece in pieces])
    runs = np.zeros(3, RUN)
    runs["start"], runs["end"], runs["product"] = [0, *ends[:-1]], ends, [0, 2, 1]
    return Listed(
        cell=np.array([c for c, _ in features], np.uint32),
        value=np.array([x for _, x in features], np.float32),
        runs=runs,
        n_runs=3,
        holders=holders,
    )


def squares_of(example: Example) -> np.float32:
    total = F(0)
    with np.errstate(over="ignore"):
        for _, x in example.features:
            total = total + x * x
    return total


def twin_of(options: dict[str, object]) -> Learner:
    learner = make_twin(options).learner
    learner.lanes = LANES
    learner.norm.append(0.0)
    learner.weight.append(0.0)
    return learner


def as_bits(values: Sequence[np.float32] | np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[int]:
    """Return the bits of every number; NaNs are equal."""
    flat = np.array(values, np.float32).ravel()
    return [-1 if np.isnan(each) else int(each.view(np.uint32)) for each in flat]


def check(options: dict[str, object], examples: list[Example]) -> None:
    compiled, twin = Compiled(options), twin_of(options)
    for example in examples:
        got = compiled.learn(example)
        with np.errstate(all="ignore"):
            expected = twin.learn(
                example.features,
                example.label,
                example.weight,
                lane=example.lane,
                initial=F(0.25),
                squares=squares_of(example),
            )
            twin.account(example.weight, labelled=True, holdout=False)
        assert as_bits(got) == as_bits(expected)
    assert as_bits(compiled.cells) == as_bits(twin.dense(CELLS))
    numbers = [twin.t, twin.gravity, twin.contraction, *twin.norm, *twin.weight]
    state = [compiled.shared[T], *compiled.lanes[0, [GRAVITY, CONTRACTION]]]
    assert np.array_equal([*state, *compiled.lanes[:, :2].T.ravel()], numbers, equal_nan=True)
    assert list(compiled.shared[[MIN_LABEL, MAX_LABEL]]) == [twin.low, twin.high]


def examples_of(loss: str) -> st.SearchStrategy[list[Example]]:
    label = LABELS.get(loss, ANY_LABEL)
    lane = st.integers(0, LANES - 1)
    return st.lists(st.builds(Example, FEATURES, label, WEIGHT, lane), min_size=1, max_size=6)


def named(options: dict[str, object]) -> str:
    return " ".join(f"--{name} {value}" for name, value in options.items())


@pytest.mark.parametrize("subset", SUBSETS, ids=named)
@pytest.mark.parametrize("loss", LOSSES, ids=named)
@settings(max_examples=10)
@given(st.data())
def test_every_subset_with_every_loss(
    subset: dict[str, object], loss: dict[str, object], data: st.DataObject
) -> None:
    check(subset | loss, data.draw(examples_of(str(loss["loss_function"]))))


@pytest.mark.parametrize("subset", SUBSETS, ids=named)
@pytest.mark.parametrize("other", OTHERS, ids=named)
@settings(max_examples=10)
@given(examples_of("squared"))
def test_every_subset_with_every_constant(
    subset: dict[str, object], other: dict[str, object], examples: list[Example]
) -> None:
    check(subset | other, examples)


@settings(max_examples=100)
@given(examples_of("squared"))
def test_default_rule(examples: list[Example]) -> None:
    check({}, examples)


# -- what the rule promises ----------------------------------------------------------------------------


def taught(options: dict[str, object], examples: list[Example]) -> Compiled:
    compiled = Compiled(options)
    for example in examples:
        compiled.learn(example)
    return compiled


@given(st.dictionaries(st.integers(0, CELLS - 1), st.floats(0.5, 2).map(F), min_size=1, max_size=4))
def test_an_update_moves_towards_the_label_and_not_past_it(features: dict[int, np.float32]) -> None:
    for subset in SUBSETS:
        example = Example(list(features.items()), F(2), F(1), 0)
        compiled = taught(
            {**subset, "learning_rate": 0.1, "min_prediction": -99, "max_prediction": 99}, [example]
        )
        before = 0.25
        after, _ = compiled.learn(example)
        assert before < after
        if "invariant" in subset:
            assert after < 2 + 1e-4


@given(st.floats(0.25, 2).map(F), st.sampled_from([F(0.1), F(7), F(1000)]))
def test_normalized_predictions_do_not_depend_on_the_units(x: np.float32, unit: np.float32) -> None:
    """Values in other units give other weights and the same predictions."""

    def stream(factor: np.float32) -> list[Example]:
        return [
            Example([(0, F(x * factor)), (1, F(1))], F(1), F(1), 0),
            Example([(0, F(x * factor * F(3))), (1, F(1))], F(-1), F(1), 0),
            Example([(0, F(x * factor)), (2, F(2))], F(1), F(1), 0),
        ]

    def predictions(factor: np.float32) -> list[np.float32]:
        compiled = Compiled({})
        return [compiled.learn(example)[0] for example in stream(factor)]

    np.testing.assert_allclose(predictions(unit), predictions(F(1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@given(weight=st.sampled_from([2, 3, 5]), x=st.floats(0.5, 2).map(F))
def test_an_invariant_weight_equals_repeated_updates(loss: str, weight: int, x: np.float32) -> None:
    """The learning rate must be constant: no decay, no adaptation."""
    options: dict[str, object] = {
        "invariant": True,
        "power_t": 0.0,
        "learning_rate": 0.1,
        "loss_function": loss,
    }
    options |= {"min_prediction": -99, "max_prediction": 99}
    heavy = taught(options, [Example([(0, x)], F(1), F(weight), 0)])
    light = taught(options, [Example([(0, x)], F(1), F(1), 0)] * weight)
    assert heavy.cells[0, 0, 0] == pytest.approx(light.cells[0, 0, 0], rel=1e-3, abs=1e-3)


@given(examples_of("squared"))
def test_lanes_are_independent(examples: list[Example]) -> None:
    options: dict[str, object] = {"min_prediction": -99, "max_prediction": 99}
    both = taught(options, examples)
    for lane in range(LANES):
        alone = taught(options, [example for example in examples if example.lane == lane])
        assert as_bits(both.cells[:, :, lane]) == as_bits(alone.cells[:, :, lane])


def test_materialized_penalties_do_not_change_predictions() -> None:
    compiled = taught(
        {"l1": 0.01, "l2": 0.01}, [Example([(0, F(1)), (1, F(2))], F(label), F(1), 0) for label in (1, -2, 3)]
    )
    assert compiled.lanes[0, GRAVITY] > 0
    assert compiled.lanes[0, CONTRACTION] < 1
    listed = listed_features(Example([(0, F(1)), (1, F(2))], F(0), F(0), 0))

    def predicted() -> float:
        return float(dot(compiled.rule, compiled.model, ModelLane(0, 0), listed, F(0)))

    before = predicted()
    assert before != 0
    materialize(compiled.model, 0)
    assert list(compiled.lanes[0, [GRAVITY, CONTRACTION]]) == [0, 1]
    assert predicted() == pytest.approx(before, rel=1e-6)


def test_l1_makes_small_weights_zero() -> None:
    compiled = Compiled({"l1": 1.0})
    compiled.lanes[0, GRAVITY] = 0.5
    compiled.model.weights[:4, 0] = [0.5, -0.5, 0.75, -0.75]
    compiled.model.weights[:4, 1] = 0.5
    compiled.model.penalised[1] = 1
    materialize(compiled.model, 0)
    assert list(compiled.model.weights[:4, 0]) == [0, 0, 0.25, -0.25]
    assert list(compiled.model.weights[:4, 1]) == [0.5] * 4, "a lane with penalties of its own"
    assert list(compiled.model.touched[:5]) == [True] * 4 + [False]


def test_a_nan_prediction_becomes_zero() -> None:
    assert clip(initial_state(REGISTRY.from_keywords(), training=True), F(np.nan)) == 0


@kernel
def learn_four(
    rule: Any, model: Any, listed: Any, raw: NDArray[np.float32], label: Any, weight: NDArray[np.float32]
) -> bool:
    raws = (raw[0], raw[1], raw[2], raw[3])
    lessons = (
        LearnedLabel(label, weight[0]),
        LearnedLabel(label, weight[1]),
        LearnedLabel(label, weight[2]),
        LearnedLabel(label, weight[3]),
    )
    return bool(update_four(rule, model, 0, listed, raws, lessons))


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "exact"])
@settings(max_examples=100, deadline=None)
@given(
    events=st.lists(st.tuples(FEATURES, ANY_LABEL, st.lists(WEIGHT, min_size=4, max_size=4)), max_size=8),
    held=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_four_lanes_learn_like_each_lane_alone(
    guarded: bool, events: list[tuple[list[Any], np.float32, list[np.float32]]], held: list[bool]
) -> None:
    rule = make_rule(REGISTRY.from_keywords(), guarded=guarded)
    together, apart = (
        make_model(
            REGISTRY.from_keywords(),
            np.zeros(CELLS * 4 * 4, np.float32),
            interleaved_lanes(5, configs=4, parts=1, policies=0),
            training=True,
        )
        for _ in range(2)
    )
    holders = np.zeros((3, 7), bool)
    holders[0, :4] = True
    holders[1:, :4] = np.reshape(held, (2, 4))
    for features, label, weight in events:
        parts = [features[:1], features[1:3], features[3:]]
        ends = np.cumsum([len(part) for part in parts])
        runs = np.zeros(3, RUN)
        runs["start"], runs["end"], runs["product"] = [0, *ends[:-1]], ends, [0, 1, 2]
        cell = np.array([c for c, _ in features], np.uint32)
        listed = Listed(cell, np.array([x for _, x in features], np.float32), runs, 3, holders)
        see(rule, together.shared, label)
        see(rule, apart.shared, label)
        raw = [F(dot(rule, apart, ModelLane(lane, lane), listed, F(0))) for lane in range(4)]
        done = learn_four(rule, together, listed, np.array(raw), label, np.array(weight))
        for model in (apart,) if done else (apart, together):
            for lane in range(4):
                if weight[lane] > 0:
                    p = F(clip(model.shared, raw[lane]))
                    update(
                        rule, model, ModelLane(lane, lane), listed, p, LearnedLabel(label, weight[lane]), F(0)
                    )
        assert together.lanes.tobytes() == apart.lanes.tobytes()
        assert as_bits(together.table) == as_bits(apart.table)


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "exact"])
def test_four_lanes_fall_back_like_one_lane(guarded: bool) -> None:
    """If a squared slope underflows, the factor of the last update is used."""
    tiny = [
        ([(0, F(1))], F(1), [F(1.93e-43), F(1), F(1), F(1)]),
        ([(0, F(1))], F(0), [F(2**-9), F(1), F(1), F(1)]),
    ]
    test: Any = test_four_lanes_learn_like_each_lane_alone
    test.hypothesis.inner_test(guarded, tiny, [False] * 8)
