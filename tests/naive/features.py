"""From a line to the features of an example: dictionaries and lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.interactions import parse_full_names, parse_letters
from tests.naive.interactions import Feature, compiled, cross, sum_of_products

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.naive.blocks import Event, Line

F = np.float32
CONSTANT: Feature = (11650396, F(1))
CONSTANT_KEY = b""

Group = list[list[Feature]]
"""Parts of a group: the features of the action, then those of the shared line."""


@dataclass(frozen=True)
class Example:
    """Cells and values in the order in which they are summed."""

    features: list[Feature]
    n_own: int
    n_crossed: int
    squares: np.float32


def total(values: Iterable[np.float32]) -> np.float32:
    result = F(0)
    for value in values:
        result = result + value
    return result


def squares_of(group: Group) -> np.float32:
    return total(total(x * x for _, x in part) for part in group)


def flat(group: Group) -> list[Feature]:
    return [feature for part in group for feature in part]


@dataclass
class Featurizer:
    """Knows the namespaces seen so far, and turns lines into examples; options as on the command line."""

    cells: int
    exact: bool = True
    quadratic: Sequence[str] = ()
    cubic: Sequence[str] = ()
    interactions: Sequence[str] = ()
    full_names: Sequence[str] = ()
    ignore: tuple[bytes, ...] = ()
    keep: tuple[bytes, ...] | None = None
    ignore_linear: tuple[bytes, ...] = ()
    noconstant: bool = False
    permutations: bool = False
    leave_duplicates: bool = False
    seen: set[bytes] = field(default_factory=set)
    products: list[tuple[bytes, ...]] = field(default_factory=list)

    def see(self, event: Event) -> None:
        """Add the namespaces of an event, before any of its lines is used."""
        fresh = {name for line in event for name, features in line.spans if features} - self.seen
        if not fresh:
            return
        self.seen |= fresh
        texts = (*self.quadratic, *self.cubic, *self.interactions)
        letters = [parse_letters(text, bytewise=self.exact) for text in texts]
        full = [parse_full_names(text) for text in self.full_names]
        known = {self.key(name) for name in self.seen if self.is_wild(name)}
        self.products = compiled(letters + full, known, keep_duplicates=self.leave_duplicates)

    def key(self, name: bytes) -> bytes:
        return name[:1] if self.exact else name

    def is_ignored(self, name: bytes) -> bool:
        if self.keep is None:
            return any(name.startswith(letter) for letter in self.ignore)
        return not any(name.startswith(letter) for letter in self.keep)

    def is_wild(self, name: bytes) -> bool:
        reserved = self.exact and not (32 <= name[0] <= 126 or name[0] == 139)
        return not reserved and not self.is_ignored(name)

    def groups(self, line: Line) -> dict[bytes, list[Feature]]:
        groups: dict[bytes, list[Feature]] = {}
        for name, features in line.spans:
            if features and not self.is_ignored(name):
                groups.setdefault(self.key(name), []).extend((hash_, F(x)) for hash_, x in features)
        return groups

    def merged(
        self, own: dict[bytes, list[Feature]], shared: dict[bytes, list[Feature]]
    ) -> dict[bytes, Group]:
        """Return the groups of the action, the constant, then those of the shared line alone."""
        merged: dict[bytes, Group] = {key: [features] for key, features in own.items()}
        if not self.noconstant:
            merged[CONSTANT_KEY] = [[CONSTANT]]
        for key, features in shared.items():
            merged.setdefault(key, []).append(features)
        return merged

    def action(self, line: Line, shared: Line | None = None) -> Example:
        """Return the example of a separate line, or of an action line below a shared line."""
        own = self.groups(line)
        groups = self.merged(own, self.groups(shared) if shared else {})
        n_own = sum(map(len, own.values())) + (not self.noconstant)
        return self.example(groups, n_own)

    def numbered(self, line: Line, action: int, n_actions: int) -> Example:
        """Return an action of ``--cb N``, whose number is added to every hash, the constant included."""
        size = 1
        while size <= n_actions:
            size *= 2

        def number(features: list[Feature]) -> list[Feature]:
            return [(hash_ // size * size + action, x) for hash_, x in features]

        groups = {key: [number(flat(group))] for key, group in self.merged(self.groups(line), {}).items()}
        return self.example(groups, sum(len(flat(group)) for group in groups.values()))

    def example(self, groups: dict[bytes, Group], n_own: int) -> Example:
        mask = self.cells - 1
        linear = [
            (hash_ & mask, x)
            for key, group in groups.items()
            if key == CONSTANT_KEY or not any(key.startswith(letter) for letter in self.ignore_linear)
            for hash_, x in flat(group)
        ]
        crossed = []
        for names in self.products:
            factors = [flat(groups.get(name, [])) for name in names]
            repeats = [
                k > 0 and not self.permutations and names[k] == names[k - 1] for k in range(len(names))
            ]
            crossed += cross(factors, repeats, mask)
        return Example(linear + crossed, n_own, len(crossed), self.squares(groups))

    def squares(self, groups: dict[bytes, Group]) -> np.float32:
        """Return Σ x², from the sums of squares of the groups."""

        def of_group(name: bytes, order: int) -> np.float32:
            group = groups.get(name, [])
            if order == 1:
                return squares_of(group)
            return sum_of_products([x * x for _, x in flat(group)], order)

        linear = total(squares_of(group) for group in groups.values())
        return linear + total(self.product_of_runs(names, of_group) for names in self.products)

    def product_of_runs(self, names: tuple[bytes, ...], squares: Squares) -> np.float32:
        result = F(1)
        if self.permutations:
            runs = [(name, 1) for name in names]
        else:
            runs = [(name, len(list(same))) for name, same in groupby(names)]
        for name, order in runs:
            result = result * squares(name, order)
        return result


if TYPE_CHECKING:
    from collections.abc import Callable

    Squares = Callable[[bytes, int], np.float32]
