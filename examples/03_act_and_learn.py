"""Close the loop: predict, draw an action, see its cost, learn."""

import numpy as np

from onlineauto import Workspace

LIKES = {"tom": "politics", "anna": "sports"}
ACTIONS = ("politics", "sports", "music")

draw = np.random.default_rng(1)
bandit = Workspace(cb_explore_adf=True, quadratic="ua", epsilon=0.2)
clicks = []
for _ in range(2000):
    user = str(draw.choice(list(LIKES)))
    shared, lines = f"shared |u {user}", [f"|a {action}" for action in ACTIONS]
    probabilities = bandit.predict("\n".join([shared, *lines])).astype(float)
    chosen = int(draw.choice(len(ACTIONS), p=probabilities / probabilities.sum()))
    cost = -float(LIKES[user] == ACTIONS[chosen])
    lines[chosen] = f"{chosen}:{cost}:{probabilities[chosen]:.6f} {lines[chosen]}"
    bandit.learn("\n".join([shared, *lines]))
    clicks.append(-cost)
first, last = np.mean(clicks[:200]), np.mean(clicks[-200:])
print(f"click rate: {first:.2f} in the first 200 events, {last:.2f} in the last")
