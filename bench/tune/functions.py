"""The function hartmann6: its space, its constants and the regret of a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onlineauto.tune.spaces import Float, Space

ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
LOWEST = -3.32237
HARTMANN_6 = Space({f"x{number}": Float(0, 1) for number in range(6)})


def hartmann_regret(config: Mapping[str, Any]) -> float:
    """Return the difference between the value of a config and the lowest value."""
    x = np.array([config[f"x{number}"] for number in range(6)])
    return float(-ALPHA @ np.exp(-(A * (x - P) ** 2).sum(1))) - LOWEST
