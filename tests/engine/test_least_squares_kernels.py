"""Recursive least squares over long streams: rounding does not grow, whatever an event's weight or values."""

from __future__ import annotations

import numpy as np
import pytest

from onlineauto.engine.ensemble.least_squares_kernels import (
    LATE,
    WAITING,
    Observed,
    Regression,
    begin_weight,
    catch_up,
    cut_off,
    learn_lately,
    learn_squares,
    raise_variances,
)

pytestmark = pytest.mark.lane("sampled")


def regression(n: int) -> Regression:
    return Regression(
        weights=np.zeros((1, n), np.float32),
        spread=np.eye(n, dtype=np.float32)[None],
        late=np.zeros((1, LATE, n), np.float32),
        n_late=np.zeros(1, np.int64),
        scale=np.ones(1),
        waiting=np.zeros((1, WAITING, n), np.float32),
        observed=np.zeros((1, WAITING, 3)),
        n_waiting=np.zeros(1, np.int64),
        begun=np.array([n]),
        prepared=np.array([n, 1]),
        gains=np.zeros((WAITING, n), np.float32),
    )


@pytest.mark.parametrize("together", [1, WAITING])
@pytest.mark.parametrize("density", [0.2, 0.7, 1.0])
def test_late_covariance_learns_the_same_weights(together: int, density: float) -> None:
    """Some inputs are 0, like those of words that an event lacks; new inputs come between the updates."""
    draw, n, most = np.random.default_rng(2), 7, 13
    weights, spread, gains = np.zeros(most), np.eye(most), np.zeros(most)
    lately, room = regression(most), np.zeros((WAITING, most), np.float32)
    for at in range(700):
        if at % 100 == 0 < at and n < most:
            begin_weight(lately, 0, n, 1.0)
            n += 1
        inputs = draw.normal(size=n) * (draw.random(n) < density)
        observed = Observed(float(inputs.sum()), 1 / (1 + at % 3), 0.99, (0, 1, 4)[at % 3])
        if at % 52 == 0:
            catch_up(lately, 0, n)
            np.testing.assert_allclose(lately.spread[0, :n, :n], spread[:n, :n], atol=1e-5)
        learn_squares(weights[:n], spread, inputs, gains[:n], observed)
        learn_lately(lately, 0, inputs.astype(np.float32), room, observed, together)
        assert lately.n_waiting[0] == (at + 1) % together
        if not lately.n_waiting[0]:
            np.testing.assert_allclose(lately.weights[0], weights, atol=1e-4)


@pytest.mark.parametrize("together", [1, WAITING])
@pytest.mark.parametrize(("noise", "size"), [(1.0, 1.0), (1e-38, 1.0), (1.0, 1e38)])
def test_late_covariance_stays_symmetric_and_positive(noise: float, size: float, together: int) -> None:
    """Inputs are nearly the same; one event is of huge weight or values."""
    draw, n = np.random.default_rng(1), 5
    lately, gains = regression(n), np.zeros((WAITING, n), np.float32)
    for at in range(20_000):
        inputs = draw.random() + 1e-3 * draw.normal(size=n)
        inputs[-1] = 1.0
        odd = at == 100
        inputs *= size if odd else 1.0
        observed = Observed(0.5 * inputs[0], noise if odd else 1.0, 0.9995, 1)
        learn_lately(lately, 0, inputs.astype(np.float32), gains, observed, together)
        if at % 64 == 0:
            catch_up(lately, 0, n)
            cut_off(lately.spread[0], n, 1.0, gains[0])
            raise_variances(lately.spread[0], n, 1.0)
    catch_up(lately, 0, n)
    assert np.array_equal(lately.spread, lately.spread.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(lately.spread[0])[0] > 0


@pytest.mark.ci
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
        cut_off(spread, n, 1.0, gains)
    assert np.array_equal(spread, spread.T)
    assert np.linalg.eigvalsh(spread)[0] > 0
    assert weights @ [0.5, 0.5, 0.5, 0.5, 1.0] == pytest.approx(0.25, abs=0.01)
