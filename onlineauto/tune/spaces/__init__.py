"""Spaces of configs: typed parameters, conditions, and a code of numbers between 0 and 1."""

from __future__ import annotations

from onlineauto.tune.spaces.configspace import from_configspace, to_configspace
from onlineauto.tune.spaces.parameter import Categorical, Float, Int, Parameter, Value
from onlineauto.tune.spaces.space import Config, Space, space_of_options

__all__ = [
    "Categorical",
    "Config",
    "Float",
    "Int",
    "Parameter",
    "Space",
    "Value",
    "from_configspace",
    "space_of_options",
    "to_configspace",
]
