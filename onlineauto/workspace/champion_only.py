"""Spin-off: a model of the champion alone, for predictions (``--predict_only_model``).

It keeps only the weight of each cell, unless the explorer uses plausible costs, which need all four numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.options import OF_DECAY, AutomlOptions
from onlineauto.automl.search import LiveConfig
from onlineauto.learners._kernels import MAX_LABEL, MIN_LABEL, W
from onlineauto.learners.model_state import materialised
from onlineauto.options import options_of
from onlineauto.workspace.inspection.vw_command import OF_LEARNING
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from onlineauto.automl.config import Interaction
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.workspace import Workspace

__all__ = ["spin_off", "spun_off"]


def spin_off(workspace: Workspace) -> State:
    """Return the state of a model with the champion alone, and only the numbers needed to predict.

    It predicts what `workspace` predicts with ``--predict_with champion``. If the semantics spin off weights,
    it has no search and the champion's interactions as if given by hand, and it can learn further, from the
    weights alone.
    """
    state = workspace.state()
    small = type(workspace)(configuration=REGISTRY.from_keywords(**_options(workspace)))
    _copy_champion(workspace, small)
    if workspace.semantics.spins_off_weights:
        return small.state() | {"layout": state["layout"], "slots": state["slots"]}
    searching = workspace.searching
    alone = replace(
        searching.search,
        candidates=(searching.search.candidate(0),),
        n_valid=1,
        queue=(),
        slots=(LiveConfig(0),),
    )
    tree = small.state()
    history = {name: state["search"][name] for name in ("events", "changes", "alarms", "latest_changes")}
    known = {name: state["search"]["slots"][name] for name in ("namespaces", "counts", "since", "tally")}
    live = tree["search"]["slots"] | known | {"configs": searching.live_configs.configs[:1]}
    tree["search"] |= history | {"search": alone, "slots": live}
    return tree | {"layout": state["layout"], "slots": state["slots"], "predicts_only": True}


def spun_off(workspace: Workspace) -> Workspace:
    """Return a workspace with the champion alone."""
    alone = type(workspace)(configuration=REGISTRY.from_keywords(**_options(workspace)))
    alone.restore(spin_off(workspace))
    return alone


def _options(workspace: Workspace) -> dict[str, object]:
    """Return the options of the small model: the same number of cells, with the lanes of one live config."""
    configuration, width = workspace.configuration, workspace.learner.width
    kept = {name for name in configuration.supplied if REGISTRY[name].keep}
    searches = configuration[AutomlOptions].automl is not None
    if workspace.semantics.spins_off_weights:
        decides = OF_DECAY if "epsilon_decay" in kept else ()
        kept -= {*OF_LEARNING, *(option.name for option in options_of(AutomlOptions))} - {*decides}
        kept -= {"quadratic", "cubic", "interactions"} if searches else set()
    options = {name: configuration.get(name) for name in kept} | {"testonly": True}
    if workspace.semantics.spins_off_weights:  # Lanes share the cells there.
        lanes = 1 << (width - 1).bit_length()
        options["bit_precision"] = (len(workspace.weights) * lanes).bit_length() - 1
        if searches:
            options["interactions"] = [_letters(each) for each in workspace.searching.interactions(0)]
    elif searches:
        options |= {"automl": 1, "predict_with": "champion"}
    return options


def _letters(interaction: Interaction) -> str:
    return b"".join(interaction).decode("latin-1").replace(" ", r"\x20")


def _copy_champion(source: Workspace, target: Workspace) -> None:
    """Copy the champion of `source` into `target`, as far as predictions depend on it."""
    target.learner.take_after(source.learner)
    champion, parts = source.learner.champion_lanes(), target.learner.champion_lanes()
    mine, model = source.learner.model, target.learner.model
    kept = slice(target.learner.fields)
    weights = mine.weights[:, kept][..., champion]
    weights_only = source.semantics.spins_off_weights
    if weights_only:
        weights[:, W] = materialised(weights[:, W], mine.lanes[mine.penalised[champion]])
    model.touched[:] = (weights != model.weights[:, kept][..., parts]).any(axis=(1, 2))
    model.weights[:, kept, parts] = weights
    model.sums[0] = mine.sums[0]
    if weights_only:
        model.shared[[MIN_LABEL, MAX_LABEL]] = mine.shared[[MIN_LABEL, MAX_LABEL]]
    else:
        model.lanes[parts], model.shared[:] = mine.lanes[champion], mine.shared
