"""Ensembles that continued from one base, on separate events, and are merged."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.quality.logs import head, load
from onlineauto import OptionError, Workspace
from onlineauto.automl.decisions import PredictWith
from onlineauto.engine.ensemble.branches import (
    Branch,
    Sums,
    exponential_retention,
    mean_retention,
    merge_cells,
    merge_moments,
    merge_squares,
    shares,
    sums_of,
)
from onlineauto.engine.ensemble.ensemble import begin_again, names_of, weight_of
from onlineauto.engine.ensemble.least_squares_kernels import WAITING, Observed, begin_weight, learn_lately
from onlineauto.engine.ensemble.merge import _retention, merge_ensembles, merge_inputs
from onlineauto.engine.ensemble.regression import make_regression, merge_regression
from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.records.ensemble import MOST_ACTIONS, PROJECTED, InVectors, Known
from tests.engine.ensemble_streams import embedded, odd
from tests.naive.members import KEEPS, Squares
from tests.naive.merging import Fitted, cell, fit_branches

pytestmark = pytest.mark.lane("ci")

OPTIONS: dict[str, Any] = {"cb_adf": True, "automl": 1, "default_lease": 10**6, "bit_precision": 12}
MEMBERS = "features,waves,crosses,layer,baseline,ridge,means,trees"


def ensemble_of(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble


def events_of(text: bytes) -> list[str]:
    return [f"{event}\n\n" for event in text.decode().strip().split("\n\n")]


def made(members: str = MEMBERS) -> Workspace:
    """Return a model whose ensemble predicts from the start, and whose tests decide nothing."""
    workspace = Workspace(**OPTIONS, members=members)
    workspace.searching.live_configs.apply(PredictWith("ensemble", "loss"), workspace.learner.model)
    ensemble_of(workspace).test.level[0] = 1e-300
    return workspace


def learn(workspace: Workspace, events: Sequence[str]) -> None:
    for event in events:
        workspace.learn(event)


def merge(base: Workspace, ends: Sequence[Workspace], learnt: Sequence[int]) -> Workspace:
    """Return a copy of the branch that has learnt most, with the merged ensemble."""
    ensemble = merge_ensembles(ensemble_of(base), list(map(ensemble_of, ends)), learnt=learnt, floor=True)
    result = copy.deepcopy(ends[int(np.argmax(learnt))])
    begin_again(ensemble_of(result), ensemble)
    return result


def predicted(workspace: Workspace, events: Sequence[str], name: str = "") -> NDArray[np.float64]:
    """Return the predictions of the ensemble, or of one score alone."""
    workspace = copy.deepcopy(workspace)
    ensemble = ensemble_of(workspace)
    if name:
        ensemble.weights[:] = 0.0
        ensemble.weights[weight_of(ensemble, name)] = 1.0
    return np.array([workspace.predict(event) for event in events], np.float64)


def distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean((one - other) ** 2)))


def data(draw: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    inputs = draw.normal(size=(n, 6)) * (draw.random((n, 6)) < 0.7)
    return inputs, inputs @ np.arange(6.0) + draw.normal(size=n)


def squares(
    began: Squares, inputs: NDArray[np.float64], targets: NDArray[np.float64], keeps: float
) -> Squares:
    """Least squares one event at a time, by formula."""
    result = copy.deepcopy(began)
    for row, target in zip(inputs, targets, strict=True):
        gains = result.spread @ row
        variance = keeps + row @ gains
        result.weights = result.weights + gains * (target - result.weights @ row) / variance
        result.spread = (result.spread - np.outer(gains, gains) / variance) / keeps
    return result


@pytest.mark.parametrize("keeps", [1.0, 0.9995, 0.99])
def test_least_squares_merge_as_their_events_say(keeps: float) -> None:
    """Without forgetting it is what one learner has, else what the weights of the events give."""
    draw = np.random.default_rng(0)
    base = squares(Squares(1e3, 6), *data(draw, 60), keeps)
    parts = [data(draw, n) for n in (150, 40, 90)]
    ends = [squares(base, *part, keeps) for part in parts]
    counts = shares([150, 40, 90], exponential_retention(keeps))
    began, *rest = [sums_of(each.weights, each.spread) for each in (base, *ends)]
    weights, spread = merge_squares(began, rest, counts, 1e3)
    if keeps == 1.0:
        whole = base
        for part in parts:
            whole = squares(whole, *part, 1.0)
        np.testing.assert_allclose(weights, whole.weights, rtol=1e-9)
        np.testing.assert_allclose(spread, whole.spread, rtol=1e-6, atol=1e-12)
        return
    fitted = fit_branches(Fitted(*sums_of(base.weights, base.spread)), parts, keeps=keeps)
    np.testing.assert_allclose(weights, fitted.weights, rtol=1e-6)
    np.testing.assert_allclose(spread, fitted.spread, rtol=1e-5, atol=1e-9)
    assert np.array_equal(spread, spread.T)


def limited(state: Squares, variance: float) -> Squares:
    """No variance exceeds a limit, as in `cut_off`."""
    factors = np.minimum(1.0, np.sqrt(variance / state.spread.diagonal()))
    state.spread = factors[:, None] * state.spread * factors
    return state


def collinear(
    draw: np.random.Generator, n: int, *, hair: float, rests: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return inputs of which two are nearly equal and one may rest, a constant, and targets."""
    inputs = draw.normal(size=(n, 5))
    inputs[:, 1] = inputs[:, 0] + hair * inputs[:, 1]
    inputs[:, 2] *= not rests
    inputs[:, 4] = 1.0
    return inputs, inputs @ draw.normal([0.5, 0.5, 0.3, 0.2, 0.1], 0.05) + 0.5 * draw.normal(size=n)


@pytest.mark.parametrize("woken", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_merged_weights_stay_within_what_their_ends_say(ordered: bool, woken: bool) -> None:
    """Within the bounds of base and ends, widened by their width, they are the solution of the sums."""
    outside, inside = 0, 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        keeps, hair, limit = 1.0 - 10.0 ** draw.uniform(-3, -2), 10.0 ** draw.uniform(-3, 0), 2.0
        rests = bool(draw.random() < 0.5)
        base = limited(
            squares(Squares(limit, 5), *collinear(draw, 200, hair=hair, rests=rests), keeps), limit
        )
        ends = []
        for _ in range(int(draw.integers(2, 6))):
            data_of = collinear(draw, int(draw.integers(20, 400)), hair=hair, rests=rests and not woken)
            ends.append(limited(squares(base, *data_of, keeps), limit))
        assumed = 1.0 - draw.uniform(0.1, 1.0) * (1.0 - keeps)  # who merges may not know it
        parts = shares(
            [int(draw.integers(20, 400)) for _ in ends], exponential_retention(assumed), ordered=ordered
        )
        began, *rest = [sums_of(each.weights, each.spread) for each in (base, *ends)]
        weights, spread = merge_squares(began, rest, parts, limit)
        known = np.array([each.weights for each in (base, *ends)])
        low, high = known.min(axis=0), known.max(axis=0)
        width = high - low + 1e-6
        assert ((low - width <= weights) & (weights <= high + width)).all()
        assert (np.linalg.eigvalsh(spread) > 0.0).all()
        assert (spread.diagonal() <= limit * (1 + 1e-9)).all()
        information, products = (
            getattr(began, name)
            + sum(
                part * (getattr(end, name) - getattr(began, name))
                for end, part in zip(rest, parts, strict=True)
            )
            for name in ("information", "products")
        )
        exact = np.linalg.solve(information, products)
        if (
            np.linalg.eigvalsh(information)[0] < 0.05
            or not ((low - width < exact) & (exact < high + width)).all()
        ):
            outside += 1
        else:
            inside += 1
            np.testing.assert_allclose(weights, exact, rtol=1e-5, atol=1e-7)
    assert min(outside, inside) >= 5


def test_a_weight_at_its_bound_leaves_the_others_free() -> None:
    """Of two equal inputs, one takes over what the other cannot have: predictions stay the same."""
    information = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]) + 1e-6 * np.eye(3)
    began = Sums(information, information @ np.array([0.5, 0.5, 0.0]))
    turned = np.array([1.0, -1.0, 0.0])
    ends = [
        Sums(information, information @ np.array([0.5, 0.5, 0.2]) + step * turned) for step in (-9e-6, 1e-6)
    ]
    known = [np.array([0.5, 0.5, 0.0]), np.array([0.4, 0.6, 0.2]), np.array([0.6, 0.4, 0.2])]
    weights, _ = merge_squares(began, ends, np.ones(2), 1e7, weights_of=known)
    np.testing.assert_allclose(weights, [0.2, 0.8, 0.4], atol=1e-5)


def test_retained_learning_of_branches_is_measured() -> None:
    """Events without some input add nothing to its information, which is then only forgotten."""
    draw, keeps = np.random.default_rng(1), 0.9998
    base = squares(Squares(2.0, 6), *data(draw, 300), keeps)
    ends = []
    for n in (200, 500):
        inputs, targets = data(draw, n)
        inputs[:, 3] = 0.0
        ends.append(squares(base, inputs, targets, keeps))
    began, *rest = [sums_of(each.weights, each.spread) for each in (base, *ends)]
    assert _retention(began, [*rest, began], [200, 500, 0]) == pytest.approx(keeps, abs=1e-9)


def test_two_halves_count_within_the_bound_of_one_learner() -> None:
    """Forgetting is inexact, by at most k(N) for each event, and the prior counts once."""
    n, keeps = 400, 0.9995
    counts = shares([n, n], exponential_retention(keeps))
    for back in (0, n - 1):  # the latest and the earliest event of a half; one learner has two for each
        ratio = counts[0] * keeps**back / keeps ** (2 * back)
        assert keeps ** (2 * n) < ratio < keeps ** (-2 * n)
    np.testing.assert_allclose(keeps ** (2 * n) + sum(counts * (1 - keeps**n)), 1.0)


@pytest.mark.parametrize("seen", [0, 30, 5000])
def test_means_and_variances_merge_into_those_of_all(seen: int) -> None:
    draw = np.random.default_rng(seen)

    def run(mean: float, variance: float, began: int, values: NDArray[np.float64]) -> tuple[float, float]:
        for at, value in enumerate(values, began + 1):
            away = value - mean
            mean += away / min(at, 1000)
            variance += (away * (value - mean) - variance) / min(at, 1000)
        return mean, variance

    base = run(0.0, 0.0, 0, draw.normal(100.0, 2.0, size=seen))
    values = draw.normal(101.0, 3.0, size=600)
    ends = [run(*base, seen, values[part::3]) for part in range(3)]
    found = merge_moments(base, ends, shares([200] * 3, mean_retention(float(seen), 1000.0)))
    rtol = 1e-9 if seen + 600 < 1000 else 0.02
    np.testing.assert_allclose(found, run(*base, seen, values), rtol=rtol)


def test_cells_merge_like_their_reference_implementation() -> None:
    draw, shape = np.random.default_rng(3), (64, 3)
    spread = np.where(draw.random(shape) < 0.3, 0.0, 0.1 * draw.random(shape) ** 4 + 1e-6).astype(np.float32)
    base = (draw.normal(size=shape) * (spread > 0)).astype(np.float32), spread
    ends = []
    for _ in range(3):
        moved = draw.random(shape) < 0.5
        tighter = np.where(spread > 0, spread * draw.uniform(0.3, 1.02, size=shape), 0.09)
        weights = np.where(moved, base[0] + 0.1 * draw.normal(size=shape), base[0])
        ends.append((weights.astype(np.float32), np.where(moved, tighter, spread).astype(np.float32)))
    limit = max(float((1 / of[of > 0].astype(float)).max()) for _, of in (base, *ends))
    options: Any = {"keeps": 0.9995, "bounds": (1e-7, 0.1)}
    weights, spread = merge_cells(base, ends, [700, 20, 5000], **options)
    for at in np.ndindex(shape):
        own, *others = ((float(each[0][at]), float(each[1][at])) for each in (base, *ends))
        wanted = cell(own, others, [700, 20, 5000], limit=limit, **options)
        np.testing.assert_allclose((weights[at], spread[at]), wanted, rtol=2e-4, atol=1e-6)


def test_cells_that_are_new_add_up() -> None:
    """A thing measured by two branches is known as well as if one had measured it as often."""
    base = np.zeros((4, 1), np.float32), np.zeros((4, 1), np.float32)
    one = np.array([[0.5], [0.5], [0.0], [0.0]], np.float32), np.array([[0.05], [0.05], [0], [0]], np.float32)
    other = np.array([[0.3], [0], [0], [0]], np.float32), np.array([[0.05], [0], [0], [0]], np.float32)
    weights, spread = merge_cells(base, [one, other], [5, 5], keeps=0.9995, bounds=(1e-7, 0.1))
    np.testing.assert_allclose(1 / spread[:2, 0], [30.0, 20.0], rtol=0.01)
    np.testing.assert_allclose(weights[:2, 0], [(0.5 + 0.3) * 20 / 30, 0.5], rtol=0.01)
    assert not spread[2:].any()


def test_a_regression_learns_its_waiting_events_when_it_is_merged() -> None:
    """Late products, events that wait, new inputs: a branch alone becomes what one learner has."""
    draw, n, most = np.random.default_rng(4), 5, 8
    state, twin, room = (
        make_regression(2, most),
        Squares(0.5, n, narrow=True),
        np.zeros((WAITING, most), np.float32),
    )
    state.prepared[:], state.begun[0] = (n, 1), n
    for at in range(n):
        state.spread[0, at, at] = 0.5
    base = Branch(copy.deepcopy(state), np.arange(n), np.arange(0), np.arange(1), np.zeros((33, 2), np.int64))
    for at in range(130):
        if at == 101:
            while state.n_waiting[0]:  # none waits when an input is new
                learn_lately(state, 0, np.zeros(n, np.float32), room, Observed(0.0, 1.0, KEEPS, 0), 1)
                twin.waiting.append((np.zeros(n), 0.0, 1.0, 0))
            begin_weight(state, 0, n, 0.5)
            n += 1
            state.prepared[0] = state.begun[0] = n
        row, target, times = draw.normal(size=n).astype(np.float32), float(draw.normal()), (1, 0, 4)[at % 3]
        learn_lately(state, 0, row, room, Observed(target, 1.0, KEEPS, times), WAITING)
        twin.waiting.append((row.astype(np.float64), target, 1.0, times))
    for learnt in twin.waiting:
        twin.learn(*learnt)
    seen = np.zeros((33, 2), np.int64)
    seen[0, 1] = 130
    inputs = Workspace(**OPTIONS, members="features").searching.live_configs.arrays.ensemble.members.inputs
    inputs.tally[:] = n, 0, 1, 0
    branch = base._replace(state=state, inputs=np.arange(n), seen=seen)
    merged = merge_regression(base, [branch], inputs, 0.5, n)
    np.testing.assert_allclose(merged.weights[0, :n], twin.weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(merged.spread[0, :n, :n], twin.spread, rtol=1e-5, atol=1e-9)


def test_two_halves_predict_like_one_learner() -> None:
    """Distances are in standard deviations of the predictions of one learner."""
    events = events_of(odd(1300, numbers=2))
    base = made()
    learn(base, events[:700])  # young members of branches would give their scores other weights
    ends, whole = [copy.deepcopy(base) for _ in range(2)], copy.deepcopy(base)
    for at, event in enumerate(events[700:1000]):
        ends[at % 2].learn(event)
        whole.learn(event)
    result = merge(base, ends, [150, 150])
    rest = events[1000:]
    for name in ("", *names_of(ensemble_of(base))):
        if name not in ("layer", "trees"):  # the one begins after 1,024 events, the other changes then
            one, both, half = (predicted(each, rest, name) for each in (whole, result, ends[0]))
            away = distance(one, both) / one.std()
            assert away < (0.05 if name in ("", "features", "waves") else 0.15), name
            assert away < 0.6 * distance(one, half) / one.std(), name
    actual, single = ensemble_of(result), ensemble_of(whole)
    np.testing.assert_allclose(
        actual.members.inputs.numbers.mean, single.members.inputs.numbers.mean, atol=1e-9
    )
    np.testing.assert_allclose(
        actual.members.inputs.numbers.variance, single.members.inputs.numbers.variance, rtol=1e-9
    )
    np.testing.assert_array_equal(np.sort(actual.members.inputs.seen), np.sort(single.members.inputs.seen))
    np.testing.assert_allclose(actual.range, single.range)
    assert actual.test.updates[0] == pytest.approx(single.test.updates[0], abs=2)


@pytest.mark.parametrize("n_base", [0, 100, 320], ids=["from nothing", "with sums", "with a projection"])
def test_vectors_merge_like_those_of_one_learner(n_base: int) -> None:
    events = events_of(embedded(900))
    base = made("vectors,ridge")
    learn(base, events[:n_base])
    ends, whole = [copy.deepcopy(base) for _ in range(2)], copy.deepcopy(base)
    for at, event in enumerate(events[n_base : n_base + 400]):
        ends[at % 2].learn(event)
        whole.learn(event)
    result, rest = merge(base, ends, [200, 200]), events[n_base + 400 :]
    one, both, half = (predicted(each, rest, "vectors") for each in (whole, result, ends[0]))
    assert distance(one, both) < (0.1 if n_base else 0.3) * one.std()
    assert distance(one, both) < 0.6 * distance(one, half)
    inputs, single = (ensemble_of(each).members.inputs.vectors for each in (result, whole))
    np.testing.assert_allclose(inputs.vector_mean, single.vector_mean, atol=1e-9)
    np.testing.assert_allclose(inputs.vector_variance, single.vector_variance, rtol=1e-9)
    learn(result, rest)
    assert ensemble_of(result).members.inputs.vectors.vectors[InVectors.PROJECTED] == PROJECTED
    assert np.isfinite(predicted(result, rest)).all()


def test_of_two_projections_that_of_the_longer_branch_is_kept() -> None:
    events = events_of(embedded(800))
    base = made("vectors,ridge")
    ends = [copy.deepcopy(base) for _ in range(2)]
    for end, part in zip(ends, (events[:330], events[330:700]), strict=True):
        learn(end, part)
    result = merge(base, ends, [330, 370])
    longer, merged = (ensemble_of(each).members.inputs for each in (ends[1], result))
    np.testing.assert_array_equal(merged.vectors.basis, longer.vectors.basis)
    assert merged.tally[Known.NUMBERS] == longer.tally[Known.NUMBERS] == PROJECTED
    learn(result, events[700:])
    assert np.isfinite(predicted(result, events[700:])).all()


def test_the_layer_merges_after_it_has_begun() -> None:
    events = events_of(odd(2600, numbers=2))
    base = made("features,layer")
    learn(base, events[:1500])
    ends, whole = [copy.deepcopy(base) for _ in range(2)], copy.deepcopy(base)
    for at, event in enumerate(events[1500:2300]):
        ends[at % 2].learn(event)
        whole.learn(event)
    result, rest = merge(base, ends, [400, 400]), events[2300:]
    one, both, half = (predicted(each, rest, "layer") for each in (whole, result, ends[0]))
    assert distance(one, both) < 0.1 * one.std()
    assert distance(one, both) < distance(one, half)
    np.testing.assert_allclose(
        states_of(ensemble_of(result)).state_of("layer").measure,
        states_of(ensemble_of(whole)).state_of("layer").measure,
        rtol=0.3,
    )


def test_an_unchanged_copy_changes_nothing() -> None:
    events = events_of(odd(700, numbers=1))
    base = made()
    learn(base, events[:300])
    end = copy.deepcopy(base)
    learn(end, events[300:500])
    alone, with_copy = merge(base, [end], [200]), merge(base, [end, base], [200, 0])
    rest = events[500:]
    np.testing.assert_allclose(predicted(with_copy, rest), predicted(alone, rest), atol=1e-5)
    assert distance(predicted(alone, rest), predicted(end, rest)) < 0.03  # events that waited are learnt
    one, other = ensemble_of(alone), ensemble_of(end)
    fields = ("weights", "spread", "error", "costs", "range")
    arrays = {name: (getattr(one, name), getattr(other, name)) for name in fields}
    arrays |= dict(zip(one.test._fields, zip(one.test, other.test, strict=True), strict=True))
    for name, (actual, expected) in arrays.items():
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-9, err_msg=name)
    swapped = merge(base, [base, end], [0, 200])
    np.testing.assert_allclose(predicted(swapped, rest), predicted(alone, rest), atol=1e-5)


def test_branches_may_find_features_and_actions_in_any_order() -> None:
    """Two branches without a base, of the same events told in another order, know the same things."""
    events = events_of(odd(400, numbers=2, words=9, actions=5, shuffled=True, ids=4))
    base, one, other = (made("features,waves") for _ in range(3))
    learn(one, events[:200])
    learn(other, events[399:199:-1])
    ensembles = [ensemble_of(each) for each in (base, one, other)]
    inputs, branches = merge_inputs(
        ensembles[0].members.inputs, [each.members.inputs for each in ensembles[1:]]
    )
    assert sorted(branches[2].actions) == [0, 1, 2, 3, 4]
    assert list(branches[2].actions) != [0, 1, 2, 3, 4]
    for branch, ensemble in zip(branches[1:], ensembles[1:], strict=True):
        kept = branch.inputs[branch.inputs >= 0]
        assert len(kept) > ensemble.members.inputs.tally[Known.FEATURES] - 4
        assert kept.max() < inputs.tally[Known.FEATURES]
        np.testing.assert_array_equal(
            branch.seen[branch.actions, 1], ensemble.members.inputs.seen[: len(branch.actions)]
        )
    assert inputs.seen[MOST_ACTIONS] == 400
    assert inputs.seen[:5].sum() == 400
    result = merge(base, [one, other], [200, 200])
    rest = events_of(odd(500, numbers=2, words=9, actions=5, ids=4))[400:]
    whole = made("features,waves")
    learn(whole, events)
    away = distance(predicted(result, rest, "features"), predicted(whole, rest, "features"))
    assert away < 0.8 * distance(predicted(one, rest, "features"), predicted(whole, rest, "features"))
    learn(result, rest)
    assert np.isfinite(predicted(result, rest)).all()


def test_waves_of_numbers_in_another_order_are_left_out() -> None:
    """A wave is of the first number, the second and so on, so a branch that has them otherwise is no help."""
    events = events_of(odd(300, numbers=2))
    turned = [re.sub(r"(x0:\S+) (x1:\S+)", r"\2 \1", event) for event in events]
    base, one, other = (made("features,waves") for _ in range(3))
    learn(one, events[:200])
    learn(other, turned[:200])
    both, alone = merge(base, [one, other], [200, 200]), merge(base, [one], [200])
    regressions = [states_of(ensemble_of(each)).state_of("waves").regression for each in (both, alone)]
    np.testing.assert_allclose(regressions[0].weights, regressions[1].weights, atol=1e-6)
    features = [
        states_of(ensemble_of(each)).state_of("features").regression.spread[0] for each in (both, alone)
    ]
    assert np.trace(features[0]) < 0.9 * np.trace(features[1])  # features may be in any order


def test_features_beyond_the_room_of_a_merged_ensemble_are_left_out() -> None:
    """Two branches of 200 words each: the first's fit, and as many of the other's as there is room for."""
    base, one, other = (made("features") for _ in range(3))
    for branch, begin in ((one, 0), (other, 200)):
        for at in range(200):
            label = f"0:{at % 3}:0.5 |a x\n|a y" if at % 2 else f"|a x\n0:{at % 4}:0.5 |a y"
            branch.learn(f"shared |w long_word_{begin + at}\n{label}\n\n")
        assert ensemble_of(branch).members.inputs.tally[Known.FEATURES] == 201
        ensemble_of(branch).members.inputs.wide[0] = 2
    result = merge(base, [one, other], [200, 200])
    inputs = ensemble_of(result).members.inputs
    assert inputs.tally[Known.FEATURES] == 300
    assert inputs.wide[0] == 4
    assert np.isfinite(states_of(ensemble_of(result)).state_of("features").regression.weights).all()
    assert np.isfinite(predicted(result, ["shared |w long_word_3\n|a x\n|a y\n\n"])).all()


def test_a_score_that_is_stopped_in_a_branch_has_no_weight_when_merged() -> None:
    base = made("features,crosses")
    events = events_of(odd(300, numbers=1))
    learn(base, events[:200])
    one, other = copy.deepcopy(base), copy.deepcopy(base)
    learn(other, events[200:])
    learn(one, events[:100])
    ensemble_of(one).members.inputs.tally[Known.WIDEST] = 25
    result = ensemble_of(merge(base, [one, other], [100, 100]))
    at = weight_of(result, "crosses in pairs")
    assert ensemble_of(other).weights[at] != 0.0
    assert abs(result.weights[at]) < 1e-12
    assert np.isfinite(result.weights).all()


def test_actions_beyond_the_limit_share_a_row() -> None:
    """Two branches of 70 actions each, of which no more than 128 may have a regression each."""
    text = odd(300, actions=70, numbers=1).decode()
    base, one, other = (made("features,crosses") for _ in range(3))
    learn(one, events_of(text.encode()))
    learn(other, events_of(text.replace("|a a", "|a b").encode()))
    result = merge(base, [one, other], [300, 300])
    assert ensemble_of(result).members.inputs.tally.tolist()[2] == MOST_ACTIONS + 1
    assert ensemble_of(result).members.inputs.seen[0] == 0
    learn(result, events_of(text.encode())[:50])
    assert np.isfinite(predicted(result, events_of(text.encode())[50:60])).all()


def test_ensembles_that_cannot_be_merged_are_named() -> None:
    base, other = made("features"), made("waves")
    with pytest.raises(OptionError, match="of other --members or --live_configs"):
        merge(base, [other], [0])
    changed = copy.deepcopy(base)
    ensemble_of(changed).members.rests[0] = True
    with pytest.raises(OptionError, match="changed what predicts, which members rest, or its tests"):
        merge(base, [changed], [0])


def test_four_partitions_earn_nearly_what_one_learner_earns() -> None:
    """Digits by the pen: 1,000 events of one learner, then 3,000 of four, merged every 400 or never."""
    log = head(load("penbased-n-u"), 4000)
    events = [f"{event.decode()}\n\n" for event in log.events]

    def earned(partitions: int, *, merges: bool) -> float:
        base, rewards = made("features,waves,crosses,layer"), []
        learn(base, events[:1000])
        ends = [copy.deepcopy(base) for _ in range(partitions)]
        for at, event in enumerate(events[1000:], 1000):
            end = ends[at % partitions]
            rewards.append(log.rewards[at, int(np.argmin(end.predict(event)))])
            end.learn(event)
            if merges and (at + 1) % 400 == 200:
                learnt = [400 // partitions] * partitions
                ensemble = merge_ensembles(
                    ensemble_of(base), list(map(ensemble_of, ends)), learnt=learnt, floor=True
                )
                for each in (base, *ends):
                    begin_again(ensemble_of(each), ensemble)
        return float(np.mean(rewards[1000:]))

    one, merged, apart = earned(1, merges=False), earned(4, merges=True), earned(4, merges=False)
    assert merged > one - 0.005
    assert apart < one - 0.01
