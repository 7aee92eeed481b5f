"""Merge: combine ensembles that continued from a common base, each on separate events.

All ensembles have the live configs of the base, in the same order: the caller that splits a stream decides on
live configs for all of them. Inputs, means and bins merge first. Inputs of the base keep their indices, and
new inputs of branches are appended. Then the members, the weights of the ensemble and the evidence of its
tests merge.

`begin_again` copies the merged ensemble into a live one.
"""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from onlineauto.engine.ensemble.branches import (
    Branch,
    Sums,
    exponential_retention,
    mean_retention,
    merge_moments,
    merge_squares,
    merge_statistic,
    shares,
    sums_of,
)
from onlineauto.engine.ensemble.combiner_kernels import (
    _SLOWEST,
    KEEPS,
    LATEST,
    LEVEL_FACTOR,
)
from onlineauto.engine.ensemble.ensemble import drop_stopped, most_variance
from onlineauto.engine.ensemble.shrinkage_kernels import SHRINKAGE_KEEPS
from onlineauto.engine.ensemble.states import MemberStates, constant_of, states_of
from onlineauto.engine.ensemble.vector_kernels import PROJECTION
from onlineauto.engine.records.ensemble import (
    MEMORY,
    MOST_ACTIONS,
    MOST_FEATURES,
    MOST_IN_VECTORS,
    MOST_NUMBERS,
    MOST_VECTORS,
    RING,
    CostSoFar,
    EnsembleTest,
    InputKind,
    InVectors,
    Known,
    Shrinkage,
)
from onlineauto.errors import OptionError
from onlineauto.estimators.merge import merge_difference_tests, merge_sums, merge_tests
from onlineauto.features.table_kernels import insert

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.member import Member
    from onlineauto.engine.records.ensemble import Ensemble, Inputs, InputVectors, Renewal


class MergedPart(NamedTuple):
    """The part of the members' states that one of several processes merges, besides its cells."""

    members: Collection[str]  # those that it merges
    whole: Collection[str]  # those of them that have neither cells nor regressions
    actions: Mapping[str, Collection[int]]  # the merged actions of members that are regressions


Each: TypeAlias = "Callable[..., Iterable[Any]]"
"""`map`, or one that calls the function in several threads."""
_UNKNOWN: Final[Mapping[str, float]] = {}


def merge_ensembles(
    base: Ensemble,
    ends: Sequence[Ensemble],
    *,
    learnt: Sequence[int],
    floor: bool,
    ordered: bool = False,
    part: MergedPart | None = None,
    surest: Mapping[str, float] = _UNKNOWN,
    each: Each = map,
) -> Ensemble:
    """Return approximately the ensemble that a single learner of all events would have.

    Of the members, only a `part` is merged; `surest` is that of branches, by member. `each` may merge several
    members at the same time.
    """
    _check(base, ends)
    inputs, states = merge_states(base, ends, ordered=ordered, part=part, surest=surest, each=each)
    members = states_of(base).members
    everyone = [base, *ends]
    widest = np.array([min(each.range[0] for each in everyone), max(each.range[1] for each in everyone)])
    base, *ends = everyone = [_widen_range(drop_stopped(ensemble, inputs), widest) for ensemble in everyone]
    began, *sums = [sums_of(ensemble.weights, ensemble.spread) for ensemble in everyone]
    parts = shares(learnt, exponential_retention(_retention(began, sums, learnt)), ordered=ordered)
    latest = shares(learnt, mean_retention(float(base.costs[CostSoFar.EVENTS]), LATEST))
    faded = shares(learnt, exponential_retention(SHRINKAGE_KEEPS), ordered=ordered)
    all_weights = [ensemble.weights for ensemble in everyone]
    weights, spread = merge_squares(began, sums, parts, most_variance(base), weights_of=all_weights)
    if not base.n_levels:
        weights[0] += 1.0 - weights[: constant_of(base)].sum()  # the champion's
    return base._replace(
        weights=weights,
        spread=spread,
        error=_merge_errors(base, ends, learnt),
        costs=_merge_costs(base, ends, learnt),
        variance=np.maximum(merge_statistic(base.variance, [end.variance for end in ends], latest), 0.0),
        shrinkage=merge_statistic(base.shrinkage, [end.shrinkage for end in ends], faded),
        scratch=np.zeros_like(base.scratch),
        test=_merge_tests(base.test, [end.test for end in ends], floor=floor),
        members=base.members._replace(
            inputs=inputs, rests=base.members.rests.copy(), states=MemberStates(members, states).array
        ),
    )


def merge_states(
    base: Ensemble,
    ends: Sequence[Ensemble],
    *,
    ordered: bool,
    part: MergedPart | None = None,
    surest: Mapping[str, float] = _UNKNOWN,
    each: Each = map,
) -> tuple[Inputs, list[Any]]:
    """Return the merged inputs, and the merged state of each member, or of a `part` of it."""
    inputs, all_branches = merge_inputs(base.members.inputs, [end.members.inputs for end in ends])
    base_branch, *branches = [branch._replace(ordered=ordered) for branch in all_branches]
    states = [states_of(end).records for end in ends]
    grows = not _has_names_of(inputs, base.members.inputs)

    def merge(number: int, member: Member, state: Any) -> Any:
        if part is not None and member.name not in part.members:
            return state
        if not grows and all(_has_arrays_of(records[number], state) for records in states):
            return state
        own = [
            branch._replace(state=records[number]) for branch, records in zip(branches, states, strict=True)
        ]
        first = base_branch._replace(
            state=state,
            actions_here=None if part is None else part.actions.get(member.name, ()),
            surest=surest.get(member.name, 0.0),
        )
        return member.merge(first, own, inputs)

    members, records = states_of(base).members, states_of(base).records
    return inputs, [*each(merge, range(len(members)), members, records)]


def _has_arrays_of(state: Any, base: Any) -> bool:
    """Return whether a state shares all arrays with that of the base, so that it has learnt nothing."""
    return type(state) is type(base) and all(
        one is other or (isinstance(one, tuple) and _has_arrays_of(one, other))
        for one, other in zip(state, base, strict=True)
    )


def _retention(base: Sums, ends: Sequence[Sums], learnt: Sequence[int]) -> float:
    """Return the part of earlier information that an event retains, in the end that has forgotten most."""
    # An end has A = k A₀ + E with E ≥ 0 of its events, so k is at most each eigenvalue of A relative to A₀.
    root = np.linalg.inv(np.linalg.cholesky(base.information))
    kept = [
        max(float(np.linalg.eigvalsh(root @ end.information @ root.T)[0]), 0.0) ** (1.0 / n)
        for end, n in zip(ends, learnt, strict=True)
        if n > 0
    ]
    return float(np.clip(min(kept, default=1.0), KEEPS, 1.0 - (1.0 - KEEPS) * _SLOWEST))


def _merge_tests(base: EnsembleTest, ends: Sequence[EnsembleTest], *, floor: bool) -> EnsembleTest:
    """Return the tests with the combined evidence."""
    loss, loss_spread = merge_difference_tests(
        (base.loss, base.loss_spread), [(end.loss, end.loss_spread) for end in ends]
    )
    policies = zip(base.policies, *(end.policies for end in ends), strict=True)
    return EnsembleTest(
        pair=merge_tests(base.pair, [end.pair for end in ends], floor=floor),
        loss=loss,
        fair=base.fair + sum(end.fair - base.fair for end in ends),
        loss_spread=loss_spread,
        policies=np.array([merge_sums(first, rest) for first, *rest in policies]),
        level=base.level.copy(),
        updates=base.updates + sum(end.updates - base.updates for end in ends),
        leads=base.leads.copy(),
    )


def _check(base: Ensemble, ends: Sequence[Ensemble]) -> None:
    """Check that the ensembles can be merged."""
    for end in (base, *ends):
        if not end.on or not len(end.spread):
            raise OptionError("an ensemble that cannot learn cannot be merged: save the whole model")
        if states_of(end).members != states_of(base).members or end.weights.shape != base.weights.shape:
            raise OptionError("ensembles of other --members or --live_configs cannot be merged")
        if (
            end.serves != base.serves
            or not np.array_equal(end.members.rests, base.members.rests)
            or not np.array_equal(end.test.level, base.test.level)
        ):
            raise OptionError(
                "an ensemble has changed what predicts, which members rest, or its tests since the base: "
                "continue all of them from one new base after each such decision"
            )


def _widen_range(ensemble: Ensemble, widest: NDArray[np.float64]) -> Ensemble:
    """Return an ensemble for a wider range of costs; learning widens it the same way."""
    low, width, wider = ensemble.range[0], ensemble.range[1] - ensemble.range[0], widest[1] - widest[0]
    weights, spread, error = ensemble.weights.copy(), ensemble.spread.copy(), ensemble.error.copy()
    costs, shrinkage, constant = ensemble.costs.copy(), ensemble.shrinkage.copy(), constant_of(ensemble)
    variance = ensemble.variance
    if width > 0.0 and wider > width:
        scale, lower = width / wider, (low - widest[0]) / wider
        others = weights[:constant].sum() + LEVEL_FACTOR * weights[constant + 1 :].sum()
        weights[constant] = scale * weights[constant] + lower * (1.0 - others)
        spread[constant] *= scale
        spread[:, constant] *= scale
        costs[CostSoFar.MEAN] = scale * costs[CostSoFar.MEAN] + lower
        costs[CostSoFar.VARIANCE] *= scale * scale
        error[0] *= scale * scale
        variance = variance * scale * scale
        shrinkage[Shrinkage.OWN :] *= scale * scale
    return ensemble._replace(
        weights=weights,
        spread=spread,
        range=widest,
        error=error,
        costs=costs,
        variance=variance,
        shrinkage=shrinkage,
    )


def _merge_errors(base: Ensemble, ends: Sequence[Ensemble], learnt: Sequence[int]) -> NDArray[np.float64]:
    """Return the mean squared error over all branches, and its number of events."""
    parts = shares(learnt, mean_retention(float(base.error[1]), LATEST))
    mean = float(merge_statistic(base.error[0], [end.error[0] for end in ends], parts))
    return np.array([max(mean, 0.0), min(base.error[1] + sum(learnt), LATEST)])


def _merge_costs(base: Ensemble, ends: Sequence[Ensemble], learnt: Sequence[int]) -> NDArray[np.float64]:
    """Return the mean and the variance of costs over all branches, and their number of events."""
    seen = float(base.costs[CostSoFar.EVENTS])
    moments = [
        (ensemble.costs[CostSoFar.MEAN], ensemble.costs[CostSoFar.VARIANCE]) for ensemble in (base, *ends)
    ]
    parts = shares(learnt, mean_retention(seen, LATEST))
    mean, variance = merge_moments(moments[0], moments[1:], parts)
    return np.array([min(seen + sum(learnt), LATEST) * (base.n_levels > 0), mean, variance])


def merge_inputs(base: Inputs, ends: Sequence[Inputs]) -> tuple[Inputs, list[Branch]]:
    """Return the merged inputs, and branches without states: that of the base, then one for each of `ends`.

    New inputs are added in the order of the branches while the capacity lasts. A number has the bins of the
    branch with the most bins for it. A bin of another branch is mapped to the bin that contains its middle.
    """
    vectors, in_vectors = _merge_vectors(base.vectors, [end.vectors for end in ends])
    inputs = copy.deepcopy(base)._replace(vectors=vectors)
    all_inputs = [base, *(_without_other_projection(end, vectors) for end in ends)]
    ends = all_inputs[1:]
    known = max(int(base.tally[Known.FEATURES]), 1)
    is_new = [False, *(not _has_names_of(end, base) for end in ends)]
    for end in itertools.compress(ends, is_new[1:]):
        _replace_features(inputs, base, end)
    for end in itertools.compress(all_inputs, is_new):
        _add_features(inputs, end)
        _add_actions(inputs, end)
    inputs.tally[Known.WIDEST] = max(branch_inputs.tally[Known.WIDEST] for branch_inputs in all_inputs)
    _merge_waiting(inputs.renewal, base.renewal, [end.renewal for end in ends])
    inputs.wide[:] = np.maximum(base.wide + sum(end.wide - base.wide for end in ends), 0)
    index = _numbers_of(inputs, base)
    numbers = [
        _numbers_of(inputs, end) if new else index for end, new in zip(all_inputs, is_new, strict=True)
    ]
    for number in range(int(inputs.tally[Known.NUMBERS])):
        _merge_number(inputs, base, number, list(zip(ends, numbers[1:], strict=True)), known)
    actions = [_actions_of(inputs, branch_inputs) for branch_inputs in all_inputs]
    counts = [
        _event_counts(end, input_of_action) for end, input_of_action in zip(all_inputs, actions, strict=True)
    ]
    inputs.seen[:] = counts[0] + sum(count - counts[0] for count in counts[1:])
    index = _inputs_of(inputs, base, index, known)
    moved = [
        _inputs_of(inputs, end, number, known) if new else index
        for end, number, new in zip(all_inputs, numbers, is_new, strict=True)
    ]
    for end in ends:
        inputs.renewal.uses[:] += end.renewal.uses - base.renewal.uses
    np.maximum(inputs.renewal.uses, 0, out=inputs.renewal.uses)
    branches = [
        Branch(None, own, number, action, np.stack([counts[0], count], axis=1), in_vectors=of_vectors)
        for own, number, action, count, of_vectors in zip(
            moved, numbers, actions, counts, in_vectors, strict=True
        )
    ]
    return inputs, branches


_NAMES = ("feature", "input", "number", "names", "action")
_NUMBERS = ("of_number", "bins", "of_bin")
_TALLIES = (Known.FEATURES, Known.NUMBERS, Known.ACTIONS)


def _has_names_of(end: Inputs, base: Inputs) -> bool:
    """Return whether a branch has found no new feature, number, bin or action, as most have not."""
    return (
        all(end.tally[tally] == base.tally[tally] for tally in _TALLIES)
        and all(np.array_equal(getattr(end, name), getattr(base, name)) for name in _NAMES)
        and all(np.array_equal(getattr(end.numbers, name), getattr(base.numbers, name)) for name in _NUMBERS)
    )


def _features_of(inputs: Inputs) -> dict[int, int]:
    """Return the input of each known feature, by its key, in the order of inputs.

    Projections are left out if the inputs have none.
    """
    limit = 2**64 - 1 if inputs.vectors.vectors[InVectors.PROJECTED] else PROJECTION
    places = np.flatnonzero((inputs.feature > 0) & (inputs.feature <= np.uint64(limit)))
    pairs = zip(inputs.feature[places].tolist(), inputs.input[places].tolist(), strict=True)
    return dict(sorted(pairs, key=lambda pair: pair[1]))


def _new_input(inputs: Inputs, kind: int) -> int:
    """Add an input of a kind and return its index; -1 if the capacity is exhausted."""
    at = int(inputs.tally[Known.FEATURES])
    if at >= MOST_FEATURES:
        return -1
    inputs.number[at], inputs.names[at], inputs.divided[at] = kind, -1, 0
    inputs.tally[Known.FEATURES] += 1
    return at


def _replace_features(inputs: Inputs, base: Inputs, end: Inputs) -> None:
    """Replace the inputs of the base that a branch has replaced, unless another branch has done so."""
    before, known = ({at: key for key, at in _features_of(each).items()} for each in (base, inputs))
    for key, at in _features_of(end).items():
        if at in before and key != before[at] == known[at] and key not in known.values():
            known[at] = key
            inputs.number[at], inputs.names[at], inputs.amount[at] = InputKind.WORD, -1, 0.0
    inputs.feature[:] = inputs.input[:] = 0
    for at, key in known.items():
        insert(inputs.feature, inputs.input, key, at)


def _merge_waiting(merged: Renewal, base: Renewal, ends: Sequence[Renewal]) -> None:
    """Add up the votes of branches for waiting features; a majority of other branches counts against them."""
    for end in ends:
        began = np.where(end.waiting == base.waiting, np.minimum(base.votes, end.votes), 0)
        votes = np.where(end.waiting == merged.waiting, -1, 1) * (end.votes - began)
        left = merged.votes - votes
        merged.waiting[left < 0] = end.waiting[left < 0]
        merged.votes[:] = np.abs(left)


def _add_features(inputs: Inputs, end: Inputs) -> None:
    """Add the features and the numbers of a branch."""
    known = _features_of(inputs)
    inputs.tally[Known.FEATURES] = max(
        inputs.tally[Known.FEATURES], min(end.tally[Known.FEATURES], 1)
    )  # the constant
    indices = _features_of(end)
    for key in indices:
        if key not in known and (at := _new_input(inputs, InputKind.WORD)) >= 0:
            insert(inputs.feature, inputs.input, key, at)
            known[key] = at
    keys = {own: key for key, own in indices.items()}
    for own in end.numbers.of_number[: int(end.tally[Known.NUMBERS])].tolist():
        at, number = known.get(keys.get(own, 0), -1), int(inputs.tally[Known.NUMBERS])
        if at >= 0 and inputs.number[at] < 0 and number < MOST_NUMBERS:
            inputs.tally[Known.NUMBERS] += 1
            inputs.number[at], inputs.numbers.of_number[number] = number, at
            inputs.numbers.named[number] = end.numbers.named[end.number[own]]
    numbers = _numbers_of(inputs, end)
    for key, own in indices.items():
        at = known.get(key, -1)
        if at >= 0 and inputs.names[at] < 0 <= end.names[own] and numbers[end.names[own]] >= 0:
            inputs.names[at], inputs.amount[at] = numbers[end.names[own]], end.amount[own]


def _add_actions(inputs: Inputs, end: Inputs) -> None:
    """Add the actions of a branch; they are joined if there are too many."""
    for key in end.action[: min(int(end.tally[Known.ACTIONS]), MOST_ACTIONS)]:
        count = int(inputs.tally[Known.ACTIONS])
        if count <= MOST_ACTIONS and key not in inputs.action[:count]:
            inputs.tally[Known.ACTIONS] += 1
            if count < MOST_ACTIONS:
                inputs.action[count] = key
    if end.tally[Known.ACTIONS] > MOST_ACTIONS:
        inputs.tally[Known.ACTIONS] = MOST_ACTIONS + 1


def _numbers_of(inputs: Inputs, end: Inputs) -> NDArray[np.int64]:
    """Return the merged index of each number of a branch."""
    keys = {own: key for key, own in _features_of(end).items()}
    known = _features_of(inputs)
    number_keys = end.numbers.of_number[: int(end.tally[Known.NUMBERS])]
    inputs_of_numbers = [known.get(keys.get(own, 0), -1) for own in number_keys.tolist()]
    return np.array([inputs.number[at] if at >= 0 else -1 for at in inputs_of_numbers], np.int64)


def _actions_of(inputs: Inputs, end: Inputs) -> NDArray[np.int64]:
    """Return the merged index of the action of each regression of a branch."""
    if inputs.tally[Known.ACTIONS] > MOST_ACTIONS:
        return np.array(
            [0] if end.tally[Known.ACTIONS] > MOST_ACTIONS else [-1] * int(end.tally[Known.ACTIONS]), np.int64
        )
    known = inputs.action[: int(inputs.tally[Known.ACTIONS])].tolist()
    return np.array(
        [known.index(key) for key in end.action[: int(end.tally[Known.ACTIONS])].tolist()], np.int64
    )


def _event_counts(end: Inputs, actions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of events that a branch has learnt with each merged action, and the total."""
    counts = np.zeros_like(end.seen)
    counts[actions[actions >= 0]] = end.seen[: len(actions)][actions >= 0]
    counts[-1] = end.seen[-1]
    return counts


def _merge_vectors(
    base: InputVectors, ends: Sequence[InputVectors]
) -> tuple[InputVectors, list[NDArray[np.int64]]]:
    """Return the merged vectors, and the merged index of each number in those of the base and of branches.

    The projection is the base's or that of the branch that has learnt most; without any, the sums of products
    are added up.
    """
    merged = copy.deepcopy(base)
    counts = merged.vectors
    moved = [_add_vectors(merged, end) for end in (base, *ends)]
    for v in range(counts[InVectors.VECTORS]):
        begin, end_of_vector = merged.starts[v : v + 2].tolist()
        owners = [
            (end, own)
            for end in ends
            for own in np.flatnonzero(end.heads[: end.vectors[InVectors.VECTORS]] == merged.heads[v]).tolist()
        ]
        seen = int(base.vector_seen[v])
        learnt = np.array([int(end.vector_seen[own]) - seen for end, own in owners])
        moments = [
            (
                end.vector_mean[end.starts[own] : end.starts[own + 1]],
                end.vector_variance[end.starts[own] : end.starts[own + 1]],
            )
            for end, own in owners
        ]
        part = slice(begin, end_of_vector)
        first = (merged.vector_mean[part], merged.vector_variance[part]) if seen else moments[0]
        parts = shares(learnt, mean_retention(float(seen), MEMORY))
        merged.vector_mean[part], merged.vector_variance[part] = merge_moments(first, moments, parts)
        merged.vector_seen[v] = seen + learnt.sum()
    if counts[InVectors.PROJECTED] or not ends:
        return merged, moved
    most = max(
        range(len(ends)), key=lambda at: (ends[at].vectors[InVectors.PROJECTED], ends[at].vector_seen.sum())
    )
    for at, (end, own) in enumerate(zip(ends, moved[1:], strict=True)):
        n, index, before = len(own), own[own >= 0], base.products[: len(own), : len(own)]
        if ends[most].vectors[InVectors.PROJECTED] and at == most:
            merged.basis[:, index] = end.basis[:, :n][:, own >= 0]
        else:
            change = end.products[:n, :n] - before
            merged.products[np.ix_(index, index)] += change[np.ix_(own >= 0, own >= 0)]
        counts[InVectors.SUMMED] += end.vectors[InVectors.SUMMED] - base.vectors[InVectors.SUMMED]
    counts[InVectors.PROJECTED] = ends[most].vectors[InVectors.PROJECTED]
    return merged, moved


def _add_vectors(merged: InputVectors, end: InputVectors) -> NDArray[np.int64]:
    """Add the vectors of a branch that fit; return the merged index of each number in its vectors."""
    counts, moved = merged.vectors, np.full(int(end.vectors[InVectors.NUMBERS]), -1, np.int64)
    for v in range(end.vectors[InVectors.VECTORS]):
        begin, stop = end.starts[v : v + 2].tolist()
        known = np.flatnonzero(merged.heads[: counts[InVectors.VECTORS]] == end.heads[v])
        at, free = int(counts[InVectors.VECTORS]), int(counts[InVectors.NUMBERS])
        if len(known):
            at = int(known[0])
        elif at < MOST_VECTORS and free + stop - begin <= MOST_IN_VECTORS:
            merged.heads[at], merged.starts[at + 1] = end.heads[v], free + stop - begin
            counts[InVectors.VECTORS], counts[InVectors.NUMBERS] = at + 1, merged.starts[at + 1]
        else:
            continue
        if merged.starts[at + 1] - merged.starts[at] == stop - begin:
            moved[begin:stop] = np.arange(merged.starts[at], merged.starts[at + 1])
    return moved


def _without_other_projection(end: Inputs, merged: InputVectors) -> Inputs:
    """Return the inputs of a branch, without its projection of vectors if the merged one differs."""
    counts = end.vectors.vectors.copy()
    own, other = (_directions(vectors) for vectors in (end.vectors, merged))
    if own.shape != other.shape or not (own == other).all():
        counts[InVectors.PROJECTED] = 0
    return end._replace(vectors=end.vectors._replace(vectors=counts))


def _directions(vectors: InputVectors) -> NDArray[np.float32]:
    """Return the directions of the projection, of which there may be none, in the vectors known first."""
    return vectors.basis[: vectors.vectors[InVectors.PROJECTED], : vectors.starts[1]]


def _merge_number(
    inputs: Inputs, base: Inputs, number: int, ends: list[tuple[Inputs, NDArray[np.int64]]], n_base: int
) -> None:
    """Merge the mean, the variance, the latest values and the bins of a merged number."""
    merged_numbers = inputs.numbers
    owners = [(end, int(np.flatnonzero(indices == number)[0])) for end, indices in ends if number in indices]
    began, seen = number < base.tally[Known.NUMBERS], int(base.seen[-1])
    learnt = np.array([int(end.seen[-1]) - seen for end, _ in owners])
    parts = shares(learnt, mean_retention(float(seen) if began else 0.0, MEMORY))
    moments = [(end.numbers.mean[at], end.numbers.variance[at]) for end, at in owners]
    first = (merged_numbers.mean[number], merged_numbers.variance[number]) if began else moments[0]
    merged_numbers.mean[number], merged_numbers.variance[number] = merge_moments(first, moments, parts)
    latest = [end.numbers.latest[at] for (end, at), n in zip(owners, learnt, strict=True) if n > 0]
    for at in range(RING if latest else 0):
        merged_numbers.latest[number, at] = latest[at % len(latest)][at]
    end, at = max(owners, key=lambda pair: pair[0].numbers.bins[pair[1]])
    branch_numbers, n = end.numbers, int(end.numbers.bins[at])
    if n <= merged_numbers.bins[number]:
        return
    merged_numbers.bins[number] = n
    moved: dict[int, int] = {}
    for field in ("cut", "part", "group"):
        getattr(merged_numbers, field)[number] = getattr(branch_numbers, field)[at]
    for k, own in enumerate(branch_numbers.of_bin[at, :n].tolist()):
        if own >= n_base and own not in moved:
            moved[own] = max(_new_input(inputs, InputKind.BIN), 0)
            if moved[own] > 0:
                old = int(end.divided[own])
                inputs.divided[moved[own]] = moved.get(old, old if old < n_base else 0)
        merged_numbers.of_bin[number, k] = moved.get(own, own)


def _inputs_of(inputs: Inputs, end: Inputs, numbers: NDArray[np.int64], n_base: int) -> NDArray[np.int64]:
    """Return the merged index of each input of a branch; inputs of the base keep their indices."""
    n = int(end.tally[Known.FEATURES])
    moved = np.full(n, -1, np.int64)
    moved[:n_base] = np.arange(n)[:n_base]
    index_of = _features_of(inputs)
    for key, own in _features_of(end).items():
        if own < n:
            moved[own] = index_of.get(key, -1)
    branch_numbers = end.numbers
    for number, merged_number in enumerate(numbers.tolist()):
        bins = int(branch_numbers.bins[number])
        for k in range(bins):
            own = int(branch_numbers.of_bin[number, k])
            if merged_number >= 0 and own >= n_base:
                value = _bin_middle(branch_numbers.cut[number, : bins - 1], k)
                cuts = inputs.numbers.cut[merged_number, : inputs.numbers.bins[merged_number] - 1]
                at = int(inputs.numbers.of_bin[merged_number, np.searchsorted(cuts, value)])
                moved[own] = at if at > 0 else -1
    return moved


def _bin_middle(cuts: NDArray[np.float64], at: int) -> float:
    """Return the middle of a bin; for the outer bins, the value next to their inner end."""
    if at == 0:
        return float(cuts[0])
    if at == len(cuts):
        return float(np.nextafter(cuts[-1], np.inf))
    return float(0.5 * (cuts[at - 1] + cuts[at]))
