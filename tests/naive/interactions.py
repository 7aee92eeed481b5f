"""Products of namespaces: list every tuple and keep those that match."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.interactions import WILDCARD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from onlineauto.features.interactions import Product, Term

    T = TypeVar("T")

Feature = tuple[int, np.float32]

FNV = 16777619


# -- which products ------------------------------------------------------------------------------------


def _tidy(product_: tuple[T, ...], key: Callable[[T], Any] | None) -> tuple[T, ...]:
    """Return names, sorted if some are equal and others are not."""
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
    """Return the expected result of `onlineauto.features.interactions.compile_products`."""
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
