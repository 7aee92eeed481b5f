"""The layout of a workspace, from its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.config import ORDERS
from onlineauto.automl.control import control_of
from onlineauto.automl.options import AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.engine.stream.dialect import dialect_of
from onlineauto.features.options import FeatureOptions

if TYPE_CHECKING:
    from onlineauto.features.layout import StreamLayout
    from onlineauto.options import Configuration


def make_layout(configuration: Configuration, *, slots: bool) -> StreamLayout:
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
