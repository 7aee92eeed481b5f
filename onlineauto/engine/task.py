"""Task: what to do with an event, from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.decay import make_decay
from onlineauto.engine.example_kernels import EXPONENTIAL, GLF1, IDENTITY, LOGIT
from onlineauto.engine.header import has_wildcards
from onlineauto.engine.options import RunOptions
from onlineauto.engine.state import CB, CB_ADF, SIMPLE, Task
from onlineauto.errors import OptionError
from onlineauto.explorers.choice import chosen_explorer
from onlineauto.explorers.epsilon_decay import models_of
from onlineauto.explorers.exploration import make_exploration
from onlineauto.explorers.options import ExplorerOptions
from onlineauto.explorers.sampling import SampleOptions
from onlineauto.explorers.slots import SlotOptions
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.options import InputOptions
from onlineauto.learners.options import CbOptions, LossOptions, UpdateOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.options import Configuration

__all__ = ["make_task", "parts_of_slot", "search_is_below"]

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
    if explores and explorer.name != "epsilon_decay":
        parts *= models_of(configuration) or 1
    slots = configuration[AutomlOptions].automl or 1
    if exact and kind in ("cb", "cb_explore") and (parts * slots) & (parts * slots - 1):
        what = f"live configs of --automl {slots}" if slots > 1 else f"models of --{explorer.name}"
        raise OptionError(
            f"--{kind} with {parts * slots} {what} is not reproduced by --vw_exact: Vowpal Wabbit lets "
            "actions and models share weights unless the number of models is a power of two"
        )
    return parts


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
        action_bits=(1 << n_actions.bit_length()) - 1,
        exploration=make_exploration(
            configuration, exact=exact, seed=run.random_seed, active=explores, samples=slots
        ),
        decay=make_decay(configuration, exact=exact, unlearnt=unlearnt),
        parts=parts,
        forgets=exact and _forgets(configuration),
        shows_before=exact and explores and _shows_before(configuration, kind=kind),
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


def _shows_before(configuration: Configuration, *, kind: str) -> bool:
    """Whether VW shows what it predicted before any slot learnt, and that matters: they share penalties."""
    update, searches = configuration[UpdateOptions], configuration[AutomlOptions].automl is not None
    explorer, samples = chosen_explorer(configuration), configuration[SampleOptions].cb_sample
    apart = explorer.predicts_apart and kind == "cb_explore_adf" and not samples
    before = explorer.cb_types == ("mtr",) or apart
    return searches and before and (update.l1 > 0 or update.l2 > 0)


def _forgets(configuration: Configuration) -> bool:
    """Whether VW has forgotten interactions when it goes over the features once more: those made late.

    Raises
    ------
    OptionError
        If it has forgotten some of them only, and the explorer does so.
    """
    features = configuration[FeatureOptions]
    if configuration[AutomlOptions].automl is not None:
        return True
    slots = configuration[SlotOptions].ccb_explore_adf  # they bring a wildcard of their own
    if not slots and not has_wildcards(features):
        return False
    texts = (*features.quadratic, *features.cubic, *features.interactions)
    plain = [text for text in texts if ":" not in text]
    explorer = chosen_explorer(configuration)
    if explorer.lists_again(configuration) and (plain or features.experimental_full_name_interactions):
        what = "slots and" if slots else "wildcards beside other"
        raise OptionError(
            f"--{explorer.name} with {what} interactions is not reproduced by --vw_exact: "
            "Vowpal Wabbit leaves the wildcards out when it lists the features again; leave --vw_exact out, "
            "or use either"
        )
    return True
