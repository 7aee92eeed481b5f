"""The member ridge, on streams where rewards are rare."""

from __future__ import annotations

import numpy as np

from bench.clicks import VARIANTS, stream
from bench.context_effect import earned


def test_clicks_are_learnt_although_they_are_rare() -> None:
    more = []
    for seed in range(3):
        text, clicks = stream(seed, rate=0.02, n=8000)
        default, without = (earned(VARIANTS[name], text, clicks) for name in ("default", "without ridge"))
        more.append((default - without) / clicks.mean())
    assert np.mean(more) > 0.05
