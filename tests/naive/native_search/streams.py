"""Small deterministic streams that cause decisions of a search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BEST = np.random.default_rng(7).integers(0, 4, (3, 3))
"""The rewarded action, by the values of two namespaces."""


def choices(
    n: int,
    *,
    pays: Sequence[str] = ("ab",),
    late: int | None = None,
    repeated: bool = False,
    rough: bool = False,
    n_actions: int = 4,
    seed: int = 0,
) -> bytes:
    """Events of several actions, of which one pays.

    Parameters
    ----------
    n : int
        How many events.
    pays : sequence of str
        Namespaces that tell which action pays, for each part of the stream; "?" is chance, and with "-"
        hardly any ever does. With "." there is one action only, which pays by the namespaces that follow.
    late : int, optional
        From this event on there is another namespace, `e`, that tells it alone.
    repeated : bool
        There is no shared line: what is shared stands on the line of every action.
    rough : bool
        Rewards are real numbers whose range grows, actions are logged with probabilities that become
        smaller, some events have no label, and some namespaces have several features with values.
    """
    draw = np.random.default_rng(seed)
    text = []
    for i in range(n):
        value = {name: int(draw.integers(3)) for name in "abcde"}
        part = pays[i * len(pays) // n]
        best = int(draw.integers(n_actions))
        if late is not None and i >= late:
            best = value["e"]
        elif part.isalpha():
            best = int(BEST[value[part[0]], value[part[1]]]) % n_actions
        shown = int(draw.integers(n_actions))
        probability = 1 / n_actions
        often = 0.02 if part == "-" else 0.9 if shown == best else 0.1
        alone = part.startswith(".")
        if alone:
            shown, probability = 0, 1.0
            often = 0.9 if BEST[value[part[1]], value[part[2]]] < 2 else 0.1
        reward = float(draw.random() < often)
        if rough:
            usual, habit = value["a"] % n_actions, 0.3 + 0.4 * i / n
            shown = usual if draw.random() < habit else shown
            probability = (1 - habit) / n_actions + habit * (shown == usual)
            reward = float(5 * (shown == best) + (0.1 + i / n) * draw.normal())
        context = [f"|{name} {name}{value[name]}" for name in "abcd"]
        if rough:
            context[1] += f" size:{draw.normal():.3f} w{draw.integers(5)}:{1 + i / n:.2f}"
        if late is not None and i >= late:
            context.append(f"|e e{value['e']}")
        label = "" if rough and i % 7 == 0 else f"0:{-reward:.5f}:{probability:.6f} "
        actions = [f"{label if k == shown else ''}|z z{k}" for k in range(1 if alone else n_actions)]
        if rough:
            actions = [f"{line} price:{draw.random():.2f}" for line in actions]
        shared = " ".join(context)
        text += [f"{line} {shared}" for line in actions] if repeated else [f"shared {shared}", *actions]
        text.append("")
    return ("\n".join(text) + "\n").encode()


def vector_choices(n: int, *, seed: int = 0) -> bytes:
    """Choices among two actions; context and actions have long vectors, and another one comes late."""
    draw = np.random.default_rng(seed)

    def vector(name: str) -> str:
        return f"|{name} " + " ".join(f":{number:.1f}" for number in draw.normal(size=50))

    text = []
    for i in range(n):
        value = {name: int(draw.integers(3)) for name in "ab"}
        logged = int(draw.integers(2))
        reward = int(draw.random() < (0.9 if BEST[value["a"], value["b"]] % 2 == logged else 0.1))
        vectors = [vector(name) for name in ("v", "w", "x")[: 2 + (i > n // 2)]]
        text.append(" ".join(["shared", *(f"|{name} {name}{value[name]}" for name in "ab"), *vectors]))
        for action in range(2):
            label = f"0:{-reward}:0.5 " if action == logged else ""
            text.append(f"{label}|z z{action} {vector('p')}")
        text.append("")
    return ("\n".join(text) + "\n").encode()


def slots(n: int, *, seed: int = 0) -> bytes:
    """Events of four actions, of which two slots take one each."""
    draw = np.random.default_rng(seed)
    text = []
    for _ in range(n):
        value = {name: int(draw.integers(3)) for name in "abc"}
        order = draw.permutation(4).tolist()
        text.append("ccb shared " + " ".join(f"|{name} {name}{value[name]}" for name in "abc"))
        text += [f"ccb action |z z{k}" for k in range(4)]
        for number in range(2):
            pays = BEST[value["a"], value["b"]] == order[number]
            reward = int(draw.random() < (0.9 if pays else 0.1))
            text.append(f"ccb slot {order[number]}:{-reward}:{1 / (4 - number):.4f} |s s{number}")
        text.append("")
    return ("\n".join(text) + "\n").encode()


def lines(
    n: int,
    *,
    noise: Sequence[float] = (0.1,),
    yes_or_no: bool = False,
    wild: bool = False,
    seed: int = 0,
) -> bytes:
    """Single lines whose label depends on a pair of namespaces, and on a number.

    Parameters
    ----------
    n : int
        How many lines.
    noise : sequence of float
        How much chance there is in the labels, for each part of the stream.
    yes_or_no : bool
        Labels are 1 and -1, and not any numbers.
    wild : bool
        Labels are far off at first and now and then, some lines have weights, initial predictions or no
        label, and one more namespace comes late.
    """
    draw = np.random.default_rng(seed)
    table = draw.normal(size=(4, 4))
    text = []
    for i in range(n):
        a, b, x = int(draw.integers(4)), int(draw.integers(4)), float(draw.normal())
        label = float(table[a, b] + 0.3 * x + noise[i * len(noise) // n] * draw.normal())
        if yes_or_no:
            label = 1.0 if draw.random() < 1 / (1 + np.exp(-4 * label)) else -1.0
        head = f"{label:.4f}"
        if wild:
            label *= 30 if i < 60 or i % 911 == 0 else 1
            head = "" if i % 11 == 0 else f"{label:.4f} {1 + i % 3} {0.1 * (i % 2)}"
        late = f" |d d{b}" if wild and i > n // 2 else ""
        text.append(f"{head} |a a{a} |b b{b} |c c{a ^ b} x:{x:.3f}{late}\n")
    return "".join(text).encode()


def wide_choices(n: int, *, seed: int = 0) -> bytes:
    """Choices among two actions, of more crossings than a search begins with."""
    draw = np.random.default_rng(seed)
    text = []
    for _ in range(n):
        bits, own = draw.integers(0, 2, 70), draw.integers(0, 2, (2, 4))
        logged = int(draw.integers(2))
        pays = int(bits[69] == own[logged, 3])
        text.append("shared " + " ".join(f"|c{k:02} v{bit}" for k, bit in enumerate(bits)) + "\n")
        for action in range(2):
            label = f"0:{-pays}:0.5 " if action == logged else ""
            text.append(label + " ".join(f"|a{k} w{bit}" for k, bit in enumerate(own[action])) + "\n")
        text.append("\n")
    return "".join(text).encode()


def wide_lines(n: int, *, seed: int = 0) -> bytes:
    """Single lines of more namespaces than can be crossed and screened at once."""
    draw = np.random.default_rng(seed)
    text = []
    for _ in range(n):
        bits = draw.integers(0, 2, 70)
        label = float((bits[0] ^ bits[1]) + 0.1 * draw.normal())
        text.append(f"{label:.4f} " + " ".join(f"|n{k:02} v{bit}" for k, bit in enumerate(bits)) + "\n")
    return "".join(text).encode()
