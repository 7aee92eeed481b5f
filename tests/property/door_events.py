"""Random events with values of every kind and library, and their features by the one rule."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
import pandas
import pyarrow

from tests.naive.hashing import hash_name

NAMESPACES = ["user", "u", "page", "page2", "été", "имя", " ", "7", "a=b", 'q"\\', "x-y"]
NAMES = [
    "age",
    "tom",
    "f",
    "7",
    "007",
    "x_10",
    "über",
    "длина",
    "a.b",
    "c=d",
    "size",
    "longer than eight",
    "k'",
]
STRINGS = ["", "tom", "dark blue", "7", "a|b:c", "naïve", "ж", "tab\there", "NaN", "true", "1.5", "_x"]
BAD = [math.inf, -math.inf, 1e39, -3.5e38, 10**400, -(10**45)]
"""Numbers that no float32 has."""
MISSING = [
    None,
    math.nan,
    np.float32("nan"),
    pandas.NA,
    pandas.NaT,
    Decimal("NaN"),
    np.datetime64("NaT", "s"),
]


@dataclass(frozen=True)
class Leaf:
    """A value that is no list and no mapping: as Python has it, and as some library has it."""

    plain: Any
    dressed: Any


@dataclass
class DoorEvent:
    """An event: trees of `Leaf`, and its label."""

    context: dict[str, Any]
    actions: list[dict[str, Any]] | None = None
    chosen: int | None = None
    cost: Leaf | None = None
    probability: Leaf | None = None
    label: Leaf | None = None
    bad: bool = field(default=False)


def _number(random: Random) -> float | int:
    kind = random.randrange(8)
    if kind == 0:
        return random.choice([0, 1, -1, 2, 0.0, -0.0, 0.5, 1e-46, 1e-40, 2**24 + 1, 2**31, 2**63, 3e38])
    if kind < 3:
        return random.randrange(-1000, 1000)
    if kind < 6:
        return round(random.uniform(-100, 100), random.randrange(6))
    if kind == 6:
        return float(np.float32(random.gauss(0, 10.0 ** random.randrange(-6, 6))))
    return random.gauss(0, 10.0 ** random.randrange(-12, 12))


def _dressed_number(random: Random, value: float) -> Any:
    kinds: list[Any] = [lambda x: x, np.array, Decimal, Fraction, pyarrow.scalar]
    if isinstance(value, float):
        kinds += [np.float64, np.longdouble]
        if float(np.float32(value)) == value:
            kinds.append(np.float32)
    elif abs(value) < 2**62:
        kinds += [np.int64, float] if abs(value) < 2**53 else [np.int64]
    kind = random.choice(kinds)
    if kind is pyarrow.scalar and isinstance(value, int) and abs(value) >= 2**63:
        return value
    return kind(value)


def drawn_leaf(random: Random) -> Leaf:
    """Draw a value."""
    kind = random.randrange(12)
    if kind < 6:
        value = _number(random)
        return Leaf(value, _dressed_number(random, value) if random.random() < 0.4 else value)
    if kind < 9:
        text = random.choice(STRINGS)
        return Leaf(text, random.choice([str, str, np.str_, pyarrow.scalar])(text))
    if kind < 11:
        truth = random.random() < 0.5
        return Leaf(truth, random.choice([bool, np.bool_, np.array, pyarrow.scalar])(truth))
    return Leaf(None, random.choice(MISSING))


def _value(random: Random, depth: int, wide: bool) -> Any:
    kind = random.random()
    if depth > 2 or kind < 0.85 or not wide:
        return drawn_leaf(random)
    if kind < 0.93:
        return [drawn_leaf(random) for _ in range(random.randrange(4))]
    return _mapping(random, depth + 1, wide)


def _mapping(random: Random, depth: int, wide: bool) -> dict[str, Any]:
    return {random.choice(NAMES): _value(random, depth, wide) for _ in range(random.randrange(4))}


def _features(random: Random, wide: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for namespace in random.sample(NAMESPACES, random.randrange(4)):
        found[namespace] = _value(random, 0, wide) if random.random() < 0.3 else _mapping(random, 0, wide)
    return found


def _spoil(random: Random, event: DoorEvent) -> None:
    """Put a value that no reader can take somewhere."""
    line = random.choice([event.context, *(event.actions or [])])
    value = random.choice(BAD)
    line.setdefault("spoilt", {})["f"] = Leaf(value, value)
    event.bad = True


def drawn_event(random: Random, *, actions: bool) -> DoorEvent:
    """Draw an event with or without actions."""
    wide = random.random() < 0.5
    event = DoorEvent(_features(random, wide))
    if not actions:
        if random.random() < 0.9:
            value = random.choice([0, 1, -1, 2.5, 0.125])
            missing = random.random() < 0.1
            event.label = Leaf(None, math.nan) if missing else Leaf(value, _dressed_number(random, value))
    else:
        event.actions = [_features(random, wide) for _ in range(random.randrange(1, 4))]
        if random.random() < 0.8:
            event.chosen = random.randrange(len(event.actions))
            cost, probability = random.choice([0, -1, 1, 0.5, -2.25]), random.choice([1, 0.5, 0.25, 0.1])
            missing = random.random() < 0.1
            event.cost = Leaf(None, math.nan) if missing else Leaf(cost, _dressed_number(random, cost))
            event.probability = Leaf(probability, _dressed_number(random, probability))
    if random.random() < 0.03:
        _spoil(random, event)
    return event


def dressed(tree: Any) -> Any:
    """Return the tree with each value as some library has it."""
    if isinstance(tree, dict):
        return {name: dressed(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [dressed(value) for value in tree]
    return tree.dressed


def plain(tree: Any) -> Any:
    """Return the tree with each value as Python has it."""
    if isinstance(tree, dict):
        return {name: plain(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    return tree.plain


def canonical(features: dict[str, Any], *, json: bool = False) -> list[tuple[str, str, float]]:
    """Return the features by the rule: namespace, name and value. JSON has its own names for strings."""
    found: list[tuple[str, str, float]] = []

    def leaf(namespace: str, name: str, value: Any) -> None:
        if isinstance(value, str):
            found.append((namespace, name + (_replaced(value) if json else f"={value}"), 1.0))
        elif value is not None and (number := float(np.float32(float(value)))):
            found.append((namespace, name, number))

    def listed(namespace: str, values: list[Any]) -> None:
        for index, each in enumerate(values):
            if isinstance(each.plain, str):
                found.append((namespace, _replaced(each.plain) if json else each.plain, 1.0))
            else:
                leaf(namespace, str(index), each.plain)

    def tree(namespace: str, value: Any) -> None:
        if isinstance(value, list):
            listed(namespace, value)
        elif isinstance(value, dict):
            for name, each in value.items():
                if isinstance(each, Leaf):
                    leaf(namespace, name, each.plain)
                else:
                    tree(name, each)
        else:
            leaf(namespace, namespace, value.plain)

    for namespace, value in features.items():
        tree(namespace, value)
    return found


def _replaced(text: str) -> str:
    return text.translate(str.maketrans(" \t|:", "____"))


def hashes_of(features: list[tuple[str, str, float]]) -> list[tuple[bytes, int, float]]:
    """Return the features as a Block has them, in ascending order."""
    seeds = {name: 0 if name == " " else _hash(name, 0) for name, _, _ in features}
    return sorted(
        (namespace.encode(), _hash(name, seeds[namespace]), value) for namespace, name, value in features
    )


@lru_cache(maxsize=1 << 16)
def _hash(name: str, seed: int) -> int:
    return hash_name(name.encode(), seed)
