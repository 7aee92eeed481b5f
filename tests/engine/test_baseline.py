"""The member baseline beside its reference implementation, and where the context moves the cost by more."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlineauto import Workspace
from tests.bench.context_effect import earned, stream
from tests.naive.baseline import Baseline

OPTIONS: dict[str, Any] = {"cb_adf": True, "automl": 2, "bit_precision": 18}


def test_the_baseline_scores_like_its_reference_implementation() -> None:
    text, _ = stream(0, n=600, users=6, times=4, actions=3)
    workspace, reference, compared = Workspace(**OPTIONS, members="baseline"), Baseline(), 0
    for event in text.decode().strip().split("\n\n"):
        shared, *lines = event.split("\n")
        words = [f"{span[0]}{span.split()[1]}" for span in shared.split("|")[1:]]
        actions = [line.split("|a ")[1] for line in lines]
        low, high = workspace.searching.live_configs.arrays.ensemble.range.tolist()
        workspace.learn(f"{event}\n\n")
        buffers = workspace._runner._memory._buffers
        assert buffers is not None
        for at, action in enumerate(actions):
            wanted = reference.score(words, action)
            if wanted is not None:
                np.testing.assert_allclose(buffers.score[at, -2], wanted, rtol=1e-4, atol=1e-4)
                compared += 1
        logged = next(at for at, line in enumerate(lines) if not line.startswith("|"))
        cost = float(lines[logged].split(":")[1])
        if high > low:  # members learn no cost that is far outside of those before
            cost = min(max(cost, 2 * low - high), 2 * high - low)
        reference.learn(words, actions[logged], cost)
    assert compared > 1500


def test_the_baseline_earns_most_of_what_a_context_hides() -> None:
    text, rewards = stream(0, n=4000)
    by_products = earned({"quadratic": ["::"]}, text, rewards)
    without = earned({"automl": 4, "members": "features,waves,crosses,layer"}, text, rewards)
    having = earned({"automl": 4, "members": "features,waves,crosses,layer,baseline"}, text, rewards)
    assert without < by_products - 0.05
    assert having > by_products - 0.02
