"""Compile interactions: list the products of namespaces that match the options, from the namespaces seen.

A *term* is one factor: a first letter, a full name, or the wildcard. Terms are compiled against the names
seen so far, in Vowpal Wabbit's order, which determines both hashes and the order of summation. Products are
sorted by length and then by name, duplicates are removed, and wildcards become combinations with repetition.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, product
from math import comb, prod
from typing import TYPE_CHECKING, Any, TypeVar, cast

from onlineauto.features.options import letters_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Sequence


@dataclass(frozen=True, slots=True, order=True)
class Term:
    """A factor of a product."""

    name: bytes  # First letter, full name, or empty for the wildcard.
    full: bool = False  # Whether `name` is a full name.


WILDCARD = Term(b"")
"""The factor ``:``, which matches any namespace."""

Factor = TypeVar("Factor")

Product = tuple[Term, ...]
"""Factors of a product, in the order of the option."""


def parse_letters(text: str, *, bytewise: bool = False) -> Product:
    """Return the terms of ``-q``, ``--cubic`` or ``--interactions``: one letter each, ``:`` for the wildcard.

    A letter is one byte if `bytewise`, else a character.

    >>> parse_letters("a:")
    (Term(name=b'a', full=False), Term(name=b'', full=False))
    """
    letters = letters_of(text, bytewise=bytewise)
    return tuple(WILDCARD if letter == b":" else Term(letter) for letter in letters)


def parse_full_names(text: str) -> Product:
    """Return the sorted terms of ``--experimental_full_name_interactions``: names separated by ``|``.

    >>> parse_full_names("user|page")
    (Term(name=b'page', full=True), Term(name=b'user', full=True))
    """
    names = text.encode("utf-8", "surrogateescape").split(b"|")
    return tuple(sorted(WILDCARD if name == b":" else Term(name, full=True) for name in names))


def _written_key(term: Term) -> tuple[bytes, bool]:
    """Return the key that sorts terms in VW's order: the wildcard sorts as its colon."""
    return term.name or b":", term.full


def _needs_sorting(names: Sequence[object]) -> bool:
    """Return whether some neighbours are equal and others are not; such a product is sorted."""
    equal = [a == b for a, b in pairwise(names)]
    return any(equal) and not all(equal)


def unique_products(
    products: Iterable[tuple[Factor, ...]],
    *,
    keep_duplicates: bool,
    key: Callable[[Factor], Any] | None = None,
) -> list[tuple[Factor, ...]]:
    """Return the first of all products with the same factors.

    A product that repeats a factor is sorted. `key` orders the factors; the default is their natural order.
    """
    seen: set[tuple[Factor, ...]] = set()
    result = []
    for names in products:
        ordered = tuple(sorted(names, key=cast("Any", key)))
        if not keep_duplicates and ordered in seen:
            continue
        seen.add(ordered)
        result.append(ordered if _needs_sorting(ordered) else names)
    return result


def _wildcards(names: Sequence[bytes], count: int, *, permutations: bool) -> list[tuple[bytes, ...]]:
    """Return the expansion of `count` wildcards in VW's order: pairs ascend, longer products descend."""
    if permutations:
        return list(product(names, repeat=count))
    ascending = combinations_with_replacement(names, count)
    return list(ascending) if count == 2 else [combination[::-1] for combination in ascending]


def _choices(term: Term, names: Sequence[bytes]) -> list[bytes]:
    """Return the names that a term matches; if there are none, the term's own name."""
    if term.full:
        return [term.name]
    return [name for name in names if name.startswith(term.name)] or [term.name]


def _expand(terms: Product, names: Sequence[bytes], *, permutations: bool) -> Iterable[tuple[bytes, ...]]:
    """Yield all products that match `terms` if exactly `names` (sorted) exist."""
    wild = [k for k, term in enumerate(terms) if term == WILDCARD]
    fixed = list(product(*(_choices(term, names) for term in terms if term != WILDCARD)))
    for combination in _wildcards(names, len(wild), permutations=permutations) if wild else [()]:
        for choice in fixed:
            rest = iter(choice)
            filled = iter(combination)
            yield tuple(next(filled) if term == WILDCARD else next(rest) for term in terms)


def compile_products(
    products: Sequence[Product], names: Iterable[bytes], *, keep_duplicates: bool = False
) -> list[tuple[bytes, ...]]:
    """Return the products of namespaces that match `products`, in the order of summation.

    >>> compile_products([parse_letters("::")], [b"b", b"a"])
    [(b'a', b'a'), (b'a', b'b'), (b'b', b'b')]
    >>> compile_products([parse_letters("ba"), parse_letters("ab")], [])
    [(b'a', b'b')]

    Source: VW ``interactions.h``, ``compile_interactions`` and ``sort_and_filter_duplicate_interactions``.
    """
    ordered = sorted(names)
    listed = sorted(products, key=lambda terms: (len(terms), [_written_key(term) for term in terms]))
    letters = unique_products(listed, keep_duplicates=keep_duplicates, key=_written_key)
    expanded = [
        names_ for terms in letters for names_ in _expand(terms, ordered, permutations=keep_duplicates)
    ]
    if any(WILDCARD in terms for terms in letters):
        expanded.sort(key=lambda names_: (len(names_), names_))
    return unique_products(expanded, keep_duplicates=keep_duplicates)


def _count_choices(term: Term, letters: Counter[bytes]) -> int:
    """Return the number of names that a term matches, from the number of names for each letter."""
    if term.full:
        return 1
    return max(sum(n for letter, n in letters.items() if letter.startswith(term.name)), 1)


def count_products(products: Sequence[Product], letters: Counter[bytes]) -> int:
    """Return the number of products that match `products`, with duplicates, from the names for each letter.

    >>> from collections import Counter
    >>> count_products([parse_letters("::"), parse_letters("a:")], Counter([b"a", b"b"]))
    5
    """
    names, total = letters.total(), 0
    for terms in products:
        wild = terms.count(WILDCARD)
        fixed = prod(_count_choices(term, letters) for term in terms if term != WILDCARD)
        total += fixed * (comb(names + wild - 1, wild) if wild else 1)
    return total
