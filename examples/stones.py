"""Read diamonds as dicts: for the examples 14, 15 and 16."""

from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any

from onlineauto import datasets
from onlineauto.interop import read_named

WORDS = {"u": "cut", "o": "colour", "l": "clarity"}  # namespaces that have a word each
NUMBERS = {"c": "carat", "l": "log carat", "t": "depth", "b": "table", "x": "length", "y": "width"}


def stones(n: int) -> Iterator[tuple[dict[Hashable, Any], float]]:
    """Yield the features of the first diamonds, and the logarithm of each price."""
    for event in islice(read_named(datasets.path("reg-diamonds")), n):
        line = event.lines[0]
        stone: dict[Hashable, Any] = dict.fromkeys(NUMBERS.values(), 0.0)  # text leaves zeros out
        for space, features in line.spans:
            for name, value in features:
                if space in WORDS:
                    stone[WORDS[space]] = str(name)
                else:
                    stone[NUMBERS[str(name)]] = value
        assert line.label is not None
        yield stone, line.label
