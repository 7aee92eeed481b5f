"""Seeded streams on which the search for interactions has something to find.

Every function takes the number of events and a seed and returns the bytes of a file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.parity.case import content as plain_content


def _event(shared: str, actions: Sequence[str], *, logged: int, label: str) -> str:
    """Lines of one event; the empty one at its end too."""
    lines = [f"{label} {action}" if number == logged else action for number, action in enumerate(actions)]
    return "\n".join([shared, *lines, ""]) if shared else "\n".join([*lines, ""])


def _file(events: list[str]) -> bytes:
    return ("\n".join(events) + "\n").encode()


def _drift(n: int, seed: int, *, period: int, n_actions: int, follow: float = 0.0, noise: int = 0) -> bytes:
    """Return events whose good action depends on the user, and changes every `period` events.

    The logging policy takes the good action with probability `follow` and any one otherwise.
    """
    draw = random.Random(seed)
    events = []
    for event in range(n):
        user = draw.randrange(3)
        good = (user + event // period) % n_actions
        chances = [(1 - follow) / n_actions] * n_actions
        chances[good] += follow
        logged = draw.choices(range(n_actions), chances)[0]
        shared = f"shared |User u{user}"
        if noise:
            shared += f" |Time t{draw.randrange(noise)} |Zone z{draw.randrange(noise)}"
        label = f"0:{-1 if logged == good else 0}:{chances[logged]:.4g}"
        actions = [f"|Action a{action}" for action in range(n_actions)]
        events.append(_event(shared, actions, logged=logged, label=label))
    return _file(events)


def two(n: int, seed: int) -> bytes:
    """Two actions, logged evenly; the good one changes every 100 events."""
    return _drift(n, seed, period=100, n_actions=2)


def quick(n: int, seed: int) -> bytes:
    """Two actions, logged evenly; the good one changes every 30 events."""
    return _drift(n, seed, period=30, n_actions=2)


def three(n: int, seed: int) -> bytes:
    """Three actions, logged by a policy that often knows the good one, which changes every 200 events."""
    return _drift(n, seed, period=200, n_actions=3, follow=0.4)


def noisy(n: int, seed: int) -> bytes:
    """Two namespaces that mean nothing."""
    return _drift(n, seed, period=150, n_actions=2, noise=3)


def tastes(n: int, seed: int) -> bytes:
    """Return events of three articles: clicks depend on user and time of day; one namespace is noise."""
    draw = random.Random(seed)
    liked = {("Tom", "am"): 0, ("Tom", "pm"): 2, ("Anna", "am"): 1, ("Anna", "pm"): 0}
    events = []
    for event in range(n):
        user, time = draw.choice(("Tom", "Anna")), draw.choice(("am", "pm"))
        logged = draw.randrange(3)
        words = " ".join(f"n{draw.randrange(30)}:{draw.uniform(0.1, 1):.2f}" for _ in range(3))
        shared = f"shared |User user={user} time={time} |Noise {words}"
        like = (logged == liked[user, time]) != (event >= n // 2)
        actions = [f"|Action article={article}" for article in ("politics", "sports", "music")]
        label = f"0:{-1 if draw.random() < (0.95 if like else 0.05) else 0}:0.3333"
        events.append(_event(shared, actions, logged=logged, label=label))
    return _file(events)


_LATE = (("Extra", 40), ("more", 90), ("Zoo", 150))
"""Namespaces that first appear after a number of events."""


def odd(n: int, seed: int) -> bytes:
    """Late namespaces, no label, no shared line, one action or nine, no namespace name, letters over 127."""
    draw = random.Random(seed)
    events = []
    for event in range(n):
        user, size = draw.randrange(3), draw.choice((1, 2, 3, 3, 3, 9))
        late = " ".join(f"|{name} {name}{draw.randrange(3)}" for name, first in _LATE if event > first)
        unnamed = f"| plain{draw.randrange(2)}" if event > 20 and draw.random() < 0.5 else ""
        foreign = f"|éa e{draw.randrange(2)}" if draw.random() < 0.5 else ""
        context = f"|User u{user} {late} {foreign}"
        good = (user + event // 200) % size
        logged = draw.randrange(size) if draw.random() < 0.9 else -1
        label = f"0:{-1 if logged == good else 0}:{1 / size:.3g}"
        shared = f"shared {context}" if draw.random() < 0.9 else ""
        actions = [f"|Action a{action} {unnamed}" for action in range(size)]
        events.append(_event(shared, actions, logged=logged, label=label))
    return _file(events)


def unsure(n: int, seed: int) -> bytes:
    """Labels without a probability now and then, probabilities near 0, costs outside of [-1, 0]."""
    draw = random.Random(seed)
    events = []
    for _ in range(n):
        user, logged = draw.randrange(3), draw.randrange(3)
        cost = draw.choice((-1, 0, 0, 1, -3, 0.25)) if user != logged else -1
        chance = draw.choice(("0.3333", "0.3333", "0.3333", "0.01", "1", ""))
        label = f"0:{cost}:{chance}" if chance else f"0:{cost}"
        actions = [f"|Action a{action}" for action in range(3)]
        events.append(_event(f"shared |User u{user}", actions, logged=logged, label=label))
    return _file(events)


def numbered(n: int, seed: int) -> bytes:
    """Four actions on a line, some without a label; a namespace that was met once is on every line since.

    Where one is not, VW's interactions read what the line before left of it.
    """
    draw = random.Random(seed)
    lines = []
    for event in range(n):
        user, logged = draw.randrange(4), draw.randrange(4)
        late = "".join(f" |{name} {name}{draw.randrange(3)}" for name, first in _LATE if event > first)
        cost = -1 if logged == (user + event // 100) % 4 else 0
        label = f"{logged + 1}:{cost}:0.25" if draw.random() < 0.9 else ""
        lines.append(f"{label} |user u{user} |Time t{draw.randrange(2)}:{draw.uniform(0.1, 2):.2f}{late}")
    return ("\n".join(lines) + "\n").encode()


STREAMS: dict[str, Callable[[int, int], bytes]] = {
    "two": two,
    "quick": quick,
    "three": three,
    "noisy": noisy,
    "tastes": tastes,
    "odd": odd,
    "unsure": unsure,
    "numbered": numbered,
}
"""The streams by name."""


def content(stream: str, *, events: int) -> bytes:
    """Bytes of one of these streams, or of one that the other parity tests know."""
    if stream in STREAMS:
        return STREAMS[stream](events, sum(stream.encode()))
    return plain_content(stream, events=events)
