"""Layout: how the namespaces of a stream become groups of features, and which products of them exist.

A group has a small number, its *key*; every name has a separate key. The namespaces of a block are added
before the block is learnt. This is too early for some events, but a product with an absent namespace has no
features, so no result changes.
"""

from __future__ import annotations

import logging
from collections import Counter
from copy import copy
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from onlineauto.features.block import DEFAULT
from onlineauto.features.grams import Grams
from onlineauto.features.interactions import (
    WILDCARD,
    Term,
    compile_products,
    count_products,
    parse_full_names,
    parse_letters,
)
from onlineauto.features.lags import LaggedLabels
from onlineauto.features.options import FeatureOptions, first_letter, letters_of
from onlineauto.features.records import FACTOR, GROUP, PLACE, Interactions, Scratch
from onlineauto.features.records import Layout as KernelLayout
from onlineauto.features.slots import INDEX_NAME, SLOT_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Block, Namespaces
    from onlineauto.state.stored import Stored

_LOG = logging.getLogger("onlineauto")

BINS = b" bins"
"""End of the names of namespaces that have the bins of a number; no namespace of VW's text ends like this."""

MAX_PRODUCTS = 200_000
"""Maximum number of products; beyond it, wildcards match no further namespaces."""


def most_groups(spans: int) -> int:
    """Return the maximum number of groups of an event whose lines have `spans` spans."""
    return 2 * spans + 8


def most_spans(groups: int) -> int:
    """Return the maximum number of spans of an event's lines that fit into `groups` groups."""
    return (groups - 8) // 2


class Keys(NamedTuple):
    """Group keys of the namespaces of a block."""

    key: NDArray[np.int32]  # key of each namespace
    n: int  # number of keys in use
    constant: int
    default: int  # key of the namespace without a name, -1 if the block has none
    slot: int  # key of a slot's features without a namespace
    slot_index: int  # key of the feature that identifies a slot


class StreamLayout:
    """Groups and products for the blocks of one stream.

    A search may choose interactions of the orders `searched` (by `cross`), instead of those of the options,
    and with `singled` also single namespaces, as products of one factor. Events with `slots` have two more
    namespaces (see `onlineauto.features.slots`), and every product and every namespace is also crossed with
    the feature that identifies the slot.
    """

    bytewise: ClassVar[bool] = False  # Whether letters of options are bytes, as in Vowpal Wabbit.

    def __init__(
        self,
        options: FeatureOptions,
        *,
        searched: Sequence[int] = (),
        singled: bool = False,
        slots: bool = False,
    ) -> None:
        self._options = options
        self._searched, self._singled = bool(searched), singled
        self._crossed: list[tuple[bytes, ...]] = []
        self._held = np.zeros((0, 1), bool)
        self._n_slots = 1
        letters = [*options.quadratic, *options.cubic, *options.interactions]
        full_names = options.experimental_full_name_interactions
        if searched:
            letters, full_names = [":" * order for order in searched], ()
        self._products = [parse_letters(text, bytewise=self.bytewise) for text in letters]
        self._products += map(parse_full_names, full_names)
        self.slots = slots
        self._own = (SLOT_NAME, INDEX_NAME) if slots else ()
        if slots and not searched:
            index = Term(INDEX_NAME, full=True)
            self._products += [(*terms, index) for terms in (*self._products, (WILDCARD,))]
        self.grams = Grams(options, bytewise=self.bytewise)
        self.lags = LaggedLabels(options)
        self._ignore = self._letters_of(options.ignore)
        self._ignore_linear = self._letters_of(options.ignore_linear)
        self._keep = self._letters_of(options.keep) if options.keep else None
        self._known: set[bytes] = set(self._own[:1])
        self._letters: Counter[bytes] = Counter()
        self._left_out: set[bytes] = set()
        self._warns = True
        self._names: Namespaces | None = None
        self._n_names = 0
        self._number = self._make_keys(())
        self._seen = np.zeros(0, bool)
        self._all_seen = False
        self.repeats_apart: Counter[int] = Counter()  # `repeats` of the products that `compile` compiled last
        self.version = 0  # changes with the group keys and the namespaces that can be crossed
        self.kernel_layout = self._make_layout([], [])
        self._make_interactions()

    def _letters_of(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        return tuple(letter for text in texts for letter in letters_of(text, bytewise=self.bytewise))

    @property
    def n_keys(self) -> int:
        """Number of group keys in use."""
        return len(self.kernel_layout.ignore)

    @property
    def n_namespaces(self) -> int:
        """Number of namespaces that wildcards match or leave out."""
        return len(self._known) + len(self._left_out)

    def update(self, block: Block) -> None:
        """Add the namespaces of a block."""
        names = block.namespaces
        if self.knows(names):
            return
        renumbered = self._names is not names
        if renumbered or self._n_names != len(names):
            self._seen = np.zeros(0, bool) if self._names is not names else self._seen
            hashes = names.hashes[:]  # copied first: a reading thread may add names, then their hashes
            known = names.names[: len(hashes)]
            self._names, self._n_names = names, len(known)
            self._seen = np.concatenate([self._seen, np.zeros(len(known) - len(self._seen), bool)])
            self.kernel_layout = self._make_layout(known, hashes)
            self.version += 1
            self._number = self._make_keys(known)
        before = int(np.count_nonzero(self._seen))
        self._seen[block.span_namespace] = True
        self._all_seen = bool(self._seen.all())
        if int(np.count_nonzero(self._seen)) == before and not renumbered:
            return
        self.version += 1
        numbers, first = np.unique(block.span_namespace, return_index=True)
        for i in numbers[np.argsort(first)]:  # in order of first feature, independent of the size of blocks
            self._add(self._identity_of(names.names[i]))
        self._make_interactions()

    def with_grams(self, block: Block) -> Block:
        """Return the block of the last `update` with its n-grams."""
        return self.grams.expand(block, self.kernel_layout.key) if self.grams else block

    def knows(self, names: Namespaces) -> bool:
        """Return whether events with the namespaces of the last block need no `update`."""
        return self._names is names and self._n_names == len(names) and self._all_seen

    def seen(self, names: Namespaces) -> NDArray[np.bool_] | None:
        """Return for each namespace whether it had features so far; None if one has no group key yet."""
        return self._seen if self._names is names and self._n_names == len(names) else None

    def view(self) -> StreamLayout:
        """Return a copy for predictions, which adds namespaces to the copy only, without warnings."""
        view = copy(self)
        vars(view).update(
            _known=set(self._known),
            _left_out=set(self._left_out),
            _letters=self._letters.copy(),
            _names=None,
            _warns=False,
            lags=self.lags.frozen(),
        )
        return view

    def n_beyond(self, other: StreamLayout) -> int:
        """Return the number of namespaces that this `view` of `other` has in addition."""
        return len(self._known) - len(other._known)

    def leaves_out_more_than(self, other: StreamLayout) -> bool:
        """Return whether wildcards leave out more namespaces in this `view` than in `other`."""
        return len(self._left_out) > len(other._left_out)

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`: the namespaces that wildcards match, those they leave out, lags."""
        return {"known": sorted(self._known), "left_out": sorted(self._left_out)} | self.lags.state()

    def restore(self, stored: Stored) -> None:
        """Restore the state of a layout of the same options."""
        self._known, self._left_out = set(self._own[:1]), set()
        self._letters = Counter()
        for name in stored["known"].name_list():
            self._add(self._identity_of(name))
        self._left_out.update(set(stored["left_out"].name_list()) - self._known)
        self.lags.restore(stored)
        self.version += 1
        self._make_interactions()

    def crossable(self) -> NDArray[np.bool_]:
        """Return for each group key whether its namespace can be crossed: bool[n_keys]."""
        names = self._names.names[: self._n_names] if self._names is not None else []
        return np.array([False, *(name in self._known for name in (*self._own, *names))])

    def name_of(self, key: int) -> bytes:
        """Return the name of the namespace with a group key, as in `keys`."""
        assert self._names is not None
        assert key > 0, "key 0 belongs to the constant, and to names that the block does not have"
        own = len(self._own)
        return self._own[key - 1] if key <= own else self._names.names[key - 1 - own]

    def keys(self) -> dict[bytes, int]:
        """Return the group keys of the namespaces of the current block, by name."""
        return dict(self._number)

    def cross(self, interactions: Sequence[Sequence[tuple[bytes, ...]]]) -> None:
        """Give each live config its own interactions."""
        self._crossed = sorted(dict.fromkeys(chain.from_iterable(interactions)))
        self._crossed.sort(key=len)
        self._held = np.empty((len(self._crossed), len(interactions)), bool)
        for slot, products in enumerate(interactions):
            existing = set(products)
            self._held[:, slot] = [product in existing for product in self._crossed]
        self._n_slots = len(interactions)
        self._make_interactions()

    @property
    def highest_order(self) -> int:
        """Order of the longest product, including those that `compile` compiled."""
        return max((*self.repeats, *self.repeats_apart), default=1)

    @property
    def max_crossed(self) -> int:
        """Number of crossed features that an event may have."""
        return self._options.max_crossed

    def most_features(self, own: int) -> int:
        """Return an upper bound on the features of an action with `own` linear features, products included.

        All different products of one order together have at most as many features as one product of all
        namespaces.
        """
        repeats = (*self.repeats.items(), *self.repeats_apart.items())
        products: int = sum(times * own**order for order, times in repeats)
        return own + products

    def scratch(self, spans: int, lines: int = 0) -> Scratch:
        """Return working records for events of up to `spans` spans and, if they have slots, `lines` lines."""
        places = np.zeros(self.n_keys, PLACE)
        places["group"] = -1
        return Scratch(
            groups=np.zeros(most_groups(spans), GROUP),
            places=places,
            factors=np.zeros(self.highest_order, FACTOR),
            lines=np.zeros(lines, np.int64),
            taken=np.zeros(lines, bool),
            listed=np.zeros(lines, bool),
            left=np.zeros(self.n_keys, np.int32),
            n_left=np.zeros(1, np.int64),
        )

    def _make_keys(self, known: Sequence[bytes]) -> dict[bytes, int]:
        """Return the group keys of namespaces by name: slots' namespaces first, then by first appearance."""
        return {name: i + 1 for i, name in enumerate((*self._own, *known))}

    def _identity_of(self, name: bytes) -> bytes:
        """Return the name that identifies a namespace: its full name."""
        return name

    def _interacts(self, name: bytes) -> bool:
        """Return whether wildcards match a namespace."""
        return not self._is_ignored(name)

    def _has_capacity(self) -> bool:
        """Return whether wildcards may match all namespaces counted so far."""
        return count_products(self._products, self._letters) <= MAX_PRODUCTS

    def _is_ignored(self, name: bytes) -> bool:
        """Return whether a namespace is dropped by ``--ignore`` or ``--keep``."""
        return name.startswith(self._ignore) if self._keep is None else not name.startswith(self._keep)

    def _add(self, name: bytes) -> None:
        """Let wildcards and letters match `name`, too, unless there would be too many products."""
        if name in self._known or name in self._left_out or not self._interacts(name):
            return
        letter = first_letter(name)
        self._letters[letter] += 1
        if self._has_capacity():
            self._known.add(name)
            return
        self._letters[letter] -= 1
        if not self._left_out and self._warns:
            text = name.decode("utf-8", "replace")
            _LOG.warning(
                "more than %d interactions: some leave out namespace %r and others", MAX_PRODUCTS, text
            )
        self._left_out.add(name)

    def _make_layout(self, names: Sequence[bytes], hashes: Sequence[int]) -> KernelLayout:
        """Return the kernels' layout for namespaces with these names and hashes."""
        ignored = [self._is_ignored(name) for name in names]
        linear = [self._singled or name.startswith(self._ignore_linear) for name in names]
        keys = self._keys_of(names)
        ignore, ignore_linear = np.zeros(keys.n, bool), np.zeros(keys.n, bool)
        bins = np.zeros(keys.n, bool)
        ignore[keys.key] = ignored
        ignore_linear[keys.key] = linear
        bins[keys.key] = [name.endswith(BINS) for name in names]
        if self._own:
            ignore_linear[[keys.slot, keys.slot_index]] = self._singled, False
        return KernelLayout(
            key=keys.key,
            seed=np.array(hashes, np.uint32),
            ignore=ignore,
            ignore_linear=ignore_linear,
            bins=bins,
            constant_key=-1 if self._options.noconstant else keys.constant,
            default_key=keys.default if self._own else -1,
            slot_key=keys.slot,
            index_key=keys.slot_index,
            singled=self._singled,
        )

    def _keys_of(self, names: Sequence[bytes]) -> Keys:
        """Return a key for each namespace: 0 for the constant, then keys of slots, then all others."""
        first = 1 + len(self._own)
        return Keys(
            key=np.arange(first, first + len(names), dtype=np.int32),
            n=first + len(names),
            constant=0,
            default=first + names.index(DEFAULT) if DEFAULT in names else -1,
            slot=1,
            slot_index=2,
        )

    def compile(self, products: Sequence[tuple[bytes, ...]]) -> tuple[Interactions, list[bool]]:
        """Return products of names, compiled for one live config, and for each whether it is present."""
        present = self._present(products) or [True] * len(products)
        factors = self._factors(list(compress(products, present)))
        self.repeats_apart = _repeats(factors)
        return Interactions(
            start=np.cumsum([0, *map(len, factors)]).astype(np.int64),
            factor=np.array(list(chain.from_iterable(factors)), np.int32),
            permutations=self._options.permutations,
            n_slots=1,
            holders=np.ones((1 + len(factors), 4), bool),
        ), present

    def _present(self, products: Sequence[tuple[bytes, ...]]) -> list[bool] | None:
        """Return for each product whether all its namespaces have group keys; None if all products do."""
        number = self._number
        if number.keys() >= set(chain.from_iterable(products)):
            return None
        return [all(name in number for name in product) for product in products]

    def _factors(self, products: Sequence[tuple[bytes, ...]]) -> list[tuple[int, ...]]:
        """Return the group keys of the factors of products."""
        number = self._number.__getitem__
        return [tuple(map(number, product)) for product in products]

    def _make_interactions(self) -> None:
        """Compile the products of the options, or the products set by `cross` if a search chooses them."""
        keep_duplicates = self._options.leave_duplicate_interactions
        products, holders = self._crossed, self._held
        if not self._searched:
            products = compile_products(self._products, self._known, keep_duplicates=keep_duplicates)
            holders = np.ones((len(products), 1), bool)
        self.repeats: Counter[int] = Counter()  # maximum number of occurrences of a product, by order
        # In exact mode, a second walk over the features of an event has other products, `again`.
        self.interactions = self.again = self._assemble(products, holders)

    def _assemble(self, products: list[tuple[bytes, ...]], used_by: NDArray[np.bool_]) -> Interactions:
        """Return the Interactions of products of names and the live configs that use each; count repeats."""
        present = self._present(products)
        if present is not None:
            products, used_by = list(compress(products, present)), used_by[present]
        factors = self._factors(products)
        self.repeats |= _repeats(factors)
        holders = np.zeros((1 + len(factors), self._n_slots + 3), bool)  # kernels read four at a time
        holders[:, : self._n_slots] = True
        holders[1:, : self._n_slots] = used_by
        return Interactions(
            start=np.cumsum([0, *map(len, factors)]).astype(np.int64),
            factor=np.array(list(chain.from_iterable(factors)), np.int32),
            permutations=self._options.permutations,
            n_slots=self._n_slots,
            holders=holders,
        )


def _repeats(factors: Sequence[tuple[int, ...]]) -> Counter[int]:
    """Return the maximum number of occurrences of one product, by order."""
    if len(set(factors)) == len(factors):
        return Counter(set(map(len, factors)))
    most: Counter[int] = Counter()
    for product, times in Counter(factors).items():
        most[len(product)] = max(most[len(product)], times)
    return most
