"""Small streams in which an ensemble of the live configs and its members does better than any config."""

from __future__ import annotations

import numpy as np

from onlineauto.engine.ensemble.class_ensemble import ClassEnsemble
from onlineauto.engine.ensemble.member import Sizes
from onlineauto.engine.ensemble.registry import DEFAULT, class_members_of
from onlineauto.workspace.options import REGISTRY


def make_class_ensemble(hash_bits: int, *, searched: bool = False) -> ClassEnsemble:
    """Return an ensemble of classes with all members."""
    sizes = Sizes(REGISTRY.from_keywords(), cells=1 << hash_bits)
    return ClassEnsemble(class_members_of(DEFAULT), sizes, searched=searched)


def odd(
    n: int,
    *,
    actions: int = 4,
    numbers: int = 0,
    words: int = 3,
    ids: int = 0,
    shuffled: bool = False,
    drift: float = 0.0,
    seed: int = 0,
) -> bytes:
    """Events of a few words, numbers and ids, where a number and a word tell which action pays.

    Numbers grow by `drift` from the first event to the last.
    """
    draw = np.random.default_rng(seed)
    text = []
    for at in range(n):
        x, word = draw.normal(size=max(numbers, 1)) + drift * at / n, int(draw.integers(words))
        context = [f"|w w{word}"]
        if ids:
            context.append(f"|i i{draw.integers(ids)}")
        if numbers:
            context.append("|n " + " ".join(f"x{k}:{x[k]:.3f}" for k in range(numbers)))
        text.append("shared " + " ".join(context))
        order = draw.permutation(actions) if shuffled else range(actions)
        shown = int(draw.integers(actions))
        for place, k in enumerate(order):
            reward = ((x[0] > 0) == (k % 2 == 0)) + 0.5 * (k % words == word) + 0.1 * draw.normal()
            label = f"0:{-reward:.4f}:{1 / actions:.6f} " if place == shown else ""
            text.append(f"{label}|a a{k}")
        text.append("")
    return ("\n".join(text) + "\n").encode()


def renewed(n: int) -> bytes:
    """Events of 6 ids each, of 400 at first, and of 20 others from the 200th event on: these replace some."""
    draw, text = np.random.default_rng(19), []
    for at in range(n):
        ids = draw.integers(400, size=6) if at < 200 else 400 + draw.integers(20, size=6)
        shown = int(draw.integers(3))
        reward = float(ids[0] % 3 == shown) + 0.1 * draw.normal()
        text.append("shared |i " + " ".join(f"i{id_}" for id_ in dict.fromkeys(ids.tolist())))
        label = f"0:{-reward:.4f}:{1 / 3:.6f} "
        text += [*(f"{label if k == shown else ''}|a a{k}" for k in range(3)), ""]
    return ("\n".join(text) + "\n").encode()


def embedded(n: int, *, numbers: int = 50, actions: int = 3) -> bytes:
    """Events of a long vector and a word; the vector tells which action pays."""
    draw = np.random.default_rng(19)
    spectrum = 0.9 ** np.arange(numbers)
    turned = np.linalg.qr(draw.normal(size=(numbers, numbers)))[0]
    text = []
    for at in range(n):
        z, word, shown = (
            draw.normal(size=numbers) * spectrum,
            int(draw.integers(3)),
            int(draw.integers(actions)),
        )
        vector = " ".join(f":{x:.4f}1" for x in turned @ z)
        text.append(f"shared |w w{word}" + (f" |v {vector}" if at % 9 else ""))
        reward = float(z[shown] > 0) + 0.1 * (shown == word)
        label = f"0:{-reward:.4f}:{1 / actions:.6f} "
        text += [*(f"{label if k == shown else ''}|a a{k}" for k in range(actions)), ""]
    return ("\n".join(text) + "\n").encode()


def in_turns(text: bytes) -> bytes:
    """Events that offer, one after the other, five times as many actions: each has one more word."""
    events = text.split(b"\n\n")
    return b"\n\n".join(event.replace(b"|a ", b"|a turn%d " % (at % 5)) for at, event in enumerate(events))


def others(n: int, *, actions: int) -> bytes:
    """Events like those of `odd`, of actions that it does not have."""
    return odd(n, actions=actions, seed=1).replace(b"|a a", b"|a c")


def bent(n: int) -> bytes:
    """Single lines whose label is no sum of what their features say."""
    draw = np.random.default_rng(5)
    found = ((draw.normal(), draw.integers(3), draw.normal()) for _ in range(n))
    return "".join(f"{abs(x) + 0.1 * noise:.4f} |n x:{x:.4f} |w w{w}\n" for x, w, noise in found).encode()


def numbered(n: int, actions: int) -> bytes:
    """Events of ``--cb_explore``: one line each."""
    draw = np.random.default_rng(3)
    text = []
    for _ in range(n):
        x, word, shown = draw.normal(), int(draw.integers(3)), int(draw.integers(actions))
        reward = ((x > 0) == (shown % 2 == 0)) + 0.5 * (shown % 3 == word)
        text.append(f"{shown + 1}:{-reward:.3f}:{1 / actions:.6f} |w w{word} |n x:{x:.3f}\n")
    return "".join(text).encode()


def clicked(n: int, actions: int = 4) -> bytes:
    """Events of which one in about twenty pays; a word says little about which."""
    draw = np.random.default_rng(11)
    text = []
    for _ in range(n):
        word, shown = int(draw.integers(3)), int(draw.integers(actions))
        paid = draw.random() < (0.08 if word == shown else 0.04)
        text.append(f"shared |w w{word}")
        text += [
            (f"0:{-int(paid)}:{1 / actions} " if k == shown else "") + f"|a a{k}" for k in range(actions)
        ]
        text.append("")
    return ("\n".join(text) + "\n").encode()


def worded(n: int, *, words: int, actions: int = 3) -> bytes:
    """Events of many words each, the first of which tells which action pays."""
    draw = np.random.default_rng(7)
    text = []
    for _ in range(n):
        first, shown = int(draw.integers(actions)), int(draw.integers(actions))
        text.append(f"shared |w f{first} " + " ".join(f"w{k}" for k in range(1, words)))
        label = f"0:{-(shown == first)}:{1 / actions:.6f} "
        text += [*(f"{label if k == shown else ''}|a a{k}" for k in range(actions)), ""]
    return ("\n".join(text) + "\n").encode()


def repeated(n: int, *, times: int, words: int = 3, actions: int = 3) -> bytes:
    """Events of a word that is repeated so many times, and tells which action pays, among other words."""
    draw = np.random.default_rng(11)
    others = " ".join(f"g{k}" for k in range(words - 2))
    text = []
    for _ in range(n):
        first, shown = int(draw.integers(3)), int(draw.integers(actions))
        text.append(f"shared |w {' '.join([f'f{first}'] * times)} b{draw.integers(4)} {others}")
        label = f"0:{0.1 * draw.normal() - (shown % 3 == first):.3f}:{1 / actions:.6f} "
        text += [*(f"{label if k == shown else ''}|a a{k} a{k}" for k in range(actions)), ""]
    return ("\n".join(text) + "\n").encode()


def named(n: int, *, actions: int = 3, stems: int = 2) -> bytes:
    """Events of words with numbers in their names, which tell which action pays, and of other words.

    The first number has one digit or two; the names of actions have numbers too.
    """
    draw = np.random.default_rng(13)
    text = []
    for _ in range(n):
        x, shown = draw.integers(13, size=stems), int(draw.integers(actions))
        text.append(f"shared |w w{draw.integers(3)} x_y |n " + " ".join(f"{k}_{x[k]}" for k in range(stems)))
        reward = float(abs(x[0] - 6 * (shown % 3)) < 3) + 0.1 * draw.normal()
        label = f"0:{-reward:.4f}:{1 / actions:.6f} "
        text += [*(f"{label if k == shown else ''}|a i={k} a{k % 5}" for k in range(actions)), ""]
    return ("\n".join(text) + "\n").encode()


def confounded(n: int, *, epsilon: float = 0.05) -> bytes:
    """Events whose policy takes action 2 in bad times, else action 0; no feature tells when times are bad."""
    draw, text = np.random.default_rng(17), []
    for _ in range(n):
        word, bad, shown = int(draw.integers(2)), bool(draw.random() < 0.5), int(draw.integers(3))
        favourite = 2 if bad else 0
        shown = shown if draw.random() < epsilon else favourite
        probability = epsilon / 3 + (1 - epsilon) * (shown == favourite)
        pays = draw.random() < ((0.9, 0.5, 0.1), (0.5, 0.9, 0.1))[word][shown]
        text.append(f"shared |w w{word} |g g{draw.integers(5)}")
        label = f"0:{-(0.4 if bad else 1.0) * pays:.2f}:{probability:.6f} "
        text += [*(f"{label if k == shown else ''}|a a{k}" for k in range(3)), ""]
    return ("\n".join(text) + "\n").encode()


def in_turn(n: int, period: int) -> tuple[bytes, list[float]]:
    """Single lines of hours, one after the other, and the mean of the label of each hour."""
    draw = np.random.default_rng(0)
    means = draw.normal(size=period).tolist()
    labels = (means[at % period] + 0.5 * draw.normal() for at in range(n))
    return "".join(f"{y:.4f} |h h{at % period}\n" for at, y in enumerate(labels)).encode(), means
