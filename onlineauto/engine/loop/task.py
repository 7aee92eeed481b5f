"""Task: what to do with an event, from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.ensembles.decay import make_decay
from onlineauto.engine.event.example_kernels import EXPONENTIAL, GLF1, IDENTITY, LOGIT
from onlineauto.engine.event.state import CB, CB_ADF, SIMPLE, Task
from onlineauto.engine.options.registry import ModelOptions, RunOptions
from onlineauto.errors import OptionError
from onlineauto.explorers.choice import chosen_explorer
from onlineauto.explorers.epsilon_decay import models_of
from onlineauto.explorers.exploration import make_exploration
from onlineauto.explorers.options import ExplorerOptions
from onlineauto.explorers.sampling import SampleOptions
from onlineauto.features.records import Numbering
from onlineauto.formats.options import InputOptions
from onlineauto.learners.options import CbOptions, LossOptions, UpdateOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.options import Configuration

__all__ = ["check_apart", "lanes_overlap", "make_task", "parts_of_slot", "search_is_below"]

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
    """How many lanes of weights a live slot has; some are for costs that are to be estimated, if `estimates`.

    Raises
    ------
    OptionError
        If exact mode does not have what VW makes of so many.
    """
    if kind == "simple":
        return 1
    exact, explorer = configuration[RunOptions].vw_exact, chosen_explorer(configuration)
    explores = "explore" in kind
    parts = explorer.parts(configuration, estimates=estimates, exact=exact) if explores else 1 + estimates
    models, slots = models_of(configuration), configuration[AutomlOptions].automl or 1
    if explores and explorer.name != "epsilon_decay":
        parts *= models or 1
    if models and lanes_overlap(configuration, kind=kind, lanes=parts * slots):
        raise OptionError(
            f"--{kind} with {parts * slots} models of --epsilon_decay is not reproduced by "
            "--vw_exact: Vowpal Wabbit lets actions and models share weights unless the models of all "
            "live configs are a power of two"
        )
    if configuration[ModelOptions].predict_only_model:
        check_apart(configuration, kind=kind, parts=parts)
    return parts


def check_apart(configuration: Configuration, *, kind: str, parts: int) -> None:
    """Refuse a champion alone that shares weights with its challengers.

    Raises
    ------
    OptionError
        Its cells overlap theirs, see `lanes_overlap`.
    """
    slots = configuration[AutomlOptions].automl
    if slots is not None and lanes_overlap(configuration, kind=kind, lanes=slots * parts):
        raise OptionError(
            f"--{kind} with --automl {slots} and --vw_exact has no champion that predicts the same alone: "
            "where the number of models is no power of two, it shares weights with its challengers"
        )


def lanes_overlap(configuration: Configuration, *, kind: str, lanes: int) -> bool:
    """Whether actions share weights with lanes of others, as in VW, where those of ``--cb N`` are so many.

    An action's cells are as many as there are lanes behind those of the action before, and their names only
    multiples of the next power of two: products of such names may lie anywhere.
    """
    return configuration[RunOptions].vw_exact and kind in ("cb", "cb_explore") and bool(lanes & (lanes - 1))


def search_is_below(configuration: Configuration) -> bool:
    """Whether the search sees each model of the explorer as an event, as in VW."""
    searches = configuration[AutomlOptions].automl is not None
    return searches and configuration[RunOptions].vw_exact and chosen_explorer(configuration).asks_search


def make_task(
    configuration: Configuration, *, kind: str, cells: int, parts: int, unlearnt: NDArray[np.float32]
) -> Task:
    """What to do with an event of a kind (`Workspace.kind`), for a weight table of so many cells.

    A live slot has so many parts, each a lane of the table; `unlearnt` is a cell before the first event.
    """
    cb, loss, run = configuration[CbOptions], configuration[LossOptions], configuration[RunOptions]
    exact, explores, slots = run.vw_exact, "explore" in kind, kind == "ccb_explore_adf"
    n_actions = cb.cb or configuration[ExplorerOptions].cb_explore or 0
    return Task(
        shape=_SHAPES[kind],
        slots=slots,
        n_actions=n_actions,
        numbering=_numbering(configuration, kind=kind, cells=cells, parts=parts, n_actions=n_actions),
        exploration=make_exploration(
            configuration, exact=exact, seed=run.random_seed, active=explores, samples=slots
        ),
        decay=make_decay(configuration, exact=exact, unlearnt=unlearnt),
        parts=parts,
        shows_before=exact and explores and _shows_before(configuration, kind=kind, parts=parts),
        search_below=search_is_below(configuration),
        predicts_apart=exact and explores and chosen_explorer(configuration).predicts_apart,
        clip_p=np.float32(cb.clip_p),
        uniform=not exact and configuration[InputOptions].missing_probability == "uniform",
        link=_LINKS[loss.link],
        binary=loss.binary,
        training=not run.testonly,
        exact=exact,
        mask=np.uint64(cells - 1),
    )


def _numbering(
    configuration: Configuration, *, kind: str, cells: int, parts: int, n_actions: int
) -> Numbering:
    """How hashes become those of the actions of ``--cb N``."""
    lanes, times, step = (configuration[AutomlOptions].automl or 1) * parts, 1, 1
    if lanes_overlap(configuration, kind=kind, lanes=lanes):
        times, step = 1 << lanes.bit_length(), lanes
    every = 2**32 - 1
    return Numbering(
        times=np.uint32(times),
        kept=np.uint32(every << (n_actions * step).bit_length() & every),
        step=np.uint32(step),
        mask=np.uint32(cells - 1 if configuration[RunOptions].vw_exact else every),
    )


def _shows_before(configuration: Configuration, *, kind: str, parts: int) -> bool:
    """Whether VW shows what it predicted before any slot learnt, and that matters: they share something."""
    update, slots = configuration[UpdateOptions], configuration[AutomlOptions].automl
    explorer, samples = chosen_explorer(configuration), configuration[SampleOptions].cb_sample
    apart = explorer.predicts_apart and kind == "cb_explore_adf" and not samples
    if slots is None or not (apart or explorer.cb_types == ("mtr",)):
        return False
    return update.l1 > 0 or update.l2 > 0 or lanes_overlap(configuration, kind=kind, lanes=slots * parts)
