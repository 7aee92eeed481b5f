"""Regressions of members before the first event and in model files; and the basis of waves."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import Sums, exponential_retention, merge_squares, shares, sums_of
from onlineauto.engine.ensemble.least_squares_kernels import LATE, SURE_32, WAITING, Observed, Regression
from onlineauto.engine.ensemble.regression_kernels import EACH, KEEPS, Prepared, times_taken
from onlineauto.engine.ensemble.wave_kernels import WAVES, Basis
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_NUMBERS, Known
from onlineauto.state.schema import declare, field, jointly, make, scratch, to_predict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.state.stored import Stored


def make_regression(actions: int, inputs: int) -> Regression:
    """Return regressions for `actions` actions and `inputs` inputs before the first event."""
    return make(Regression, {"actions": actions, "inputs": inputs})


def _used(regression: Regression) -> dict[str, int]:
    """Return the used part of regressions: of actions that are too many, all share one."""
    inputs, actions = regression.prepared.tolist()
    return {"inputs": inputs, "actions": 1 if actions > MOST_ACTIONS else actions}


declare(
    Regression,
    used=_used,
    weights=field("actions", "inputs", merge=jointly, predicts=True),
    spread=field("actions", "inputs", "inputs", merge=jointly),
    late=field("actions", LATE, "inputs", merge=jointly),
    n_late=field("actions", merge=jointly, predicts=True),
    scale=field("actions", merge=jointly, predicts=True, initial=1),
    waiting=field("actions", WAITING, "inputs", merge=jointly),
    observed=field("actions", WAITING, len(Observed._fields) - 1, merge=jointly),
    n_waiting=field("actions", merge=jointly, predicts=True),
    begun=field("actions", merge=jointly, predicts=True),
    prepared=field(2, merge=jointly, predicts=True),
    gains=scratch(WAITING, "inputs"),
)
declare(Basis)


def regression_to_predict(regression: Regression) -> Regression:
    """Return a regression that shares the weights; its other arrays are empty."""
    return to_predict(regression)


def begin_regression(regression: Regression, inputs: Inputs, n: int) -> None:
    """Prepare new regressions for known actions and `n` inputs."""
    regression.prepared[:] = n, int(inputs.tally[Known.ACTIONS])


def regression_state(regression: Regression, inputs: Inputs, n: int) -> dict[str, Any]:
    """Return the used part of regressions of `n` inputs; of each covariance one triangle is enough."""
    known = int(inputs.tally[Known.ACTIONS])
    actions = 1 if known > MOST_ACTIONS else known
    weights = {"weights": regression.weights[:actions, :n].copy()}
    return weights | _to_learn(regression, actions, n) if len(regression.spread) else weights


def _to_learn(regression: Regression, actions: int, inputs: int) -> dict[str, Any]:
    """Return the arrays that learning needs besides the weights."""
    row, column = np.tril_indices(inputs)
    late = int(regression.n_late[:actions].max(initial=0))
    waits = int(regression.n_waiting[:actions].max(initial=0))
    wait = (
        np.arange(waits) < regression.n_waiting[:actions, None]
    )  # other rows are from events already learnt
    return {
        "spread": regression.spread[:actions, row, column],
        "late": regression.late[:actions, :late, :inputs].copy(),
        "n_late": regression.n_late[:actions].copy(),
        "scale": regression.scale[:actions].copy(),
        "waiting": np.where(wait[..., None], regression.waiting[:actions, :waits, :inputs], np.float32(0)),
        "observed": np.where(wait[..., None], regression.observed[:actions, :waits], 0.0),
        "n_waiting": regression.n_waiting[:actions].copy(),
    }


def restore_regression(stored: Stored, regression: Regression, inputs: Inputs, n_inputs: int) -> None:
    """Copy stored regressions of known actions and `n_inputs` inputs; older files have them in float64."""
    weights = stored["weights"].float32_array((-1, -1))
    actions, n = weights.shape
    if actions > len(regression.weights) or n > regression.weights.shape[1]:
        raise stored["weights"].fail("weights of members")
    regression.weights[:actions] = 0
    regression.weights[:actions, :n] = weights
    regression.prepared[:] = n_inputs, inputs.tally[Known.ACTIONS]
    if not len(regression.spread):
        return
    row, column = np.tril_indices(n)
    spread = stored["spread"].float32_array((actions, len(row)))
    regression.spread[:actions] = 0
    regression.spread[:actions, row, column] = spread
    regression.spread[:actions, column, row] = spread
    regression.begun[:actions] = np.count_nonzero(spread[:, row == column], axis=1)
    regression.late[:], regression.n_late[:], regression.scale[:] = 0.0, 0, 1.0
    late = stored["late"].float32_array((actions, -1, n))
    if late.shape[1] > LATE:
        raise stored["late"].fail(f"at most {LATE} events")
    regression.late[:actions, : late.shape[1], :n] = late
    counts = regression.n_late[:actions]
    counts[:] = stored["n_late"].array_between(counts, 0, LATE)
    scale = regression.scale[:actions]
    scale[:] = stored["scale"].array_between(scale, 1.0, 2.0)
    _restore_waiting(stored, regression, actions, n)


def _restore_waiting(stored: Stored, regression: Regression, actions: int, inputs: int) -> None:
    """Copy the stored events that wait to be learnt into the regressions of `actions` actions."""
    regression.waiting[:], regression.observed[:], regression.n_waiting[:] = 0.0, 0.0, 0
    waiting = stored["waiting"].float32_array((actions, -1, inputs))
    waits = waiting.shape[1]
    observed = stored["observed"].finite(np.float64, (actions, waits, regression.observed.shape[2]))
    if waits >= WAITING or ((observed[..., -1] < 0) | (observed[..., -1] > EACH)).any():
        raise stored["observed"].fail(f"fewer than {WAITING} events, each to be taken for at most {EACH}")
    regression.waiting[:actions, :waits, :inputs] = waiting
    regression.observed[:actions, :waits] = observed
    counts = regression.n_waiting[:actions]
    counts[:] = stored["n_waiting"].array_between(counts, 0, waits)


class Settled(NamedTuple):
    """Regressions as statistics of least squares, without events that wait to be learnt.

    A worker computes them, so that the process that merges only adds them up.
    """

    information: NDArray[np.float64]  # [actions, n, n], as in `Sums`
    products: NDArray[np.float64]  # [actions, n]
    weights: NDArray[np.float64]  # [actions, n]
    begun: NDArray[np.int64]
    n_waiting: NDArray[np.int64]  # of the regression
    prepared: NDArray[np.int64]


def settle(regression: Regression, initial_variance: float, keeps: float) -> Settled:
    """Return the statistics of all known actions of a branch, for `merge_regression`."""
    n, known = regression.prepared.tolist()
    actions = 1 if known > MOST_ACTIONS else known
    information, products, weights = np.zeros((actions, n, n)), np.zeros((actions, n)), np.zeros((actions, n))
    for action in np.flatnonzero(regression.begun[:actions]).tolist():
        weights[action], spread = _after_waiting(regression, action, n, initial_variance, keeps)
        information[action], products[action] = sums_of(weights[action], spread)
    begun, n_waiting = regression.begun[:actions].copy(), regression.n_waiting[:actions].copy()
    return Settled(information, products, weights, begun, n_waiting, regression.prepared.copy())


def merge_regression(
    base: Branch,
    branches: Sequence[Branch],
    inputs: Inputs,
    initial_variance: float,
    n: int,
    *,
    keeps: float = KEEPS,
) -> Regression:
    """Return the merged regressions of the merged actions and `n` merged inputs, by least squares.

    The state of a branch is a `Regression`, or what `settle` makes of one. Inputs mapped to the same merged
    input are added up, and inputs without a merged input are left out. New inputs have the variance
    `initial_variance`, as if present from the first event on. Waiting events are learnt first.
    """
    known = int(inputs.tally[Known.ACTIONS])
    rows, columns = base.state.weights.shape  # of a state without its unused part they may be too few
    result = make_regression(max(rows, min(known, MOST_ACTIONS)), max(columns, n))
    result.prepared[:] = n, known
    for action in range(1 if known > MOST_ACTIONS else known):
        if not any(_has_begun(each, action) for each in (base, *branches)):
            continue  # the state before the first event
        taken = [times_taken(*branch.seen[action].tolist()) for branch in branches]
        sums = [_sums(each, action, n, initial_variance, keeps) for each in (base, *branches)]
        (began, *ends), weights_of = [each for each, _ in sums], [each for _, each in sums]
        parts = shares(taken, exponential_retention(keeps), ordered=base.ordered)
        weights, spread = merge_squares(began, ends, parts, initial_variance, weights_of=weights_of)
        result.weights[action, :n], result.spread[action, :n, :n] = weights, spread
        result.begun[action] = n
    return result


def merge_waves(
    base: Branch, branches: Sequence[Branch], inputs: Inputs, initial_variance: float
) -> Regression:
    """Return the merged regressions on waves, which have the same meaning in all branches."""
    same = np.arange(WAVES)
    base_branch, *parts = [each._replace(inputs=same) for each in (base, *branches)]
    return merge_regression(base_branch, parts, inputs, initial_variance, WAVES)


def _sums(
    branch: Branch, action: int, n: int, initial_variance: float, keeps: float
) -> tuple[Sums, NDArray[np.float64]]:
    """Return the statistics and the weights of a merged action in a branch, for `n` merged inputs."""
    unknown = np.full(n, 1.0 / initial_variance)
    own = np.flatnonzero(branch.actions == action)
    if not len(own) or not branch.state.begun[own[0]]:
        return Sums(np.diag(unknown), np.zeros(n)), np.zeros(n)
    n_stored = min(int(branch.state.prepared[Prepared.INPUTS]), len(branch.inputs))
    if isinstance(branch.state, Settled):
        assert n_stored == len(branch.state.products[0]), "each input of a regression has a merged index"
        sums = Sums(branch.state.information[own[0]], branch.state.products[own[0]])
        weights = branch.state.weights[own[0]]
    else:
        weights, spread = _after_waiting(branch.state, int(own[0]), n_stored, initial_variance, keeps)
        sums = sums_of(weights, spread)
    inputs = branch.inputs[:n_stored]
    if n_stored == n and (inputs == np.arange(n)).all():
        return sums, weights
    move = np.zeros((n, n_stored))
    move[inputs[inputs >= 0], np.flatnonzero(inputs >= 0)] = 1.0
    unknown[move.any(axis=1)] = 0.0
    moved = Sums(move @ sums.information @ move.T + np.diag(unknown), move @ sums.products)
    return moved, move @ weights / np.maximum(move.sum(axis=1), 1.0)


def _has_begun(branch: Branch, action: int) -> bool:
    """Return whether a branch has learnt a merged action."""
    own = np.flatnonzero(branch.actions == action)
    return len(own) > 0 and bool(branch.state.begun[own[0]] or branch.state.n_waiting[own[0]])


def _after_waiting(
    regression: Regression, action: int, n: int, initial_variance: float, keeps: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an action's weights and their covariance after learning the waiting events."""
    weights = regression.weights[action, :n].astype(np.float64)
    late = regression.late[action, : regression.n_late[action], :n].astype(np.float64)
    spread = regression.scale[action] * (regression.spread[action, :n, :n] - late.T @ late)
    new = np.arange(regression.begun[action], n)
    spread[new, new] = initial_variance
    for event in range(regression.n_waiting[action]):
        row = regression.waiting[action, event, :n].astype(np.float64)
        target, noise, times = regression.observed[action, event]
        gains = spread @ row
        known = float(row @ gains)
        weights += gains * ((target - weights @ row) / (keeps * max(noise, SURE_32 * known) + known))
        if times:
            decay = keeps**times
            variance = decay * max(noise / times, SURE_32 * known) + known
            spread = (spread - np.outer(gains, gains) / variance) / decay
    return weights, spread


_SEED = 20_261_122


@cache
def make_basis() -> Basis:
    """Return the frequencies and phases."""
    draw = np.random.Generator(np.random.PCG64(_SEED))
    frequency = draw.standard_normal(MOST_NUMBERS * WAVES).astype(np.float32)
    return Basis(frequency, draw.uniform(0.0, 2.0 * np.pi, WAVES))
