"""The layout and the search of a workspace, from its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.config import ORDERS
from onlineauto.automl.control import control_of
from onlineauto.automl.options import AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.search.replay import replayed_entries
from onlineauto.engine.search.search_engine import Searching
from onlineauto.engine.stream.dialect import dialect_of
from onlineauto.features.options import FeatureOptions
from onlineauto.learners.hyperparameters import Hyperparameters

if TYPE_CHECKING:
    from onlineauto.engine.loop.learner import Learner
    from onlineauto.features.layout import Layout
    from onlineauto.options import Configuration

__all__ = ["make_layout", "make_searching"]

_SCREEN_CELLS = 1 << 18


def make_layout(configuration: Configuration, *, slots: bool) -> Layout:
    """Return the layout before the first event; with `slots`, events have CCB slots."""
    automl = configuration[AutomlOptions]
    searched: tuple[int, ...] = ()
    if automl.automl:
        searched = (
            ORACLES[automl.oracle_type or control_of(configuration).oracle].orders
            or ORDERS[automl.interaction_type]
        )
    singled = bool(searched) and "namespaces" in automl.searched()
    features = configuration[FeatureOptions]
    layout = dialect_of(configuration).layout
    return layout(features, searched=searched, singled=singled, slots=slots)


def make_searching(
    configuration: Configuration, layout: Layout, learner: Learner, *, simple: bool
) -> Searching:
    """Return the search before the first event; without ``--automl``, it has a champion alone."""
    run = configuration[RunOptions]
    return Searching(
        configuration[AutomlOptions],
        layout,
        control=control_of(configuration),
        shape=learner.shape,
        simple=simple,
        cells=min(len(learner.model.weights), _SCREEN_CELLS),
        hyperparameters=Hyperparameters(configuration),
        unlearnt=learner.unlearnt,
        decay=learner.task.decay,
        random_seed=run.random_seed,
        replayed=replayed_entries(configuration),
    )
