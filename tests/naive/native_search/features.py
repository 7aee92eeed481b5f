"""The features of an example: its linear features, and their products for the interactions of a config.

A namespace of both an action's line and the shared line is one group: the action's features first. The
product of namespaces has a feature for each choice of one feature from each; a namespace crossed with itself
has each pair once. The hash of a product chains those of its factors (FNV-1), and its value is their product.
The low bits of a hash are the cell of its weight.

Sums of float32 depend on the order of their terms, and there are two orders. Learning visits all features of
one action. Scoring adds terms that all actions share once: the shared features, then products of shared
namespaces alone, the last one first. Each action continues from this sum. In each part, products of two or
three namespaces of one feature each are added last.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.native_search.events import TOLD

if TYPE_CHECKING:
    from tests.naive.native_search.configs import Interaction
    from tests.naive.native_search.events import Event, Feature, Groups
    from tests.naive.native_search.options import Options

F = np.float32
FNV = 16777619
CONSTANT = b""
CONSTANT_FEATURE = (11650396, F(1))


def cross(names: Interaction, groups: Groups) -> list[Feature]:
    """Return the features of an interaction; the last factor varies fastest."""
    factors = [groups.get(name, []) for name in names]
    crossed = []
    for places in product(*(range(len(factor)) for factor in factors)):
        hash_, value = 0, F(1)
        counts_once = True
        for k, place in enumerate(places):
            if k > 0 and names[k] == names[k - 1] and place < places[k - 1]:
                counts_once = False
            next_hash, x = factors[k][place]
            hash_, value = FNV * hash_ ^ next_hash, value * x
        if counts_once:
            crossed.append((hash_, value))
    return crossed


class Examples:
    """The examples of an event, one for each action; products are cached for all configs."""

    def __init__(self, event: Event, options: Options) -> None:
        self.event = event
        self.mask = 2**options.bit_precision - 1
        self.constant: Groups = {} if options.noconstant else {CONSTANT: [CONSTANT_FEATURE]}
        self.only_products = "namespaces" in options.searched
        """Where namespaces are searched, each is a product of one factor, which a config has or has not."""
        self.groups = [self._merged(own) for own in event.actions]
        self._known: dict[tuple[Interaction, int], list[Feature]] = {}

    def narrow(
        self, live: Sequence[Sequence[Interaction]], screened: Sequence[Interaction], most: int
    ) -> tuple[list[list[Interaction]], bool]:
        """Return the interactions that live configs may use, the champion's first; and whether screening may.

        If all live configs together would make more crossed features than there may be, the widest are left
        out: first of those of the champion, then of the others as far as these leave something.
        """
        actions = range(len(self.groups))
        sizes = {
            names: sum(len(self.crossed(names, action)) for action in actions)
            for interactions in live
            for names in interactions
        }
        if sum(sizes.values()) <= most:
            widest = max(sum(len(self.crossed(names, action)) for names in screened) for action in actions)
            return [list(interactions) for interactions in live], widest <= most
        kept: set[Interaction] = set()
        total = 0
        for group in (set(live[0]), sizes.keys() - set(live[0])):
            for names in sorted(group, key=lambda names: (sizes[names], len(names), names)):
                if total + sizes[names] > most:
                    break
                total += sizes[names]
                kept.add(names)
        return [[names for names in interactions if names in kept] for interactions in live], False

    def _merged(self, own: Groups) -> Groups:
        shared = self.event.shared or {}
        groups = {name: features + shared.get(name, []) for name, features in own.items()}
        return groups | self.constant | {name: shared[name] for name in shared if name not in own}

    def _cells(self, features: Sequence[Feature]) -> list[Feature]:
        return [(hash_ & self.mask, x) for hash_, x in features]

    def _plain(self, groups: Groups) -> list[Feature]:
        """Return the features that are used as they are."""
        used = [
            features
            for name, features in groups.items()
            if name in (CONSTANT, TOLD) or not self.only_products
        ]
        return self._cells(list(chain.from_iterable(used)))

    def crossed(self, names: Interaction, action: int) -> list[Feature]:
        """Cells and values of an interaction."""
        if (names, action) not in self._known:
            self._known[names, action] = self._cells(cross(names, self.groups[action]))
        return self._known[names, action]

    def all(self, interactions: Sequence[Interaction], action: int) -> list[Feature]:
        """Everything that a config with these interactions learns of an action, in the order of learning."""
        crossed = [self.crossed(names, action) for names in interactions]
        return self._plain(self.groups[action]) + list(chain.from_iterable(crossed))

    def scored(self, interactions: Sequence[Interaction], action: int) -> list[Feature]:
        """Return the features that `all` returns, in the order of scoring."""
        groups = self.groups[action]
        return self._plain(groups) + self._in_order(interactions, groups)

    def _in_order(self, interactions: Sequence[Interaction], groups: Groups) -> list[Feature]:
        """Products of groups in the order of scoring."""

        def is_last(names: Interaction) -> bool:
            return len(names) in (2, 3) and all(len(groups.get(name, [])) == 1 for name in names)

        ordered = sorted(interactions, key=is_last)
        return list(chain.from_iterable(self._cells(cross(names, groups)) for names in ordered))

    def shares(self, action: int) -> bool:
        """Return whether the score of this action has a part that is shared by all actions."""
        shared, own = self.event.shared, self.event.actions[action]
        return bool(shared) and not any(name in own for name in shared or ())

    def of_context(self, interactions: Sequence[Interaction]) -> list[Feature]:
        """Return the features that add the same to the score of every action with a shared part."""
        shared = self.event.shared or {}
        alone = [names for names in interactions if all(name in shared for name in names)]
        return self._plain(shared) + self._in_order(alone[::-1], shared)

    def of_action(self, interactions: Sequence[Interaction], action: int) -> list[Feature]:
        """Return the features that an action adds to the shared part."""
        shared = self.event.shared or {}
        own = self.event.actions[action] | self.constant
        rest = [names for names in interactions if not all(name in shared for name in names)]
        return self._plain(own) + self._in_order(rest, self.groups[action])
