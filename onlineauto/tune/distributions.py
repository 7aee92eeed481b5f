"""Parameters by the names of Optuna's distributions, for ``study.ask(…)`` and ``create_trial(…)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.tune.spaces import Categorical, Float, Int

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CategoricalDistribution", "FloatDistribution", "IntDistribution"]

FloatDistribution = Float
"""The same as `Float`."""
IntDistribution = Int
"""The same as `Int`."""


def CategoricalDistribution(choices: Sequence[Any]) -> Categorical:  # noqa: N802 - the name in Optuna
    """Return ``Categorical(choices)``."""
    return Categorical(choices)
