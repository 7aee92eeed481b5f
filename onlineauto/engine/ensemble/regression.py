"""``RegressionMember``: what members that are regressions have in common; and how regressions merge."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import (
    Sums,
    exponential_retention,
    merge_squares,
    shares,
    sums_of,
    without_learning,
)
from onlineauto.engine.ensemble.least_squares_kernels import (
    LATE,
    SURE_32,
    WAITING,
    Observed,
    Prepared,
    Regression,
)
from onlineauto.engine.ensemble.member import TOGETHER, Member, Work
from onlineauto.engine.ensemble.regression_kernels import EACH, KEEPS, times_taken
from onlineauto.engine.ensemble.wave_kernels import WAVES, WAVY_SPREAD, Basis
from onlineauto.engine.records.ensemble import MOST_ACTIONS, Known
from onlineauto.state.schema import (
    between,
    counts,
    declare,
    field,
    finite,
    jointly,
    lower_triangle,
    make,
    read,
    save,
    scratch,
    symmetric,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.ensemble.member import Sizes
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.state.stored import Stored


def _observed(stored: Stored, array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the stored targets of the events that wait to be learnt."""
    observed = stored.finite(np.float64, array.shape)
    if ((observed[..., -1] < 0) | (observed[..., -1] > EACH)).any():
        raise stored.fail(f"events, each to be taken for at most {EACH}")
    return observed


def _used(regression: Regression) -> dict[str, int]:
    """Return the used part of regressions: classes share one, and so do actions that are too many."""
    inputs, outputs = regression.prepared.tolist()
    if len(regression.weights) > len(regression.begun):
        return {"inputs": inputs, "actions": 1, "outputs": outputs}
    actions = 1 if outputs > MOST_ACTIONS else outputs
    return {"inputs": inputs, "actions": actions, "outputs": actions}


declare(
    Regression,
    used=_used,
    weights=field("outputs", "inputs", read=finite, merge=jointly, predicts=True),
    spread=field(
        "actions", "inputs", "inputs", read=symmetric, write=lower_triangle, merge=jointly, grows=True
    ),
    late=field("actions", "late", "inputs", read=finite, merge=jointly),
    n_late=field("actions", read=counts(LATE), merge=jointly),
    scale=field("actions", read=between(1.0, 2.0), merge=jointly, initial=1),
    waiting=field("actions", "waiting", "inputs", read=finite, merge=jointly),
    observed=field("actions", "waiting", len(Observed._fields) - 1, read=_observed, merge=jointly),
    n_waiting=field("actions", read=counts(WAITING - 1), merge=jointly),
    begun=field("actions", saved=False, merge=jointly, predicts=True),
    prepared=field(2, saved=False, merge=jointly, predicts=True),
    gains=scratch(WAITING, "inputs"),
)


def _sizes(actions: int, inputs: int, classes: int = 0) -> dict[str, int]:
    """Return the axes of regressions of the costs of `actions` actions, or of one for all `classes`."""
    outputs, regressions = (classes, 1) if classes else (actions, actions)
    return {
        "outputs": outputs,
        "actions": regressions,
        "inputs": inputs,
        "late": LATE,
        "waiting": WAITING,
    }


def make_regression(actions: int, inputs: int) -> Regression:
    """Return regressions of the costs of `actions` actions on `inputs` inputs before the first event."""
    return make(Regression, _sizes(actions, inputs))


class Settled(NamedTuple):
    """Regressions as statistics of least squares, computed by a worker, so that merging only adds them up."""

    information: NDArray[np.float64]  # [actions, n, n], as in `Sums`
    products: NDArray[np.float64]  # [actions, n]
    weights: NDArray[np.float64]  # [actions, n]
    begun: NDArray[np.int64]
    n_waiting: NDArray[np.int64]  # of the regression
    prepared: NDArray[np.int64]


STATISTICS = ("information", "products", "weights")
"""The fields of `Settled` that are large, of which merging an action needs only the action's."""
MERGED = ("weights", "spread", "begun")
"""The fields of a `Regression` that merging an action sets; the others are as before the first event."""


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
    """Return the merged regressions of the merged actions and `n` merged inputs, by least squares."""
    known = int(inputs.tally[Known.ACTIONS])
    rows, columns = base.state.weights.shape  # of a state without its unused part they may be too few
    result = make_regression(max(rows, min(known, MOST_ACTIONS)), max(columns, n))
    result.prepared[:] = n, known
    for action in range(1 if known > MOST_ACTIONS else known):
        if base.actions_here is not None and action not in base.actions_here:
            continue
        if not any(_has_begun(branch, action) for branch in (base, *branches)):
            continue  # the state before the first event
        taken = [times_taken(*branch.seen[action].tolist()) for branch in branches]
        sums = [_sums(branch, action, n, initial_variance, keeps) for branch in (base, *branches)]
        (began, *ends), weights_of = [each for each, _ in sums], [each for _, each in sums]
        parts = shares(taken, exponential_retention(keeps), ordered=base.ordered)
        weights, spread = merge_squares(began, ends, parts, initial_variance, weights_of=weights_of)
        result.weights[action, :n], result.spread[action, :n, :n] = weights, spread
        result.begun[action] = n
    return result


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


_WAVES = Path(__file__).with_name("waves.bin")
"""Draws of NumPy's `Generator`, see `tests/naive`; other versions may draw other numbers."""


@cache
def make_basis() -> Basis:
    """Return the frequencies of up to `MOST_ACTIONS` numbers or actions, and the phases."""
    content, n = _WAVES.read_bytes(), MOST_ACTIONS * WAVES
    frequency, phase = np.frombuffer(content, "<f4", n), np.frombuffer(content, "<f8", WAVES, 4 * n)
    return Basis(frequency.astype(np.float32), phase.astype(np.float64))


class RegressionMember(Member):
    """A member whose score is that of a regression for each action; its state has a field `regression`."""

    merges = "least squares: information matrices add up"
    least_squares: ClassVar[tuple[float, float]]

    def width(self, inputs: Inputs) -> int:
        """Return the number of inputs of the regressions: by default, of all known inputs."""
        return int(inputs.tally[Known.FEATURES])

    def merged_inputs(self, branch: Branch, inputs: Inputs) -> NDArray[np.int64]:
        """Return the merged index of each input of a branch's regressions."""
        del inputs
        return branch.inputs

    def make_state(self, sizes: Sizes) -> Any:
        """Return the state before the first event."""
        return make(self.record, _sizes(sizes.actions, sizes.features, sizes.classes))

    def state(self, state: Any, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the regressions of known actions; without inputs if the score rests for good."""
        regression, known = state.regression, int(inputs.tally[Known.ACTIONS])
        regression = regression._replace(prepared=np.array([self.width(inputs) * working[0], known]))
        used: dict[str, int] = {}
        if len(regression.spread):
            actions = _used(regression)["actions"]
            used["late"] = int(regression.n_late[:actions].max(initial=0))
            used["waiting"] = int(regression.n_waiting[:actions].max(initial=0))
            waits = np.arange(WAITING) < regression.n_waiting[:, None]  # other rows are already learnt
            regression = regression._replace(
                waiting=np.where(waits[..., None], regression.waiting, np.float32(0)),
                observed=np.where(waits[..., None], regression.observed, 0.0),
            )
        return save(state._replace(regression=regression), used)

    def restore(self, stored: Stored, state: Any, inputs: Inputs) -> None:
        """Copy the stored regressions into the state."""
        regression, weights = state.regression, stored["weights"].array(np.float32, (-1, -1))
        outputs, n_inputs = weights.shape
        if outputs > len(regression.weights) or n_inputs > regression.weights.shape[1]:
            raise stored["weights"].fail("weights of members")
        regression.prepared[:] = n_inputs, outputs
        learns, used = len(regression.spread) > 0, {"late": 0, "waiting": 0}
        if learns:
            used = {name: stored[name].array(np.float32, (-1, -1, -1)).shape[1] for name in used}
        read(stored, state, used)
        if (regression.n_waiting > used["waiting"]).any():
            raise stored["n_waiting"].fail("the numbers of events that wait")
        self.begin(state, inputs)
        if learns:
            diagonals = regression.spread[:outputs].diagonal(axis1=1, axis2=2)  # the others are not in memory
            regression.begun[:outputs] = np.count_nonzero(diagonals, axis=1)

    def begin(self, state: Any, inputs: Inputs) -> None:
        """Prepare for the known inputs and actions."""
        state.regression.prepared[:] = self.width(inputs), int(inputs.tally[Known.ACTIONS])

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> Any:
        """Return the base with regressions merged by least squares; inputs may be new in any order."""
        began, *ends = [
            branch._replace(state=branch.state.regression, inputs=self.merged_inputs(branch, inputs))
            for branch in (base, *branches)
        ]
        variance, keeps = self.least_squares
        regression = merge_regression(began, ends, inputs, variance, self.width(inputs), keeps=keeps)
        return base.state._replace(regression=regression)


class WaveMember(RegressionMember):
    """A member that is a regression on waves, which have the same meaning in all branches."""

    least_squares = (WAVY_SPREAD, KEEPS)
    any_order = False

    def make_state(self, sizes: Sizes) -> Any:
        """Return the state before the first event, with the frequencies of the waves."""
        return make(self.record, _sizes(sizes.actions, WAVES, sizes.classes), basis=make_basis())

    @abstractmethod
    def order(self, branch: Branch) -> NDArray[np.int64]:
        """Return the merged index of each value of a branch that becomes an angle."""

    def width(self, inputs: Inputs) -> int:
        """Return the number of waves."""
        del inputs
        return WAVES

    def merged_inputs(self, branch: Branch, inputs: Inputs) -> NDArray[np.int64]:
        """Return the waves as they are."""
        del branch, inputs
        return np.arange(WAVES)

    def comparable(self, base: Branch, branches: Sequence[Branch]) -> list[Branch]:
        """Return the branches, without what those have learnt whose values are new in another order."""
        orders = [self.order(branch) for branch in branches]
        return [
            branch if (order == np.arange(len(order))).all() else without_learning(branch, base)
            for branch, order in zip(branches, orders, strict=True)
        ]

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> Any:
        """Return the base with regressions merged by least squares, of comparable branches only."""
        return super().merge(base, self.comparable(base, branches), inputs)


def price_of_inputs(work: Work, n: int) -> float:
    """Return the work of a regression on `n` inputs: scores, inputs, and one covariance in four events."""
    return (work.visits * n + n * work.features + n * n / EACH) / TOGETHER


def price_of_waves(work: Work) -> float:
    """Return the work of a regression on waves, without that of the waves."""
    return (work.visits * WAVES + WAVES * WAVES * (1 + 1 / EACH)) / TOGETHER
