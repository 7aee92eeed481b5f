"""Streams of several kinds: few names to many, few namespaces to many, few actions to many.

An action earns 1 with a probability of 0.8 or 0.2, which depends on the first name of the context and on its
own first name together. Logs are uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Namespaces that are alike."""

    many: int = 1  # how many there are
    names: int = 0  # features of each in an event that are names
    of: int = 1  # how many names there are to draw these from
    numbers: int = 0  # features of each that are numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of stream: the namespaces of its contexts and of its actions, and how much there is of it."""

    what: str
    events: int
    actions: int
    context: tuple[Part, ...]
    action: tuple[Part, ...]

    def write(self, path: Path, *, share: float = 1.0, seed: int = 1) -> int:
        """Write a stream of this kind as VW text, or a part of it; return its number of events."""
        draw, events = np.random.default_rng(seed), max(1, round(self.events * share))
        with path.open("w", encoding="ascii") as file:
            for _ in range(events):
                file.write(self._event(draw))
        return events

    def _event(self, draw: Generator) -> str:
        first, context = _line("c", self.context, draw)
        logged = int(draw.integers(self.actions))
        lines = [f"shared{context}"]
        for number in range(self.actions):
            own, features = _line("a", self.action, draw)
            label = ""
            if number == logged:
                earns = draw.random() < (0.8 if (7 * first + own) % 5 < 2 else 0.2)
                label = f"0:{-int(earns)}:{1 / self.actions:.6f}"
            lines.append(f"{label}{features}")
        return "\n".join(lines) + "\n\n"


def _line(prefix: str, parts: tuple[Part, ...], draw: Generator) -> tuple[int, str]:
    """Return the first name of a line, and its namespaces as text."""
    first, number, text = -1, 0, []
    for part in parts:
        for _ in range(part.many):
            names = draw.integers(part.of, size=part.names).tolist()
            first = names[0] if first < 0 and names else first
            words = [f"{prefix}{number}_{name}" for name in names]
            words += [f"n{i}:{value:.4f}" for i, value in enumerate(draw.random(part.numbers).tolist())]
            text.append(f" |{prefix}{number} {' '.join(words)}")
            number += 1
    return max(first, 0), "".join(text)


KINDS = {
    "tiny": Kind(
        what="2 namespaces of 1 name out of 10, 2 actions",
        events=20_000,
        actions=2,
        context=(Part(names=1, of=10),),
        action=(Part(names=1, of=10),),
    ),
    "news": Kind(
        what="4 namespaces of 2 to 5 names out of 31 to 220, some numbers, 8 actions",
        events=20_000,
        actions=8,
        context=(Part(names=5, of=60), Part(names=2, of=31)),
        action=(Part(names=2, of=220, numbers=1), Part(names=2, of=40, numbers=1)),
    ),
    "ids": Kind(
        what="5 namespaces of 1 name out of 100 to 100,000, 10 actions",
        events=20_000,
        actions=10,
        context=(Part(names=1, of=100_000), Part(many=2, names=1, of=100)),
        action=(Part(names=1, of=10_000), Part(names=1, of=100)),
    ),
    "namespaces": Kind(
        what="12 namespaces of 3 names out of 300, 4 actions",
        events=4000,
        actions=4,
        context=(Part(many=9, names=3, of=300),),
        action=(Part(many=3, names=3, of=300),),
    ),
    "actions": Kind(
        what="4 namespaces of 3 names out of 1,000, 200 actions",
        events=1500,
        actions=200,
        context=(Part(many=2, names=3, of=1000),),
        action=(Part(many=2, names=3, of=1000),),
    ),
    "texts": Kind(
        what="3 namespaces of 100 names out of 10,000, 4 actions",
        events=500,
        actions=4,
        context=(Part(many=2, names=100, of=10_000),),
        action=(Part(names=100, of=10_000),),
    ),
    "numbers": Kind(
        what="3 namespaces, 2 of 10 numbers, 7 actions of 1 name out of 7",
        events=10_000,
        actions=7,
        context=(Part(many=2, numbers=10),),
        action=(Part(names=1, of=7),),
    ),
    "wide": Kind(
        what="a context of 100 names out of 1,000, 50 actions of 4",
        events=1000,
        actions=50,
        context=(Part(names=100, of=1000),),
        action=(Part(names=4, of=200),),
    ),
    "300 namespaces": Kind(
        what="300 namespaces of 1 name out of 100, 4 actions",
        events=1000,
        actions=4,
        context=(Part(many=290, names=1, of=100),),
        action=(Part(many=10, names=1, of=100),),
    ),
}
"""The kinds by name. The last two are for targets of their own."""
