"""Recursive least squares over long streams: rounding does not grow, whatever an event's weight or values."""

from __future__ import annotations

import numpy as np
import pytest

from onlineauto.engine.stack.least_squares_kernels import Observed, cut_off, learn_squares


@pytest.mark.parametrize(
    ("noise", "size", "each"), [(1.0, 1.0, 1), (1.0, 1.0, 4), (1e-38, 1.0, 4), (1.0, 1e38, 4)]
)
def test_covariance_stays_symmetric_and_positive(noise: float, size: float, each: int) -> None:
    """Inputs are nearly the same, as scores of live configs are; one event is of huge weight or values."""
    draw, n = np.random.default_rng(1), 5
    weights, spread, gains = np.zeros(n), np.eye(n), np.zeros(n)
    for at in range(120_000):
        base = draw.random()
        inputs = base + 1e-3 * draw.normal(size=n)
        inputs[-1] = 1.0
        odd = at == 100
        inputs *= size if odd else 1.0
        observed = Observed(0.5 * base, noise if odd else 1.0, 0.9995, each if at % each == 0 else 0)
        learn_squares(weights, spread, inputs, gains, observed)
        cut_off(spread, n, 1.0)
    assert np.array_equal(spread, spread.T)
    assert np.linalg.eigvalsh(spread)[0] > 0
    assert weights @ [0.5, 0.5, 0.5, 0.5, 1.0] == pytest.approx(0.25, abs=0.01)
