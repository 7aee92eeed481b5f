"""Small seeded streams in VW's text format, well formed: the parity runs' ordinary input.

Every function takes the number of events and a seed and returns the bytes of a file.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.parity.slot_streams import SLOT_STREAMS

_WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")


def _features(draw: random.Random) -> str:
    """Four namespaces: numbers, a category, integer names with few values, and now and then a fourth."""
    numbers = " ".join(f"x{i}:{draw.uniform(-2, 2):.4g}" for i in range(3))
    text = f"|a {numbers} |b {draw.choice(_WORDS)} |c {draw.randrange(8)} {draw.randrange(8)}:0.5"
    return text if draw.random() < 0.6 else f"{text} |d u{draw.randrange(4)}:{draw.gauss(0, 3):.3f} flag"


def _signal(features: str) -> float:
    """Fixed, made-up regression function of the words in a line."""
    return sum(((len(word) * 37 + ord(word[-1])) % 19 - 9) / 9 for word in features.split()) / 3


def _file(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def numbers(n: int, seed: int) -> bytes:
    """Labels are real numbers, some importance weights."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        features = _features(draw)
        weight = f" {draw.choice((0.5, 2, 3.25))}" if draw.random() < 0.2 else ""
        lines.append(f"{_signal(features) + draw.gauss(0, 0.3):.4f}{weight} {features}")
    return _file(lines)


def signs(n: int, seed: int) -> bytes:
    """Labels are -1 and 1."""
    draw = random.Random(seed)
    drawn = [_features(draw) for _ in range(n)]
    labels = [1 if _signal(features) + draw.gauss(0, 0.5) > 0 else -1 for features in drawn]
    return _file([f"{label} {features}" for label, features in zip(labels, drawn, strict=True)])


def bits(n: int, seed: int) -> bytes:
    """Labels are 0 and 1, for ``--logistic_min 0``."""
    return b"".join(line.replace(b"-1", b"0", 1) for line in signs(n, seed).splitlines(keepends=True))


def counts(n: int, seed: int) -> bytes:
    """Labels are counts, for the poisson loss."""
    draw = random.Random(seed)
    drawn = [_features(draw) for _ in range(n)]
    labels = [max(0, round(2 + _signal(features) + draw.gauss(0, 1))) for features in drawn]
    return _file([f"{label} {features}" for label, features in zip(labels, drawn, strict=True)])


def weighted(n: int, seed: int) -> bytes:
    """Importance weights (0 too), initial predictions, tags, and lines without a label."""
    draw = random.Random(seed)
    lines = []
    for event in range(n):
        features = _features(draw)
        label = f"{_signal(features):.3f}"
        head = draw.choice(("", label, f"{label} 0", f"{label} 1.5", f"{label} 2 0.25", f"{label} 40 -1"))
        tag = draw.choice(("", f" 'tag{event}", f" tag{event}" if head else ""))
        joint = " " if not tag or ("'" in tag and draw.random() < 0.5) else ""
        lines.append(f"{head}{tag}".lstrip() + joint + features)
    return _file(lines)


def large(n: int, seed: int) -> bytes:
    """Values and labels over many orders of magnitude: the rates' squares leave the normal range."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        drawn = [draw.uniform(-1, 1) * 10 ** draw.randrange(-20, 9) for _ in range(5)]
        values = " ".join(f"v{i}:{value:.5g}" for i, value in enumerate(drawn))
        label = draw.uniform(0, 1) * 10 ** draw.randrange(0, 5)
        lines.append(f"{label:.5g} |a {values} |b k{draw.randrange(5)}")
    return _file(lines)


def _context(draw: random.Random) -> str:
    numbers = f"age:{draw.randrange(18, 80)} dose:{draw.uniform(0, 1):.3f}"
    return f"shared |U {draw.choice(_WORDS)} {numbers} |T t{draw.randrange(6)}"


def bandit(n: int, seed: int) -> bytes:
    """``cb_adf`` events of 2 to 6 actions, most with a logged one; costs in [-1, 1]."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        size = draw.randrange(2, 7)
        logged = draw.randrange(size) if draw.random() < 0.85 else -1
        lines.append(_context(draw))
        for action in range(size):
            label = f"{action}:{draw.uniform(-1, 1):.2f}:{draw.uniform(0.05, 1):.3f} "
            price = f" price:{draw.uniform(0, 4):.2f}" if draw.random() < 0.5 else ""
            extra = f" |V v{draw.randrange(3)}:{draw.uniform(0.1, 2):.3f}" if draw.random() < 0.3 else ""
            lines.append(f"{label if action == logged else ''}|A item{draw.randrange(9)}{price}{extra}")
        lines.append("")
    return _file(lines)


def rewards(n: int, seed: int) -> bytes:
    """``cb_adf`` events of 4 fixed actions, every one logged, with costs -1 and 0 that can be learnt."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        context = _context(draw)
        logged = draw.randrange(4)
        good = (len(context.split()[1]) % 4) == logged
        cost = -1 if draw.random() < (0.9 if good else 0.2) else 0
        lines.append(context)
        lines += [f"{f'0:{cost}:0.25 ' if action == logged else ''}|A {action}" for action in range(4)]
        lines.append("")
    return _file(lines)


def classic_bandit(n: int, seed: int) -> bytes:
    """``--cb 4`` lines, some without a label."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        label = f"{draw.randrange(1, 5)}:{draw.uniform(-1, 2):.2f}:{draw.uniform(0.1, 1):.2f} "
        lines.append(f"{label if draw.random() < 0.9 else ''}{_features(draw)}")
    return _file(lines)


STREAMS: dict[str, Callable[[int, int], bytes]] = {
    **SLOT_STREAMS,
    "numbers": numbers,
    "signs": signs,
    "bits": bits,
    "counts": counts,
    "weighted": weighted,
    "large": large,
    "bandit": bandit,
    "rewards": rewards,
    "classic_bandit": classic_bandit,
}
"""The streams by name."""
