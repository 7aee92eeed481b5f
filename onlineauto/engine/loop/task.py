"""Task: what to do with an event, from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensembles.decay import make_decay
from onlineauto.engine.event.example_kernels import EXPONENTIAL, GLF1, IDENTITY, LOGIT
from onlineauto.engine.event.state import CB, CB_ADF, SIMPLE, Task
from onlineauto.engine.options.registry import RunOptions
from onlineauto.explorers.choice import chosen_explorer
from onlineauto.explorers.exploration import make_exploration
from onlineauto.explorers.options import ExplorerOptions
from onlineauto.features.records import Numbering
from onlineauto.formats.options import InputOptions
from onlineauto.learners.options import CbOptions, LossOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.options import Configuration

__all__ = ["make_task", "parts_of_slot"]

_LINKS = {"identity": IDENTITY, "logistic": LOGIT, "glf1": GLF1, "poisson": EXPONENTIAL}
_SHAPES = {
    "simple": SIMPLE,
    "cb_adf": CB_ADF,
    "cb_explore_adf": CB_ADF,
    "ccb_explore_adf": CB_ADF,
    "cb": CB,
    "cb_explore": CB,
}


def parts_of_slot(configuration: Configuration, *, kind: str, estimates: bool) -> int:
    """Return how many lanes of weights a live slot has; some are for `estimates` of costs."""
    exact, explorer = bool(configuration.get("vw_exact")), chosen_explorer(configuration)
    return 1 if kind == "simple" else explorer.parts(configuration, estimates=estimates, exact=exact)


def make_task(
    configuration: Configuration, *, kind: str, cells: int, parts: int, unlearnt: NDArray[np.float32]
) -> Task:
    """What to do with an event of a kind (`Workspace.kind`), for a weight table of so many cells.

    A live slot has so many parts, each a lane of the table; `unlearnt` is a cell before the first event.
    """
    cb, loss, run = configuration[CbOptions], configuration[LossOptions], configuration[RunOptions]
    exact, explores, slots = bool(configuration.get("vw_exact")), "explore" in kind, kind == "ccb_explore_adf"
    n_actions = cb.cb or configuration[ExplorerOptions].cb_explore or 0
    return Task(
        shape=_SHAPES[kind],
        slots=slots,
        n_actions=n_actions,
        numbering=_numbering(n_actions, cells=cells, exact=exact),
        exploration=make_exploration(
            configuration, exact=exact, seed=run.random_seed, active=explores, samples=slots
        ),
        decay=make_decay(configuration, exact=exact, unlearnt=unlearnt),
        parts=parts,
        predicts_apart=exact and explores and chosen_explorer(configuration).predicts_apart,
        clip_p=np.float32(cb.clip_p),
        uniform=not exact and configuration[InputOptions].missing_probability == "uniform",
        link=_LINKS[loss.link],
        binary=loss.binary,
        training=not run.testonly,
        exact=exact,
        mask=np.uint64(cells - 1),
    )


def _numbering(n_actions: int, *, cells: int, exact: bool) -> Numbering:
    """Return how hashes become those of the actions of ``--cb N``."""
    every = 2**32 - 1
    return Numbering(
        kept=np.uint32(every << n_actions.bit_length() & every),
        mask=np.uint32(cells - 1 if exact else every),
    )
