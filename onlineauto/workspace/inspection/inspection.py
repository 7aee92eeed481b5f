"""Inspection: a description of a model as plain values, which are printed or written as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.automl.config import namespace_text
from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.ensemble.ensemble import able_scores
from onlineauto.engine.ensemble.states import constant_of
from onlineauto.engine.report.search_summary import search_summary
from onlineauto.features.options import FeatureOptions
from onlineauto.learners.gradient_kernels import GRADIENTS, ORIGIN, SCALE, T
from onlineauto.learners.model import apply_penalties

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from onlineauto.automl.config import Interaction
    from onlineauto.workspace.workspace import Workspace


def inspection(workspace: Workspace, *, names: Mapping[int, str], top: int = 20) -> dict[str, Any]:
    """Return a model's options, champion, predictor, history, namespaces, live configs and weights.

    >>> from onlineauto import Workspace
    >>> model = inspection(Workspace(quadratic="ab").fit(["1 |a x |b y"]), names={}, top=1)
    >>> model["options"], model["champion"]["interactions"], model["learnt"]["weights"]
    ('--quadratic ab', ['ab'], 4)
    """
    shared, learner = workspace.learner.model.shared, workspace.learner
    low, high = workspace.label_range
    n_live = len(workspace.estimates) if _searches(workspace) else 0
    return {
        "options": workspace.configuration.command(kept=True),
        "predicts_only": workspace.predicts_only,
        "learnt": {
            "weight_of_events": float(shared[T]),
            "passes": workspace.learner.current_pass,
            "weights": int(np.count_nonzero(workspace.learner.model.weights)),
            "label_range": [low, high],
            "cost_origin": float(shared[ORIGIN]),
        },
        "champion": _champion(workspace),
        "predicted_by": _describe_predictor(workspace),
        "ensemble": list(_ensemble(workspace)) if _searches(workspace) else [],
        "history": list(search_summary(workspace.searching)) if _searches(workspace) else [],
        "namespaces": list(_namespaces(workspace)),
        "live_configs": [_live(workspace, live) for live in range(n_live)],
        "top_weights": list(_largest(workspace, names, top, fields=learner.fields)),
    }


def _searches(workspace: Workspace) -> bool:
    return workspace.configuration[AutomlOptions].automl is not None


def _champion(workspace: Workspace) -> dict[str, Any]:
    if _searches(workspace):
        settings = dict(workspace.searching.live_configs.configs[0].settings)
        return {"interactions": _texts(workspace.searching.interactions(0)), "settings": settings}
    options = workspace.configuration[FeatureOptions]
    interactions = (*options.quadratic, *options.cubic, *options.interactions)
    full_names = options.experimental_full_name_interactions
    return {"interactions": [*interactions, *full_names], "settings": {}}


def _describe_predictor(workspace: Workspace) -> dict[str, Any] | None:
    """Return what predicts in a search, and after how many events it took over; None without a search."""
    if not _searches(workspace):
        return None
    name, since = workspace.searching.predicts
    return {"who": name, "since": since}


def _ensemble(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Yield the weight of each member of the ensemble, None for a member without a score."""
    live = workspace.searching.live_configs.arrays
    if not live.ensemble.on:
        return
    constant, rests = constant_of(live.ensemble), live.ensemble.members.rests.tolist()
    weights = live.ensemble.weights[: constant + 1].tolist()
    for index in range(live.n):
        yield {"who": f"live config {index}", "weight": weights[index]}
    terms, can_work = workspace.estimates.members(), able_scores(live.ensemble)
    of_members = weights[-1 - len(rests) : -1]
    for (name, can), rest, weight in zip(can_work.items(), rests, of_members, strict=True):
        price = {"price": terms[name].price} if name in terms else {}
        has_say = can and not rest
        yield {"who": name, "weight": weight if has_say else None, "rests": can and rest, **price}
    yield {"who": "constant", "weight": weights[-1]}


def _texts(interactions: Iterable[Interaction]) -> list[str]:
    return ["*".join(map(namespace_text, names)) for names in interactions]


def _namespaces(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Yield the known namespaces; with a search, also their counts."""
    live_configs = workspace.searching.live_configs
    if not _searches(workspace):
        yield from ({"name": namespace_text(name)} for name in workspace.layout.state()["known"])
        return
    for name in live_configs.namespaces:
        yield {
            "name": namespace_text(name),
            "actions": live_configs.count(name),
            "features": live_configs.size(name),
        }


def _live(workspace: Workspace, live: int) -> dict[str, Any]:
    searching, estimates = workspace.searching, workspace.estimates
    config, paired = searching.live_configs.configs[live], searching.live_configs.arrays.tests.paired
    content: dict[str, Any] = {
        "index": live,
        "interactions": len(searching.interactions(live)),
        "differs_by": _difference(workspace, live),
        "settings": dict(config.settings),
    }
    if workspace.predicts_only:
        return content
    content["events"] = estimates.updates(live) if live else searching.live_configs.champion_events
    content["reward"] = [estimates.lower(live), estimates.upper(live)]
    if live:
        content["champion_reward"] = [estimates.champion_lower(live), estimates.champion_upper(live)]
        if paired:
            content["evidence"] = estimates.promise(live)
    if not searching.replays:
        content["lease"] = None if live == 0 else searching.search.lease(live)
    return content


def _difference(workspace: Workspace, live: int) -> list[str]:
    """Return the interactions that only live config `live` has, with +, and only the champion, with -."""
    champion, challenger = (set(workspace.searching.interactions(index)) for index in (0, live))
    gained, lost = sorted(challenger - champion), sorted(champion - challenger)
    return [f"+{text}" for text in _texts(gained)] + [f"-{text}" for text in _texts(lost)]


def _largest(
    workspace: Workspace, names: Mapping[int, str], top: int, *, fields: int
) -> Iterator[dict[str, Any]]:
    """Yield the champion's `top` largest weights, with their names if known."""
    model = workspace.learner.model
    lanes = model.weights.shape[1]
    lane = workspace.learner.champion_lane()
    weights = apply_penalties(model.weights[:, [lane]], model.lanes[model.penalised[[lane]]])[:, 0]
    cells = np.flatnonzero(weights)
    largest = cells[np.argsort(-np.abs(weights[cells]), kind="stable")[:top]]
    for cell in largest.tolist():
        entry: dict[str, Any] = {
            "name": names.get(cell * lanes),
            "number": cell * lanes + lane,
            "weight": float(weights[cell]),
        }
        if fields > 1:
            entry["gradients"] = float(model.statistics[cell, GRADIENTS, lane])
            entry["scale"] = float(model.statistics[cell, SCALE, lane])
        yield entry
