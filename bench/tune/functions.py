"""The two functions on which tuners are compared, with ladders of resources: hartmann6 and counting ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlineauto.tune.spaces import Categorical, Float, Space


@dataclass(frozen=True, slots=True)
class Function:
    """A loss that costs what is spent on it, and how far a config is from the best one."""

    space: Space
    min_resource: int
    max_resource: int
    loss: Callable[[Mapping[str, Any], int, np.random.Generator], float]
    regret: Callable[[Mapping[str, Any]], float]

    @property
    def budget(self) -> int:
        """What 200 trials at the highest level cost."""
        return 200 * self.max_resource


_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_LOWEST = -3.32237
_MOST = 81


def _hartmann(config: Mapping[str, Any], alpha: np.ndarray) -> float:
    x = np.array([config[f"x{each}"] for each in range(6)])
    return float(-alpha @ np.exp(-(_A * (x - _P) ** 2).sum(1)))


def _hartmann_loss(config: Mapping[str, Any], level: int, rng: np.random.Generator) -> float:
    """Return the value with a bias of 0.1 (1 - z) in the weights, and noise of as much; z is level / most."""
    missing = 0.1 * (1 - level / _MOST)
    return _hartmann(config, _ALPHA - missing) + missing * float(rng.standard_normal())


_HALF = 8
_ONES = 729


def _ones_loss(config: Mapping[str, Any], level: int, rng: np.random.Generator) -> float:
    """Return minus the share of ones: the words exactly, each probability from `level` draws."""
    words = sum(config[f"word{each}"] for each in range(_HALF))
    chances = np.array([config[f"chance{each}"] for each in range(_HALF)])
    return -float(words + (rng.binomial(level, chances) / level).sum()) / (2 * _HALF)


def _ones_regret(config: Mapping[str, Any]) -> float:
    return 1.0 - float(sum(config.values())) / (2 * _HALF)


FUNCTIONS = {
    "hartmann6": Function(
        Space({f"x{each}": Float(0, 1) for each in range(6)}),
        1,
        _MOST,
        _hartmann_loss,
        lambda config: _hartmann(config, _ALPHA) - _LOWEST,
    ),
    "counting ones": Function(
        Space(
            {f"word{each}": Categorical([0, 1]) for each in range(_HALF)}
            | {f"chance{each}": Float(0, 1) for each in range(_HALF)}
        ),
        9,
        _ONES,
        _ones_loss,
        _ones_regret,
    ),
}
"""By their names."""
