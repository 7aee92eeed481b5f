"""Make model files and a file of blocks of format 1, with the figures to expect of them.

Run ``python -m tests.data.make_fixtures tests/data``, but only as long as format 1 is not released.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
from pathlib import Path
from typing import Any

from onlineauto import Workspace, convert

LEARNT, CONTINUED = 400, 20
"""Events that a model has learnt when it is saved, and those that it then predicts and learns."""

SMALL: dict[str, Any] = {"bit_precision": 5}
BANDIT: dict[str, Any] = SMALL | {"cb_explore_adf": True}
MODELS: dict[str, dict[str, Any]] = {
    "regression": SMALL | {"quadratic": ["ua"], "learning_rate": 0.3},
    "lines": SMALL | {"automl": 3},
    "search": BANDIT | {"automl": 4, "default_lease": 50, "squarecb": True},
    "bag": BANDIT | {"bag": 2, "quadratic": ["ua"]},
    "slots": SMALL | {"ccb_explore_adf": True, "quadratic": ["ua"], "softmax": True, "lambda": 3},
    "exact": BANDIT | {"vw_exact": True, "quadratic": ["::"], "softmax": True, "lambda": 3},
}
"""Explorers whose probabilities tell small differences of scores, where there may be one."""
USERS, ACTIONS, HOURS = ("tom", "anna"), ("sports", "politics", "music"), ("am", "pm")


def bandit_event(draw: random.Random) -> str:
    """Return a user who likes one action in the morning and another one in the evening."""
    user, hour, chosen = draw.randrange(2), draw.randrange(2), draw.randrange(3)
    cost = -int(draw.random() < (0.9 if chosen == (user + hour) % 3 else 0.1))
    labels = [f"{chosen}:{cost}:0.3333 " if action == chosen else "" for action in range(3)]
    actions = "".join(f"{labels[i]}|a {name}\n" for i, name in enumerate(ACTIONS))
    return f"shared |u {USERS[user]} |h {HOURS[hour]} x:{draw.randrange(1, 9) / 8}\n{actions}"


def slots_event(draw: random.Random) -> str:
    """Return two slots for a user and three actions."""
    first, second = draw.sample(range(3), 2)
    actions = "".join(f"ccb action |a {name}\n" for name in ACTIONS)
    slots = [
        f"ccb slot {chosen}:{-(chosen == place)}:0.5 |s place{place}\n"
        for place, chosen in enumerate((first, second))
    ]
    return f"ccb shared |u {USERS[draw.randrange(2)]}\n{actions}{''.join(slots)}"


def single_line(draw: random.Random) -> str:
    """Return a label that a product of two features explains."""
    user, action = draw.randrange(2), draw.randrange(3)
    return f"{(user + 1) * action / 4 + draw.randrange(8) / 64} |u {USERS[user]} |a {ACTIONS[action]}\n"


EVENTS = {"regression": single_line, "lines": single_line, "slots": slots_event}


def write(file: Path, content: bytes) -> None:
    """Write a file compressed, for most of a small model is zeros; the same content makes the same bytes."""
    file.write_bytes(gzip.compress(content, mtime=0))


def learnt(name: str, options: dict[str, Any], folder: Path) -> tuple[Workspace, random.Random]:
    """Make a model and write its file; return it with what draws its further events."""
    draw, workspace, file = random.Random(17), Workspace(**options), io.BytesIO()
    for _ in range(LEARNT):
        workspace.learn(EVENTS.get(name, bandit_event)(draw))
    workspace.save(file)
    write(folder / f"{name}.model.gz", file.getvalue())
    return workspace, draw


def main(folder: Path) -> None:
    """Write all models and a file of blocks, and the figures to expect of them."""
    figures: dict[str, dict[str, Any]] = {}
    for name, options in MODELS.items():
        workspace, draw = learnt(name, options, folder)
        events = [EVENTS.get(name, bandit_event)(draw) for _ in range(CONTINUED)]
        figures[name] = {
            "events": events,
            "predicted": [workspace.predict(event).tolist() for event in events],
            "learnt": [workspace.learn(event).tolist() for event in events],
        }
    draw = random.Random(17)
    text = "\n".join(bandit_event(draw) for _ in range(CONTINUED)) + "\n"
    blocks = folder / "events.blocks"
    convert(text.encode(), blocks, cb_explore_adf=True)
    workspace = Workspace(bit_precision=5, cb_explore_adf=True, quadratic=["ua"], softmax=True)
    scores = [outcomes.score.tolist() for _, outcomes in workspace.stream(blocks)]
    figures["blocks"] = {"text": text, "scores": [score for block in scores for score in block]}
    write(folder / "events.blocks.gz", blocks.read_bytes())
    blocks.unlink()
    (folder / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
