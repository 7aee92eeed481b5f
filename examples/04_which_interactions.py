"""The true reward of several sets of interactions: the choice that AutoML is there to make."""

import numpy as np

from onlineauto import Workspace, datasets

truth = datasets.true_rewards("cb-penbased-u")

for name, interactions in {
    "none": [],
    "all pairs": ["::"],
    "context x action": [letter + "Z" for letter in "abcdefgh"],
}.items():
    bandit = Workspace(cb_explore_adf=True, quadratic=interactions, epsilon=0.1, hash_bits=20)
    best = [
        outcomes.action[outcomes.action_start[:-1]]
        for _, outcomes in bandit.stream(datasets.path("cb-penbased-u"))
    ]
    greedy = np.concatenate(best)
    print(f"{name:17} reward {truth[np.arange(len(greedy)), greedy].mean():.4f}")
