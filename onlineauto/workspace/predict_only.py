"""Spin-off: a model that only predicts: the champion alone, or everything that predicts now.

It stores only the weight of each cell, unless the explorer uses plausible costs, which need all four numbers.
It has only the live configs on which predictions depend.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from onlineauto.automl.options import OF_DECAY, AutomlOptions
from onlineauto.automl.search import LiveConfig
from onlineauto.engine.ensemble.ensemble import to_predict
from onlineauto.engine.ensemble.states import constant_of
from onlineauto.errors import OptionError
from onlineauto.learners.gradient_kernels import MAX_LABEL, MIN_LABEL, W
from onlineauto.learners.model import apply_penalties, read_cells, write_cells
from onlineauto.options import options_of
from onlineauto.state.schema import put, take
from onlineauto.workspace.inspection.readable_model import OF_LEARNING
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.workspace import Workspace

PredictOnly: TypeAlias = Literal["champion", "ensemble"] | bool
"""The content of a spin-off: the champion alone, or everything that predicts, such as a proved ensemble. True
means the champion."""


def predicting_configs(workspace: Workspace, scope: PredictOnly = True) -> list[int]:
    """Return the live configs of a spin-off: the champion, and those with a weight in the prediction."""
    arrays = workspace.searching.live_configs.arrays
    weights = np.zeros(arrays.n)
    if _predictor(workspace, scope) == "ensemble":
        levels = arrays.ensemble.weights[constant_of(arrays.ensemble) + 1 :][: arrays.n]
        weights += np.abs(arrays.ensemble.weights[: arrays.n])
        weights[: len(levels)] += np.abs(levels)
    if _predictor(workspace, scope) != "champion":
        weights += arrays.mix[: arrays.n] * arrays.mixing
    return [0, *(int(live) for live in np.flatnonzero(weights) if live)]


def spin_off(workspace: Workspace, scope: PredictOnly = True) -> State:
    """Return the state of a model that predicts with the champion, or with everything that predicts now.

    It has only the numbers needed to predict. "champion" predicts like `workspace` with ``--predict_with
    champion``; "ensemble" predicts like `workspace`. If the semantics spin off weights, the result has no
    search, but the champion's interactions as options. Then it can learn further, from the weights alone.
    """
    if scope not in (True, "champion", "ensemble"):
        raise OptionError(f'predict_only is True, "champion" or "ensemble", and not {scope!r}')
    state, live = workspace.state(copy=False), predicting_configs(workspace, scope)
    predictor = _predictor(workspace, scope)
    small = type(workspace)(configuration=REGISTRY.from_keywords(**_options(workspace, predictor, len(live))))
    _copy_configs(workspace, small, live)
    if workspace.semantics.spins_off_weights:
        return small.state(copy=False) | {"layout": state["layout"], "slots": state["slots"]}
    searching, configs = workspace.searching, workspace.searching.live_configs
    small.searching.live_configs.only_predict()
    if predictor != "champion":
        target = small.searching.live_configs
        put(target.arrays, "predicts", take(configs.arrays, "predicts", slots=live), slots=range(len(live)))
        if target.arrays.ensemble.on:
            target.arrays = target.arrays._replace(ensemble=to_predict(configs.arrays.ensemble, live))
    alone = replace(
        searching.search,
        candidates=tuple(searching.search.candidate(index) for index in live),
        n_valid=len(live),
        queue=(),
        slots=tuple(LiveConfig(index) for index in range(len(live))),
    )
    tree = small.state(copy=False)
    history = {name: state["search"][name] for name in ("events", "changes", "alarms", "latest_changes")}
    if predictor == "ensemble":
        history["predicts_since"] = state["search"]["predicts_since"]
    namespaces = {name: state["search"]["slots"][name] for name in ("namespaces", "counts", "since", "tally")}
    stored = {"configs": [configs.configs[index] for index in live], "indices": list(range(len(live)))}
    tree["search"] |= history | {"search": alone, "slots": tree["search"]["slots"] | namespaces | stored}
    return tree | {"layout": state["layout"], "slots": state["slots"], "predicts_only": True}


def spun_off(workspace: Workspace, scope: PredictOnly = True) -> Workspace:
    """Return a workspace with the champion alone, or with everything that predicts now."""
    predictor, live = _predictor(workspace, scope), predicting_configs(workspace, scope)
    alone = type(workspace)(configuration=REGISTRY.from_keywords(**_options(workspace, predictor, len(live))))
    alone.restore(spin_off(workspace, scope))
    return alone


def _predictor(workspace: Workspace, scope: PredictOnly) -> str:
    """Return the predictor of the spin-off: "champion", "mix" or "ensemble"."""
    return workspace.searching.predicts[0] if scope == "ensemble" else "champion"


def _options(workspace: Workspace, predictor: str, live: int) -> dict[str, object]:
    """Return the options of the small model: the same number of cells, with the lanes of its live configs."""
    configuration, width = workspace.configuration, workspace.learner.width
    stored = {name for name in configuration.supplied if REGISTRY[name].keep}
    searches = configuration[AutomlOptions].automl is not None
    if workspace.semantics.spins_off_weights:
        decides = OF_DECAY if "epsilon_decay" in stored else ()
        stored -= {*OF_LEARNING, *(option.name for option in options_of(AutomlOptions))} - {*decides}
        stored -= {"quadratic", "cubic", "interactions"} if searches else set()
    options = {name: configuration.get(name) for name in stored} | {"testonly": True}
    if workspace.semantics.spins_off_weights:  # `bit_precision` counts the cells of all lanes
        lanes = 1 << (width - 1).bit_length()
        options["bit_precision"] = (workspace.learner.shape.cells * lanes).bit_length() - 1
        if searches:
            options["interactions"] = [
                b"".join(names).decode("latin-1").replace(" ", r"\x20")
                for names in workspace.searching.interactions(0)
            ]
    elif searches:
        options |= {"automl": live, "predict_with": predictor}
    return options


def _copy_configs(source: Workspace, target: Workspace, live: list[int]) -> None:
    """Copy live configs of `source` into `target`, as far as predictions depend on them."""
    target.learner.take_after(source.learner)
    before = [lane for index in live for lane in source.learner.lanes_of(index)]
    after = [lane for index in range(len(live)) for lane in target.learner.lanes_of(index)]
    old_model, model = source.learner.model, target.learner.model
    fields = target.learner.fields
    cells = read_cells(old_model, lanes=before, fields=fields)
    weights_only = source.semantics.spins_off_weights
    if weights_only:
        cells[:, W] = apply_penalties(cells[:, W], old_model.lanes[old_model.penalised[before]])
    model.touched[:] = (cells != read_cells(model, lanes=after, fields=fields)).any(axis=(1, 2))
    write_cells(model, slice(None), cells, lanes=after)
    model.sums[: len(live)] = old_model.sums[live]
    if weights_only:
        model.shared[[MIN_LABEL, MAX_LABEL]] = old_model.shared[[MIN_LABEL, MAX_LABEL]]
    else:
        model.lanes[after], model.shared[:] = old_model.lanes[before], old_model.shared
