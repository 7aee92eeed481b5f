"""``read_vw_model``: models of Vowpal Wabbit as workspaces; ``read_model``: models of either program."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.automl.config import Config, ConfigKind
from onlineauto.automl.search import Candidate, ConfigState, LiveConfig
from onlineauto.engine.records.search import RewardOwner, Tally
from onlineauto.engine.report.progress import ProgressTable
from onlineauto.errors import InputError, OptionError, short_repr
from onlineauto.estimators.robust_kernels import HISTOGRAM, LOW, LOWER, MID, SIZE, SUM, UPPER, USED
from onlineauto.estimators.robust_kernels import T as OBSERVATIONS
from onlineauto.explorers.kinds.first import left_to_explore
from onlineauto.explorers.options import SlotOptions, choose_explorer
from onlineauto.explorers.ranking_kernels import LEARNT as EXPLORED
from onlineauto.interop.vw.file import begins_as_vw, read_vw_file
from onlineauto.interop.vw.options import EXPLORER_FIELDS, configuration_of, shape_of
from onlineauto.interop.vw.search import VwBound, VwEstimator
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    GRAVITY,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    WEIGHT,
    A,
    N,
    T,
    W,
)
from onlineauto.learners.rule import make_rule
from onlineauto.state.stored import Stored
from onlineauto.workspace.model_file import MAGIC
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.save_load import load_model, stored_run
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from onlineauto.engine.loop.learner import Learner
    from onlineauto.engine.records.task import Decay
    from onlineauto.engine.stream.counters import Count
    from onlineauto.interop.vw.file import VwDescent, VwFile
    from onlineauto.interop.vw.search import VwConfig, VwDecay, VwSearch
    from onlineauto.options import Configuration
    from onlineauto.workspace.option_types import Options

_STATES = (ConfigState.NEW, ConfigState.LIVE, ConfigState.INACTIVE, ConfigState.REMOVED)
_KINDS = (ConfigKind.EXCLUSION, ConfigKind.INCLUSION)
_MOST = 2**62


def read_vw_model(source: str | os.PathLike[str] | bytes, **options: Unpack[Options]) -> Workspace:
    """Return the workspace of a model file of Vowpal Wabbit 9.11.9, in exact mode.

    The workspace predicts like VW with ``-i``, and continues to learn like VW: state that VW does not save
    starts empty. If there are several models (bags, covers, estimates of ``dr``, live configs), the sums of
    all but the first start at 0, unless the file was written with ``--per_model_save_load``.

    Parameters
    ----------
    source : path or bytes
        The file, or its content.
    **options
        Options in addition to those in the file. VW does not save all options; ``loss_function`` and ``l1``,
        for example, are missing.
    """
    return load_vw_model(source, REGISTRY.from_keywords(**options))[0]


def load_vw_model(
    source: str | os.PathLike[str] | bytes, configuration: Configuration
) -> tuple[Workspace, dict[str, Any]]:
    """Return the workspace of `read_vw_model`, and the state of the run in the form of onlineauto's files."""
    data, name = _data_of(source)
    file = read_vw_file(
        data,
        name=name,
        shape=lambda head: shape_of(head, configuration_of(head, configuration, name=name)),
    )
    workspace = Workspace(configuration=configuration_of(file.head, configuration, name=name))
    indexed = file.indexed and not workspace.configuration[SlotOptions].ccb_no_slot_index
    try:
        _fill_learner(workspace.learner, file, workspace.configuration)
        _fill_decay(workspace.learner.task.decay, file.decay)
        if workspace.searching.live_configs.arrays.searching:
            _fill_search(workspace, file.search)
        state = workspace.state(copy=False) | ({"slots": {"told": True}} if indexed else {})
        workspace.restore(state)  # applies the checks of onlineauto's model files
        run = {} if file.descent is None else {"progress": _counts(workspace, file.descent)}
        return workspace, stored_run(Stored(run, "run"), workspace)
    except (IndexError, ValueError, OverflowError) as error:
        raise InputError(f"{name} does not fit its own options: {error}") from None


def _counts(workspace: Workspace, descent: VwDescent) -> dict[str, Count]:
    """Return the counters of the run, in the form of onlineauto's files."""
    progress = ProgressTable(workspace.configuration, kind=workspace.kind)
    progress.example_number, progress.total_features = descent.events, descent.features
    progress.weighted_labelled, progress.weighted_unlabelled = descent.labelled, descent.unlabelled
    progress.weighted_labels, progress.sum_loss = descent.labels, descent.losses[0]
    progress.min_label, progress.max_label = descent.low, descent.high
    return progress.counts()


def _data_of(source: str | os.PathLike[str] | bytes) -> tuple[bytes, str]:
    if isinstance(source, bytes):
        return source, "the model"
    try:
        return Path(source).read_bytes(), os.fspath(source)
    except OSError as error:
        raise InputError(f"cannot read the model {os.fspath(source)}: {error.strerror}") from None


def fields_of(configuration: Configuration) -> list[int]:
    """Return the fields of a cell that VW saves."""
    rule = make_rule(configuration)
    return [W, *([A] if rule.adaptive else []), *([N] if rule.normalized else [])]


def _fill_learner(learner: Learner, file: VwFile, configuration: Configuration) -> None:
    model = learner.model
    cell, lane = divmod(file.cell, model.weights.shape[1])
    for field, value in zip(fields_of(configuration), file.value.T, strict=False):
        if field == W:
            model.weights[cell, lane] = value
        else:
            model.statistics[cell, field - A, lane] = value
    model.touched[cell] = True
    model.shared[MIN_LABEL], model.shared[MAX_LABEL] = file.head.low, file.head.high
    if file.descent is not None:
        _fill_sums(learner, file.descent)
    sums = model.sums.reshape(len(model.sums), -1, 2)
    for index, (events, actions) in zip(np.ndindex(sums.shape[:2]), file.averages, strict=False):
        sums[index] = actions, events
    exploration = learner.task.exploration
    name = choose_explorer(configuration).name
    if file.explorer and EXPLORER_FIELDS[name] == "ff":
        exploration.costs[:] = file.explorer
    elif file.explorer:
        (count,) = file.explorer
        exploration.counts[EXPLORED] = (
            left_to_explore(configuration, int(count)) if name == "first" else count
        )


def _fill_sums(learner: Learner, descent: VwDescent) -> None:
    shared, lanes = learner.model.shared, learner.model.lanes
    shared[T], shared[MIN_LABEL], shared[MAX_LABEL] = descent.t, descent.low, descent.high
    lanes[: len(descent.norms), NORM] = descent.norms
    lanes[: len(descent.weights), WEIGHT] = descent.weights
    lanes[0, [GRAVITY, CONTRACTION]] = descent.gravity, descent.contraction


def _fill_decay(decay: Decay, stored: VwDecay) -> None:
    """Set the models of ``--epsilon_decay`` to the state of VW's."""
    if sorted(stored.place) != list(range(len(decay.place))):
        raise ValueError(f"{stored.place} are not the places of {len(decay.place)} models")
    decay.place[:] = stored.place
    for model, estimators in enumerate(stored.evidence):
        for since, estimator in enumerate(estimators):
            if not estimator.updates == estimator.lower.observations == estimator.upper.observations <= _MOST:
                raise ValueError("bounds of one model are of other events")
            decay.evidence[model, since] = evidence_of(estimator)


def _fill_search(workspace: Workspace, stored: VwSearch) -> None:
    """Set the search to the state of VW's."""
    most = workspace.searching.live_configs.max_live
    if not 0 < len(stored.live) <= most or stored.valid > len(stored.configs):
        raise ValueError(
            f"{len(stored.live)} live configs, {stored.valid} valid ones of {len(stored.configs)}"
        )
    numbers = [each.config for each in stored.live] + [number for _, number in stored.queue]
    times = [
        stored.learnt,
        *(config.lease for config in stored.configs),
        *(count for _, count in stored.counts),
    ]
    if max(numbers) >= len(stored.configs) or max(times) > _MOST:
        raise ValueError("numbers of configs or of events are out of range")
    if any(len(element) not in (2, 3) for config in stored.configs for element in config.elements):
        raise ValueError("interactions are of two namespaces or of three")
    searching = workspace.searching
    namespaces = [bytes([key]) for key, _ in stored.counts]
    search = replace(
        searching.search,
        candidates=tuple(map(_candidate, stored.configs)),
        n_valid=stored.valid,
        queue=stored.queue,
        slots=tuple(LiveConfig(each.config, each.gives_way) for each in stored.live),
        namespaces=tuple(namespaces),
    )
    tree = searching.state()
    slots = tree["slots"]
    arrays, tally = slots["arrays"], slots["tally"]
    tally[Tally.LEARNT] = stored.learnt
    for live, each in enumerate(stored.live):
        arrays["updates"][live] = each.own.updates
        for owner, estimator in ((RewardOwner.SELF, each.own), (RewardOwner.CHAMPION, each.champion)):
            arrays["evidence"][live, owner] = evidence_of(estimator)
            arrays["last"][live, owner] = estimator.weight, estimator.reward
    known = {
        "configs": [search.config(live) for live in range(len(search.slots))],
        "indices": [slot.index for slot in search.slots],
        "namespaces": namespaces,
        "counts": [(bytes([key]), count, 0) for key, count in stored.counts],
    }
    tree |= {"search": search, "slots": slots | known}
    searching.restore(Stored(tree, "search"), workspace.learner.model)


def _candidate(stored: VwConfig) -> Candidate:
    if not (0 <= stored.kind < len(_KINDS) and 0 <= stored.state < len(_STATES)):
        raise ValueError(f"{stored.kind} is not a kind of config, or {stored.state} not a state")
    elements = tuple(tuple(bytes([key]) for key in element) for element in stored.elements)
    return Candidate(Config(elements, _KINDS[stored.kind]), stored.lease, _STATES[stored.state])


def evidence_of(estimator: VwEstimator) -> NDArray[np.float64]:
    """Return an estimator as evidence, float64[LOWER | UPPER, SIZE]."""
    evidence = np.zeros((2, SIZE))
    evidence[LOWER], evidence[UPPER] = _state_of(estimator.lower), _state_of(estimator.upper)
    return evidence


def _state_of(bound: VwBound) -> NDArray[np.float64]:
    state = np.zeros(SIZE)
    state[[OBSERVATIONS, SUM, LOW, MID]] = bound.observations, bound.total, bound.low, bound.mid
    for bucket, between, weight in bound.buckets:
        at = HISTOGRAM + 2 * bucket + between
        if at >= SIZE:
            raise ValueError(f"{bucket} is not a bucket of errors")
        state[at] = weight
        state[USED] = max(state[USED], bucket + 1)
    return state


def estimator_of(evidence: NDArray[np.float64]) -> VwEstimator:
    """Return evidence as an estimator, the inverse of `evidence_of`, without the last event."""
    lower, upper = (_bound_of(evidence[row]) for row in (LOWER, UPPER))
    return VwEstimator(updates=lower.observations, lower=lower, upper=upper)


def _bound_of(state: NDArray[np.float64]) -> VwBound:
    return VwBound(
        observations=int(state[OBSERVATIONS]),
        total=float(state[SUM]),
        low=float(state[LOW]),
        mid=float(state[MID]),
        buckets=tuple(
            (int(entry) // 2, bool(entry % 2), float(state[HISTOGRAM + entry]))
            for entry in np.flatnonzero(state[HISTOGRAM:])
        ),
    )


_HEAD = 16


def is_vw_model(source: object) -> bool:
    """Return whether a path, or bytes, is a model of Vowpal Wabbit."""
    if isinstance(source, bytes):
        return begins_as_vw(source[:_HEAD])
    if not isinstance(source, str | os.PathLike) or not Path(source).is_file():
        return False
    with Path(source).open("rb") as file:
        return begins_as_vw(file.read(_HEAD))


def load_any_model(
    path: str | os.PathLike[str], configuration: Configuration
) -> tuple[Workspace, dict[str, Any]]:
    """Return the workspace of a model file, and the stored state of the run that saved it."""
    if is_vw_model(path):
        return load_vw_model(path, configuration)
    return load_model(Workspace, path, configuration)


def read_model(source: str | os.PathLike[str] | bytes, *, testonly: bool = False) -> Workspace:
    """Return the workspace of a model file of either program; with `testonly`, only to predict."""
    if not isinstance(source, str | os.PathLike | bytes):
        raise OptionError(
            f"cannot read a model from {short_repr(source)}: give a path, or the bytes of a model"
        )
    data, _ = _data_of(source)
    if not data.startswith(MAGIC):
        return read_vw_model(data)
    return Workspace.load(data, testonly=True) if testonly else Workspace.load(data)
