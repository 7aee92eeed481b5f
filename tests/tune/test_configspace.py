"""Conversion of spaces from and to ConfigSpace."""

from __future__ import annotations

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Categorical, Float, Int, Space
from onlineauto.tune.spaces.configspace import from_configspace, to_configspace

config_space = pytest.importorskip("ConfigSpace", reason="the extra configspace is not installed")


def test_spaces_survive_a_round_trip() -> None:
    space = Space(
        {
            "rate": Float(1e-4, 1, log=True),
            "depth": Int(1, 12),
            "loss": Categorical(["squared", "hinge"]),
            "margin": Float(0, 1, when={"loss": "hinge", "depth": [1, 2]}),
            "steps": Int(1, 100, log=True, when={"loss": ["squared"]}),
        }
    )
    again = from_configspace(to_configspace(space))
    assert again.described() == space.described()


def test_constants_and_orders_are_choices() -> None:
    made = config_space.ConfigurationSpace()
    made.add(config_space.Constant("c", 5), config_space.OrdinalHyperparameter("o", ["low", "high"]))
    assert from_configspace(made).described() == {
        "c": {"type": "choice", "values": [5]},
        "o": {"type": "choice", "values": ["low", "high"]},
    }


def test_unsupported_parts_of_configspace_are_rejected() -> None:
    made = config_space.ConfigurationSpace()
    made.add(config_space.NormalFloatHyperparameter("x", mu=0.5, sigma=0.1, lower=0, upper=1))
    with pytest.raises(OptionError, match="x: a parameter is uniform"):
        from_configspace(made)
    made = config_space.ConfigurationSpace({"x": (0, 9), "y": (0, 9)})
    made.add(config_space.GreaterThanCondition(made["y"], made["x"], 3))
    with pytest.raises(OptionError, match="depend on values of others"):
        from_configspace(made)
