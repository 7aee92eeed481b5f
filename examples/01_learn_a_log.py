"""Learn a log: which of ten price classes fits which diamond.

The log is the shop's first. Each of its 30,000 events is a diamond that was put into a price class at random,
with the reward of that class: 1 if it was right, less if it was near. A log has costs, which are negative
rewards. Each event is predicted before it is learnt, so the loss is what the predictions would have cost.

Next: 02 looks at the events.
"""

import numpy as np

from onlineauto import Workspace, datasets

bandit = Workspace(cb_explore_adf=True, quadratic="::", epsilon=0.1)
losses = np.concatenate(
    [outcomes.loss[outcomes.labelled] for _, outcomes in bandit.stream(datasets.path("cb-diamonds-u"))]
)
for number, part in enumerate(np.array_split(losses, 3), 1):
    print(f"average loss of third {number}: {part.mean():.3f} over {len(part):,} events")
