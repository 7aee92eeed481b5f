"""The task: the constants by which the loop predicts and learns, made from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import EXPONENTIAL, GLF1, IDENTITY, LOGIT
from onlineauto.engine.options.predictor import excludes_ensemble
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.policies.decay import make_decay
from onlineauto.engine.records.task import Output, Shape, Task, Thinning
from onlineauto.explorers.choice import choose_explorer
from onlineauto.explorers.options import ExplorerOptions
from onlineauto.features.options import FeatureOptions
from onlineauto.features.records import Numbering
from onlineauto.formats.options import InputOptions
from onlineauto.learners.options import CbOptions, LossOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.learners.table import TableShape
    from onlineauto.options import Configuration

_KEPT_SEED = 0x6B656570
"""Separates the choice of kept events from the draws of explorers, which have the same seed."""
_LINKS = {"identity": IDENTITY, "logistic": LOGIT, "glf1": GLF1, "poisson": EXPONENTIAL}
_SHAPES = {
    "simple": Shape.SIMPLE,
    "cb_adf": Shape.CB_ADF,
    "cb_explore_adf": Shape.CB_ADF,
    "ccb_explore_adf": Shape.CB_ADF,
    "cb": Shape.CB,
    "cb_explore": Shape.CB,
}


def parts_of_slot(configuration: Configuration, *, kind: str, estimates: bool, semantics: Semantics) -> int:
    """Return the number of lanes of a live config, including those for `estimates` of costs, if any."""
    if kind == "simple":
        return 1
    explorer = choose_explorer(configuration)
    return explorer.parts(configuration, estimates=estimates, quirks=semantics.exploring)


def make_task(
    configuration: Configuration,
    *,
    kind: str,
    exploration: Exploration,
    shape: TableShape,
    unlearnt: NDArray[np.float32],
    semantics: Semantics,
) -> Task:
    """Return the task for events of a kind (`Workspace.kind`) and a weight table of this `shape`.

    `unlearnt` is a cell of the table before the first event.
    """
    cb, loss, run = configuration[CbOptions], configuration[LossOptions], configuration[RunOptions]
    uniform = configuration[InputOptions].missing_probability == "uniform"
    n_actions = cb.cb or configuration[ExplorerOptions].cb_explore or 0
    return Task(
        shape=int(_SHAPES[kind]),
        slots=kind == "ccb_explore_adf",
        n_actions=n_actions,
        numbering=_numbering(n_actions, shape),
        exploration=exploration,
        decay=make_decay(configuration, unlearnt=unlearnt, quirks=semantics.quirks),
        parts=shape.parts,
        predicts_apart=exploration.active and choose_explorer(configuration).predicts_apart,
        clip_p=np.float32(cb.clip_p),
        uniform=semantics.fills_in_probabilities and uniform,
        output=Output(_LINKS[loss.link], loss.binary),
        training=not run.testonly,
        thinning=Thinning(float(cb.keep_unrewarded), np.uint64(run.random_seed ^ _KEPT_SEED)),
        finds_origin=_finds_origin(configuration, kind=kind, semantics=semantics),
        quirks=semantics.quirks,
        mask=np.uint64(shape.cells - 1),
    )


def _finds_origin(configuration: Configuration, *, kind: str, semantics: Semantics) -> bool:
    """Return whether costs get an origin: those of searches that can have an ensemble and have a constant."""
    lines = _SHAPES[kind] == Shape.CB_ADF and not configuration[FeatureOptions].noconstant
    return semantics.guarded and lines and not excludes_ensemble(configuration)


def _numbering(n_actions: int, shape: TableShape) -> Numbering:
    """Return the masks that turn a feature's hash into that of an action of ``--cb N``."""
    every = 2**32 - 1
    return Numbering(
        kept=np.uint32(every << n_actions.bit_length() & every),
        mask=np.uint32(shape.hash_mask),
    )
