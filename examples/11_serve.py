"""Serve: choose, learn rewards that come later, log each decision, and learn the log in another process."""

import random
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

from onlineauto import AutoML

LIKES = {"tom": "politics", "anna": "sports", "kim": "music"}
ARTICLES = {name: {"article": name} for name in ("politics", "sports", "music")}

visitors = random.Random(1)
with TemporaryDirectory() as directory:
    log, model = Path(directory) / "decisions.dsjson", Path(directory) / "model.oam"
    bandit = AutoML(seed=1, default_reward=0, time_to_live=60, decision_log=log)
    unread, clicks = deque[tuple[str, float]](), []
    for _ in range(3000):
        user = visitors.choice(list(LIKES))
        choice = bandit.rank({"user": user, "new": visitors.random() < 0.1}, ARTICLES)
        clicks.append(float(choice.action_id == LIKES[user]))
        unread.append((choice.event_id, clicks[-1]))
        if len(unread) > 20:  # the reward of a decision is known 20 visits later
            event_id, reward = unread.popleft()
            bandit.learn(event_id, reward=reward)
    print(f"click rate: {sum(clicks[:300]) / 300:.2f} at first, {sum(clicks[-300:]) / 300:.2f} at last")
    print(bandit.report().split("\n\n")[0])
    bandit.save(model)
    print("the same from the log:", AutoML().join(log).champion == AutoML.load(model).champion)
