"""Compare sets of interactions by their true reward: the choice that AutoML is there to make.

The data set has the reward of all ten classes of each diamond, which no real log has.

Next: 04 lets the search make this choice.
"""

import numpy as np

from onlineauto import Workspace, datasets

truth = datasets.true_rewards("cb-diamonds-u")

for name, interactions in {
    "none": [],
    "all pairs": ["::"],
    "context x class": [letter + "Z" for letter in "cuoltbx"],
}.items():
    bandit = Workspace(cb_explore_adf=True, quadratic=interactions, epsilon=0.1, hash_bits=20)
    best = [
        outcomes.action[outcomes.action_start[:-1]]
        for _, outcomes in bandit.stream(datasets.path("cb-diamonds-u"))
    ]
    greedy = np.concatenate(best)
    print(f"{name:15} reward {truth[np.arange(len(greedy)), greedy].mean():.4f}")
