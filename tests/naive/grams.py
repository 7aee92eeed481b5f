"""N-grams by recursion over lists, and the zeros of vectors, one feature at a time."""

from __future__ import annotations

from itertools import pairwise

Feature = tuple[int, float]


def is_vector(features: list[Feature]) -> bool:
    steps = {(after - before) % 2**32 for (before, _), (after, _) in pairwise(features)}
    return len(features) >= 16 and steps == {1}


def settled(features: list[Feature]) -> list[Feature]:
    return features if is_vector(features) else [feature for feature in features if feature[1]]


def grams(words: list[int], size: int, skips: int) -> list[int]:
    """Return the hashes of the n-grams of 2 to `size` words; VW's ``add_grams``, line by line."""
    found: list[int] = []

    def add(left: int, skips_left: int, mask: list[int], skipped: int) -> None:
        if left == 0 and mask[-1] < len(words):
            for first in range(len(words) - mask[-1]):
                hash_ = words[first]
                for offset in mask[1:]:
                    hash_ = hash_ * 27942141 + words[first + offset]
                found.append(hash_ % 2**32)
        if left > 0:
            add(left - 1, skips_left, [*mask, mask[-1] + 1 + skipped], 0)
        if skips_left > 0 and left > 0:
            add(left, skips_left - 1, mask, skipped + 1)

    for n in range(1, size):
        add(n, skips, [0], 0)
    return found
