"""Streams for tests, and a trial without a study."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from onlineauto.tune.live import LiveLearner
from onlineauto.tune.workers.trainable import train


def numbers(n: int, *, noise: float = 0.1, seed: int = 0) -> list[str]:
    """Return single lines whose label depends on a pair of namespaces."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        a, b, c = (draw.randrange(3) for _ in range(3))
        lines.append(f"{(a == b) + draw.gauss(0, noise):.4f} |a x{a} |b x{b} |c x{c}")
    return lines


def bandits(n: int, *, seed: int = 0) -> list[str]:
    """Return events with three actions; the best one depends on the context."""
    draw = random.Random(seed)
    events = []
    for _ in range(n):
        context, logged = draw.randrange(3), draw.randrange(3)
        lines = [f"shared |u c{context} |v d{draw.randrange(4)}"]
        for action in range(3):
            cost = f"0:{-float(action == context)}:0.3333 " if action == logged else ""
            lines.append(f"{cost}|Z a{action}")
        events.append("\n".join(lines) + "\n")
    return events


class Taken:
    """The reports of a trial, and its state at the end."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.values: list[float] = []
        self.details: list[Mapping[str, Any]] = []
        self.saved = b""


def take(
    learner: LiveLearner,
    config: Mapping[str, Any],
    resource: int,
    *,
    step: int = 0,
    saved: bytes | None = None,
) -> Taken:
    """Train a trial up to a resource, from a checkpoint or from its beginning."""
    taken = Taken()

    def hear(step: int, value: float, save: Any, details: Any) -> bool:
        taken.steps.append(step)
        taken.values.append(value)
        taken.details.append(details)
        taken.saved = save()
        return True

    train(learner, config, resource=resource, step=step, saved=saved, report=hear)
    return taken
