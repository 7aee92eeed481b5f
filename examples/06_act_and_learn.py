"""Act, and learn from what happens: predict, draw an action, see its cost, learn.

The shop's front page displays one of three kinds of jewellery. Visitors click on the kind that they like.

Next: 07 does the same with dicts, and with clicks that come later.
"""

import numpy as np

from onlineauto import Workspace

LIKES = {"tom": "watches", "anna": "rings"}
KINDS = ("watches", "rings", "chains")

draw = np.random.default_rng(1)
bandit = Workspace(cb_explore_adf=True, quadratic="vk", epsilon=0.2)
clicks = []
for _ in range(2000):
    visitor = str(draw.choice(list(LIKES)))
    shared, lines = f"shared |v {visitor}", [f"|k {kind}" for kind in KINDS]
    probabilities = bandit.predict("\n".join([shared, *lines])).astype(float)
    chosen = int(draw.choice(len(KINDS), p=probabilities / probabilities.sum()))
    cost = -float(LIKES[visitor] == KINDS[chosen])
    lines[chosen] = f"{chosen}:{cost}:{probabilities[chosen]:.6f} {lines[chosen]}"
    bandit.learn("\n".join([shared, *lines]))
    clicks.append(-cost)
first, last = np.mean(clicks[:200]), np.mean(clicks[-200:])
print(f"click rate: {first:.2f} in the first 200 visits, {last:.2f} in the last")
