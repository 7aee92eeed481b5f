"""``write_vw_model``: the champion as a model file that Vowpal Wabbit loads."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from onlineauto.explorers.kinds.first import left_to_explore
from onlineauto.explorers.options import choose_explorer
from onlineauto.explorers.ranking_kernels import LEARNT as EXPLORED
from onlineauto.interop.vw.decay import VwDecay
from onlineauto.interop.vw.evidence import estimator_of
from onlineauto.interop.vw.file import VwDescent, VwFile, VwHead, VwShape, vw_file_bytes
from onlineauto.interop.vw.model import fields_of
from onlineauto.interop.vw.options import EXPLORER_FIELDS, PER_MODEL
from onlineauto.interop.vw.words import champion_words
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    GRAVITY,
    HOLDOUT_WEIGHT,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    ORIGIN,
    UNLABELLED_WEIGHT,
    WEIGHT,
    T,
    W,
)
from onlineauto.learners.model import read_cells
from onlineauto.learners.options import CbOptions
from onlineauto.learners.rule import initial_t
from onlineauto.workspace.model_file import replace_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.task import Decay
    from onlineauto.workspace.workspace import Workspace


def write_vw_model(workspace: Workspace, target: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a model file that Vowpal Wabbit 9.11.9 loads with ``-i``; a search writes its champion.

    VW predicts the same with it: for a model of exact mode bit for bit, for any other up to the rounding of
    sums and of decimals in the text of options. Unless the model only predicts, VW can continue learning.

    Parameters
    ----------
    workspace : Workspace
        The model, which is not changed.
    target : path or binary file
        The file to write; a path is written atomically.
    """
    data = vw_model_bytes(workspace)
    if isinstance(target, str | os.PathLike):
        replace_file(target, [data])
    else:
        target.write(data)


def vw_model_bytes(workspace: Workspace) -> bytes:
    """Return the content of the file of `write_vw_model`."""
    words, parts = champion_words(workspace)
    exploration = workspace.learner.task.exploration
    whole = workspace.learner.fields > 1 or exploration.bounds  # cost bounds need the time even without rates
    explorer = choose_explorer(workspace.configuration).name
    several = whole and len(parts) > 1
    if several:
        words.append(PER_MODEL.decode())
    model = workspace.learner.model
    later = whole and len(np.unique(model.penalised[parts])) == 1  # VW applies shared penalties
    cell, value = _cells(workspace, parts, whole=whole, penalised=not later)
    low, high = float(model.shared[MIN_LABEL]), float(model.shared[MAX_LABEL])
    bits = int(math.log2(len(model.weights) * _n_lanes(parts)))
    options = "".join(f" {word}" for word in words).encode("utf-8", "surrogateescape")
    bandit, explores = workspace.kind != "simple", "explore" in workspace.kind
    kinds = EXPLORER_FIELDS.get(explorer, "") if explores else ""
    decay = workspace.learner.task.decay
    file = VwFile(
        head=VwHead(low=low, high=high, bits=bits, options=options),
        indexed=bool(workspace.state(copy=False)["slots"]["told"]),
        decay=_decay(decay),
        explorer=_explorer(workspace, explorer) if kinds else (),
        averages=_averages(workspace, len(parts) if several else 1) if bandit else (),
        descent=_descent(workspace, parts if several else parts[:1], later=later) if whole else None,
        cell=cell,
        value=value,
    )
    shape = VwShape(slots=workspace.learner.task.slots, decaying=len(decay.place), explorer=kinds)
    return vw_file_bytes(file, shape=shape)


def _averages(workspace: Workspace, models: int) -> tuple[tuple[int, int], ...]:
    """Return the numbers of events and actions over which mtr has averaged, for each of `models` models."""
    count = models // 2 if models > 1 and workspace.configuration[CbOptions].cb_type == "dr" else models
    sums = [(int(events), int(actions)) for actions, events in workspace.learner.model.sums[0].reshape(-1, 2)]
    return tuple((sums + [(0, 0)] * count)[:count])


def _n_lanes(parts: list[int]) -> int:
    """Return the number of lanes in VW's table: the next power of two."""
    return 1 << (len(parts) - 1).bit_length()


def _cells(
    workspace: Workspace, parts: list[int], *, whole: bool, penalised: bool
) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
    """Return the numbers and the values of the champion's cells that are not zero."""
    learner = workspace.learner
    model = learner.model
    fields = fields_of(workspace.configuration) if whole else [W]
    any_learnt = learner.unlearnt.any()
    rows = np.arange(len(model.weights)) if any_learnt else np.flatnonzero(model.touched)
    value = read_cells(model, rows, lanes=parts)[:, fields].transpose(0, 2, 1)
    if penalised:
        for part, lane in enumerate(parts):
            value[:, part, 0] = _penalised_weights(workspace, value[:, part, 0], lane)
    value[rows == learner.shape.constant[0], 0, 0] += np.float32(model.shared[ORIGIN])
    cell = rows[:, None].astype(np.uint64) * np.uint64(_n_lanes(parts)) + np.arange(
        len(parts), dtype=np.uint64
    )
    nonzero = (value != 0).any(axis=2)
    return cell[nonzero], np.ascontiguousarray(value[nonzero])


def _penalised_weights(workspace: Workspace, weight: NDArray[np.float32], lane: int) -> NDArray[np.float32]:
    """Return the weights of a lane after its L1 and L2 penalties."""
    penalties = workspace.learner.model.lanes[workspace.learner.model.penalised[lane]]
    gravity, contraction = np.float32(penalties[GRAVITY]), np.float32(penalties[CONTRACTION])
    magnitude = np.maximum(np.abs(weight) - gravity, np.float32(0))
    return np.asarray(np.copysign(magnitude, weight) * contraction, np.float32)


def _explorer(workspace: Workspace, name: str) -> tuple[float, ...]:
    exploration = workspace.learner.task.exploration
    if EXPLORER_FIELDS[name] == "ff":
        return tuple(map(float, exploration.costs))
    learnt = int(exploration.counts[EXPLORED])
    return (left_to_explore(workspace.configuration, learnt) if name == "first" else learnt,)


def _decay(decay: Decay) -> VwDecay:
    return VwDecay(
        tuple(
            tuple(estimator_of(evidence) for evidence in decay.evidence[model, : model + 1])
            for model in range(len(decay.place))
        ),
        tuple(map(int, decay.place)),
    )


def _descent(workspace: Workspace, parts: list[int], *, later: bool) -> VwDescent:
    model = workspace.learner.model
    shared, first = model.shared, model.lanes[model.penalised[parts[0]]]
    return VwDescent(
        initial_t=float(initial_t(workspace.configuration)),
        t=float(shared[T] - shared[UNLABELLED_WEIGHT] - shared[HOLDOUT_WEIGHT]),  # VW omits these two
        norms=tuple(map(float, model.lanes[parts, NORM])),
        weights=tuple(map(float, model.lanes[parts, WEIGHT])),
        low=float(shared[MIN_LABEL]),
        high=float(shared[MAX_LABEL]),
        passes=workspace.learner.current_pass,
        gravity=float(first[GRAVITY]) if later else 0.0,
        contraction=float(first[CONTRACTION]) if later else 1.0,
    )
