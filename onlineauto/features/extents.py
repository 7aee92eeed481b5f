"""Extents: products of namespaces by full name, in exact mode.

VW knows a namespace by its first byte; for ``--experimental_full_name_interactions`` it looks within that
group for runs of features of one full name. See `onlineauto.features.extent_kernels`.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING

from onlineauto.features.interactions import WILDCARD, Product, Term, unique_products

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["compile_extents"]

_WIDEST_LETTER = 255
_VISIBLE = range(32, 127)
_CCB_SLOT = 139


def _in_wildcards(hash_: int) -> bool:
    """VW leaves out names whose *hash* looks like a reserved namespace."""
    return hash_ == 0 or hash_ >= _WIDEST_LETTER or hash_ in _VISIBLE or hash_ == _CCB_SLOT


def compile_extents(
    products: Sequence[Product], seen: Mapping[bytes, tuple[int, int]], *, keep_duplicates: bool
) -> list[tuple[int, ...]]:
    """Namespace numbers of every product of full names, in the order in which they are summed.

    Parameters
    ----------
    products : sequence of Product
        As asked for by ``--experimental_full_name_interactions``.
    seen : mapping
        Number and hash of every namespace seen, by name; a product with another name is left out.
    keep_duplicates : bool
        ``--leave_duplicate_interactions``.

    Examples
    --------
    >>> full = tuple(Term(name, full=True) for name in (b"page", b"user"))
    >>> compile_extents([full], {b"user": (0, 77), b"page": (4, 9)}, keep_duplicates=False)
    [(4, 0)]
    """
    rank = {name: (name[0], hash_) for name, (_, hash_) in seen.items()}
    wild = sorted((name for name, (_, hash_) in seen.items() if _in_wildcards(hash_)), key=lambda n: rank[n])
    known = [terms for terms in products if all(term == WILDCARD or term.name in seen for term in terms)]
    written = sorted({_ordered(terms, rank) for terms in known}, key=lambda terms: _sort_key(terms, rank))
    names = [each for terms in written for each in _expand(terms, wild, permutations=keep_duplicates)]
    if any(WILDCARD in terms for terms in written):
        names = unique_products(names, key=lambda name: rank[name], keep_duplicates=keep_duplicates)
    return [tuple(seen[name][0] for name in each) for each in names]


def _term_key(term: Term, rank: Mapping[bytes, tuple[int, int]]) -> tuple[int, int]:
    return (ord(":"), ord(":")) if term == WILDCARD else rank[term.name]


def _sort_key(terms: Product, rank: Mapping[bytes, tuple[int, int]]) -> list[tuple[int, int]]:
    return [_term_key(term, rank) for term in terms]


def _ordered(terms: Product, rank: Mapping[bytes, tuple[int, int]]) -> Product:
    return tuple(sorted(terms, key=lambda term: _term_key(term, rank)))


def _expand(terms: Product, wild: Sequence[bytes], *, permutations: bool) -> Iterator[tuple[bytes, ...]]:
    count = terms.count(WILDCARD)
    combinations = combinations_with_replacement(wild, count)
    choices = product(wild, repeat=count) if permutations else (choice[::-1] for choice in combinations)
    for choice in choices:
        filled = iter(choice)
        yield tuple(next(filled) if term == WILDCARD else term.name for term in terms)
