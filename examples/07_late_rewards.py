"""Rank with dicts, learn clicks that come later, log each decision, and learn the log in another process.

Next: 08 saves a model and continues it.
"""

import random
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

from onlineauto import AutoML

LIKES = {"tom": "watches", "anna": "rings", "kim": "chains"}
KINDS = {name: {"kind": name} for name in ("watches", "rings", "chains")}

visitors = random.Random(1)
with TemporaryDirectory() as directory:
    log, model = Path(directory) / "decisions.dsjson", Path(directory) / "model.oam"
    bandit = AutoML(seed=1, default_reward=0, time_to_live=60, decision_log=log)
    waiting, clicks = deque[tuple[str, float]](), []
    for _ in range(3000):
        visitor = visitors.choice(list(LIKES))
        choice = bandit.rank({"visitor": visitor, "new": visitors.random() < 0.1}, KINDS)
        clicks.append(float(choice.action_id == LIKES[visitor]))
        waiting.append((choice.event_id, clicks[-1]))
        if len(waiting) > 20:  # the reward of a decision is known 20 visits later
            event_id, reward = waiting.popleft()
            bandit.learn(event_id, reward=reward)
    print(f"click rate: {sum(clicks[:300]) / 300:.2f} at first, {sum(clicks[-300:]) / 300:.2f} at last")
    print(bandit.report().split("\n\n")[0])
    bandit.save(model)
    print("the same from the log:", AutoML().join(log).champion == AutoML.load(model).champion)
