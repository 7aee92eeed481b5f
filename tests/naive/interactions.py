"""Products of namespaces the slow and obvious way: list every tuple there is, keep those that are meant."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, product
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.interactions import WILDCARD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from onlineauto.features.interactions import Product, Term

    T = TypeVar("T")

__all__ = ["compiled", "compiled_extents", "cross", "cross_extents", "extents", "sum_of_products"]

Feature = tuple[int, np.float32]
Extent = tuple[bytes, list[Feature]]

FNV = 16777619


# -- which products ------------------------------------------------------------------------------------


def _tidy(product_: tuple[T, ...], key: Callable[[T], Any] | None) -> tuple[T, ...]:
    """Sorted, if a name comes more than once and is not alone; otherwise as it is."""
    counts = Counter(product_)
    repeats = len(counts) > 1 and max(counts.values()) > 1
    return tuple(sorted(product_, key=key)) if repeats else product_  # type: ignore[type-var,arg-type]


def _without_duplicates(
    products: Iterable[tuple[T, ...]], *, keep: bool, key: Callable[[T], Any] | None = None
) -> list[tuple[T, ...]]:
    kept: list[tuple[T, ...]] = []
    for each in products:
        if keep or all(Counter(each) != Counter(other) for other in kept):
            kept.append(_tidy(each, key))
    return kept


def _meant_by(term: Term, name: bytes, names: Sequence[bytes]) -> bool:
    if term == WILDCARD:
        return name in names
    if term.full or not any(each.startswith(term.name) for each in names):
        return name == term.name
    return name in names and name.startswith(term.name)


def _goes_one_way(chosen: Sequence[Any], *, up: bool) -> bool:
    return list(chosen) == sorted(chosen, reverse=not up)


def _written(term: Term) -> tuple[bytes, bool]:
    return term.name or b":", term.full


def compiled(
    products: Sequence[Product], names: Iterable[bytes], *, keep_duplicates: bool
) -> list[tuple[bytes, ...]]:
    """What `onlineauto.features.interactions.compile_products` is meant to list."""
    known = sorted(names)
    pool = sorted({*known, *(term.name for terms in products for term in terms if term != WILDCARD)})
    as_written = sorted(products, key=lambda terms: (len(terms), [_written(term)[0] for term in terms]))
    distinct = _without_duplicates(as_written, keep=keep_duplicates, key=_written)
    listed = []
    for terms in distinct:
        wild = [k for k, term in enumerate(terms) if term == WILDCARD]
        fitting = [
            each
            for each in product(pool, repeat=len(terms))
            if all(_meant_by(term, name, known) for term, name in zip(terms, each, strict=True))
            and (keep_duplicates or _goes_one_way([each[k] for k in wild], up=len(wild) == 2))
        ]
        listed += fitting
    if any(WILDCARD in terms for terms in distinct):
        listed.sort(key=lambda each: (len(each), each))
    return _without_duplicates(listed, keep=keep_duplicates)


def compiled_extents(
    products: Sequence[Product], hashes: dict[bytes, int], *, keep_duplicates: bool
) -> list[tuple[bytes, ...]]:
    """What `onlineauto.features.extents.compile_extents` is meant to list, as names.

    Names are in order of (first byte, hash); a wildcard stands at (58, 58) among them.
    """

    def rank(name: bytes) -> tuple[int, int]:
        return name[0], hashes[name]

    def term_rank(term: Term) -> tuple[int, int]:
        return (58, 58) if term == WILDCARD else rank(term.name)

    def reserved(hash_: int) -> bool:
        return not (hash_ == 0 or hash_ > 254 or 32 <= hash_ <= 126 or hash_ == 139)

    wild = sorted((name for name in hashes if not reserved(hashes[name])), key=rank)
    possible = [terms for terms in products if all(t == WILDCARD or t.name in hashes for t in terms)]
    ordered = sorted(
        {tuple(sorted(terms, key=term_rank)) for terms in possible},
        key=lambda terms: [term_rank(term) for term in terms],
    )
    listed = []
    for terms in ordered:
        places = [k for k, term in enumerate(terms) if term == WILDCARD]
        for filling in product(wild, repeat=len(places)):
            if keep_duplicates or _goes_one_way([rank(name) for name in filling], up=False):
                names = [term.name for term in terms]
                for k, name in zip(places, filling, strict=True):
                    names[k] = name
                listed.append((terms, filling, tuple(names)))
    # Fillings stand in ascending order of the reversed tuple: the last wildcard changes slowest.
    if not keep_duplicates:
        listed.sort(key=lambda each: (ordered.index(each[0]), [rank(name) for name in each[1][::-1]]))
    names_only = [names for _, _, names in listed]
    if any(WILDCARD in terms for terms in ordered):
        return _without_duplicates(names_only, keep=keep_duplicates, key=rank)
    return names_only


# -- what a product adds -------------------------------------------------------------------------------


def _chain(hashes: Sequence[int], mask: int) -> int:
    state = 0
    for hash_ in hashes[:-1]:
        state = FNV * (state ^ hash_) % 2**64
    return (state ^ hashes[-1]) & mask


def cross(factors: Sequence[list[Feature]], repeats: Sequence[bool], mask: int) -> list[Feature]:
    """Every choice of one feature from each factor; not before the last one's place where it `repeats`."""
    crossed = []
    for places in product(*(range(len(factor)) for factor in factors)):
        if any(again and places[k] < places[k - 1] for k, again in enumerate(repeats)):
            continue
        chosen = [factor[place] for factor, place in zip(factors, places, strict=True)]
        value = np.float32(1)
        for _, x in chosen:
            value = value * x
        crossed.append((_chain([hash_ for hash_, _ in chosen], mask), value))
    return crossed


def sum_of_products(squares: Sequence[np.float32], order: int) -> np.float32:
    """Σ of products of `order` of the `squares`, any of them more than once, each choice once."""
    if order == 0:
        return np.float32(1)
    if not squares:
        return np.float32(0)
    without = sum_of_products(squares[:-1], order)
    return without + sum_of_products(squares, order - 1) * squares[-1]


def extents(own: Sequence[Extent], shared: Sequence[Extent]) -> list[Extent]:
    """Runs of one name among the features of one first byte, an action's own before the shared ones.

    Where the last own name is the first shared one, VW joins the two and loses the last shared run.
    """

    def runs(spans: Sequence[Extent]) -> list[Extent]:
        grouped = groupby(spans, key=lambda span: span[0])
        return [(name, [feature for _, each in spans_ for feature in each]) for name, spans_ in grouped]

    first, second = runs(own), runs(shared)
    if first and second and first[-1][0] == second[0][0]:
        joined = (first[-1][0], first[-1][1] + second[0][1])
        return [*first[:-1], joined, *second[1:-1]]
    return first + second


def cross_extents(
    names: Sequence[bytes], found: Sequence[Extent], *, permutations: bool, mask: int
) -> list[Feature]:
    """Every choice of one extent for each name; last ones first, but in the last factor first ones first."""
    named = [[each for name, each in found if name == wanted] for wanted in names]
    choices = [
        choice
        for choice in product(*(range(len(each)) for each in named))
        if all(choice[k] >= choice[k - 1] for k in range(1, len(names)) if names[k] == names[k - 1])
    ]
    choices.sort(key=lambda choice: ([-k for k in choice[:-1]], choice[-1]))
    crossed = []
    for choice in choices:
        factors = [each[k] for each, k in zip(named, choice, strict=True)]
        repeats = [
            k > 0 and not permutations and names[k] == names[k - 1] and choice[k] == choice[k - 1]
            for k in range(len(names))
        ]
        crossed += cross(factors, repeats, mask)
    return crossed
