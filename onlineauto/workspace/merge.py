"""Merge: combine several models, trained separately with the same options, into one.

Each weight of the result is a weighted average. With adaptive rates, the weight of a model is its Σ gradient²
of the cell, so that a model that has seen a feature more often counts for more; Σ gradient² and scales are
averaged in the same way. Without adaptive rates, the weight of a model is that of its learnt events. If all
models continued from one base, the changes since the base are averaged and added to the base. Sums and counts
are added.

Source: VW ``merge_models``; the float operations are the same, in the same order.
"""

from __future__ import annotations

import copy
import operator
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.automl.options import AutomlOptions
from onlineauto.errors import OptionError
from onlineauto.explorers.exploration import merge_errors
from onlineauto.explorers.kinds.epsilon_decay import EpsilonDecayOptions
from onlineauto.explorers.ranking_kernels import LEARNT
from onlineauto.features.options import FeatureOptions
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    GRAVITY,
    HOLDOUT_WEIGHT,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    RATE,
    UNLABELLED_WEIGHT,
    WEIGHT,
    A,
    N,
    T,
    W,
    materialize,
)
from onlineauto.learners.model import adopt_sizes, read_cells, write_cells
from onlineauto.learners.rule import initial_t
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.options import Configuration
    from onlineauto.workspace.workspace import Workspace


class _Part(NamedTuple):
    """The numbers of a model to merge, or their changes since its base."""

    cells: NDArray[np.float32]  # [rows, 4, lanes]
    lanes: NDArray[np.float64]  # [lanes, 2]: NORM, WEIGHT
    sums: NDArray[np.int64]
    times: NDArray[np.float64]  # [2]: T, UNLABELLED_WEIGHT
    learnt: NDArray[np.float64]  # [1]: weight of the labelled events
    explored: NDArray[np.int64]  # [1]: events that the explorer has learnt

    def plus(self, other: _Part) -> _Part:
        return _Part(*map(operator.add, self, other))

    def minus(self, other: _Part) -> _Part:
        return _Part(*map(operator.sub, self, other))


def merge_workspaces(
    models: Sequence[Workspace], *, base: Workspace | None = None, learnt: Sequence[float] | None = None
) -> Workspace:
    """Return one model, merged from several that were trained separately.

    Parameters
    ----------
    models : sequence of Workspace
        Two or more models with the same options; they are not changed.
    base : Workspace, optional
        The model from which all of them continued.
    learnt : sequence of float, optional
        Weight of the labelled events of each model, and last of the base if there is one. By default
        `labelled_weight` of each. It has an effect only without adaptive rates.

    Raises
    ------
    OptionError
        There is only one model; or options differ; or a model can only predict; or the models have searched,
        or have separate champions, as with ``--epsilon_decay``; or rates are not adaptive, and nothing was
        learnt; or VW cannot merge them (``--ccb_explore_adf`` with ``--vw_exact``).

    Examples
    --------
    >>> from onlineauto import Workspace
    >>> one, other = Workspace().fit(["1 |a x"] * 9), Workspace().fit(["1 |a y"] * 9)
    >>> merge_workspaces([one, other]).predict("|a x y").round(1)
    array([1.], dtype=float32)

    Source: VW ``merge_models``.
    """
    all_models = [*models, *([base] if base is not None else [])]
    _check(models, all_models)
    if models[0].semantics.merges_as_vw:
        _check_slots(all_models, has_base=base is not None)
    result = type(models[0])(configuration=_configuration(models[0]))
    touched = reduce(np.logical_or, [model.learner.model.touched for model in all_models])
    rows = np.arange(len(touched)) if result.learner.unlearnt.any() else np.flatnonzero(touched)
    counts = learnt or [labelled_weight(model) for model in all_models]
    parts = [_part(model, rows, count) for model, count in zip(all_models, counts, strict=True)]
    began = parts.pop() if base is not None else None
    if began is not None:
        parts = [part.minus(began) for part in parts]
    adaptive = result.learner.rule.adaptive
    part = reduce(_Part.plus, parts)._replace(cells=_average_cells(parts, adaptive=adaptive))
    part.times[0] += 0.0 if adaptive or result.learner.rule.normalized else 1.0  # like in VW
    _fill(result, rows, part if began is None else began.plus(part), all_models)
    return result


def _check(models: Sequence[Workspace], all_models: Sequence[Workspace]) -> None:
    """Reject models that cannot be merged; `all_models` is the models and the base."""
    if len(models) < 2:
        raise OptionError("merge takes two models or more")
    if any(model.predicts_only for model in all_models):
        raise OptionError("a model that was saved to predict only cannot be merged: it has no sums")
    if models[0].configuration[AutomlOptions].automl is not None:
        raise OptionError("models of --automl cannot be merged: each has its own search")
    if models[0].configuration[EpsilonDecayOptions].epsilon_decay:
        raise OptionError("models of --epsilon_decay cannot be merged: each has its own champion")
    if models[0].configuration[FeatureOptions].lags:
        raise OptionError("models of --lags cannot be merged: each has its own last labels")
    commands = [_configuration(model).command(kept=True) for model in all_models]
    for command in commands:
        if command != commands[0]:
            raise OptionError(
                f"models with different options cannot be merged: one is of {commands[0]!r}, one of "
                f"{command!r}"
            )


def _check_slots(all_models: Sequence[Workspace], *, has_base: bool) -> None:
    """Reject models with slots whose interactions would differ in VW.

    VW adds the interactions of slots once slots have an index feature. Merging changes since a base, VW
    creates a model that has seen no slots.
    """
    indexed = {bool(state) for state in _index_states(all_models)}
    if has_base and True in indexed:
        raise OptionError(
            "models of --ccb_explore_adf with --vw_exact cannot be merged from a base, nor by Vowpal "
            "Wabbit; leave the base out, or learn without --vw_exact"
        )
    if len(indexed) > 1:
        raise OptionError(
            "these models of --ccb_explore_adf with --vw_exact cannot be merged, nor by Vowpal Wabbit: "
            "some have seen events of several slots, or slots with features, and some have not"
        )


def _index_states(all_models: Sequence[Workspace]) -> list[bool | None]:
    """Return for each model whether slots have an index feature yet; None if they never get one."""
    return [model.state(copy=False)["slots"]["told"] for model in all_models]


def _configuration(model: Workspace) -> Configuration:
    """Return the options that a model stores; in exact mode without the seed, which VW changes."""
    configuration = model.configuration
    stored = {name for name in configuration.supplied if REGISTRY[name].keep}
    if model.semantics.merges_as_vw:
        stored -= {"random_seed"}
    return REGISTRY.from_keywords(**{name: configuration.get(name) for name in stored})


def labelled_weight(model: Workspace) -> float:
    """Return the weight of the labelled events that a model has learnt."""
    shared = model.learner.model.shared
    others = shared[UNLABELLED_WEIGHT] + shared[HOLDOUT_WEIGHT]
    return float(shared[T] - float(initial_t(model.configuration)) - others)


def _part(model: Workspace, rows: NDArray[np.int64], learnt: float) -> _Part:
    """Return the numbers of a model to merge, from the cells `rows`; native penalties are applied."""
    if not model.semantics.merges_as_vw:  # VW drops its accumulated penalties
        model = copy.deepcopy(model)
        for lane in np.unique(model.learner.model.penalised):
            materialize(model.learner.model, int(lane))
    stored, exploration = model.learner.model, model.learner.task.exploration
    cells = read_cells(stored, rows)
    cells[:, RATE] = 0
    return _Part(
        cells=cells,
        lanes=stored.lanes[:, [NORM, WEIGHT]],
        sums=stored.sums,
        times=stored.shared[[T, UNLABELLED_WEIGHT]],
        learnt=np.array([learnt]),
        explored=exploration.counts[[LEARNT]],
    )


def _average_cells(parts: Sequence[_Part], *, adaptive: bool) -> NDArray[np.float32]:
    """Return the weighted average of the cells of several models."""
    average = np.zeros_like(parts[0].cells)
    if not adaptive:
        learnt = [np.float32(part.learnt[0]) for part in parts]
        everything = sum(learnt, np.float32(0))
        if not everything > 0:
            raise OptionError("models cannot be weighed against each other: none has learnt a labelled event")
        for part, count in zip(parts, learnt, strict=True):
            average[:, W] += part.cells[:, W] * (count / everything)
        return average
    total = np.zeros_like(average[:, A])
    for part in parts:
        total += part.cells[:, A]
    has_weight = total > 0
    for part in parts:
        share = np.divide(part.cells[:, A], total, where=has_weight, out=np.zeros_like(total))
        average[:, W] += part.cells[:, W] * share
        for field in (A, N):
            average[:, field] += np.where(has_weight, part.cells[:, field] * share, part.cells[:, field])
    return average


def _fill(result: Workspace, rows: NDArray[np.int64], part: _Part, all_models: Sequence[Workspace]) -> None:
    """Write the merged numbers into the new model `result`."""
    target, exploration = result.learner.model, result.learner.task.exploration
    write_cells(target, rows, part.cells)
    target.touched[rows] = True
    target.lanes[:, [NORM, WEIGHT]] = part.lanes
    target.lanes[:, GRAVITY], target.lanes[:, CONTRACTION] = 0.0, 1.0
    target.sums[:] = part.sums
    adopt_sizes(target, [model.learner.model for model in all_models])
    target.shared[[T, UNLABELLED_WEIGHT]] = part.times
    shared = [model.learner.model.shared for model in all_models]
    target.shared[MIN_LABEL] = min(numbers[MIN_LABEL] for numbers in shared)
    target.shared[MAX_LABEL] = max(numbers[MAX_LABEL] for numbers in shared)
    if not result.semantics.merges_as_vw:  # VW drops them
        exploration.counts[LEARNT] = part.explored[0]
        costs = [model.learner.task.exploration.costs for model in all_models]
        exploration.costs[:] = min(bounds[0] for bounds in costs), max(bounds[1] for bounds in costs)
        exploration.errors[:] = merge_errors([model.learner.task.exploration.errors for model in all_models])
    layouts = [model.state(copy=False)["layout"] for model in all_models]
    state = result.state(copy=False)
    matched, left_out = (
        {namespace for layout in layouts for namespace in layout[name]} for name in ("known", "left_out")
    )
    state |= {"layout": {"known": sorted(matched), "left_out": sorted(left_out - matched)}}
    if not result.semantics.merges_as_vw:  # VW drops whether slots have an index feature
        indexed = _index_states(all_models)
        state |= {"slots": {"told": next(filter(None, indexed), indexed[0])}}
    result.restore(state)
