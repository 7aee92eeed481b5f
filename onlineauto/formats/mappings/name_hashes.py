"""``NameHashes``: hash names like the readers of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError, OptionError
from onlineauto.features.block import DEFAULT, Namespaces
from onlineauto.features.hash_kernels import hash_name, murmur3

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NO_NAME = DEFAULT.decode()
_MOST = 1 << 18
"""Maximum number of cached hashes."""


class NameHashes:
    """Hashes names of namespaces and features, and numbers the namespaces; not thread-safe.

    >>> names = NameHashes()
    >>> user = names.namespace("user")
    >>> user, names.namespaces.names, names.feature("tom", user)
    (0, [b'user'], 3513260458)
    """

    def __init__(self, *, hash: str = "strings", hash_seed: int = 0) -> None:  # noqa: A002 - the option's name
        if hash not in ("strings", "all"):
            raise OptionError(f"hash cannot be {hash!r}; it takes one of strings, all")
        self._hash_all = hash == "all"
        self._seed = np.uint32(hash_seed)
        self._numbers: dict[str, int] = {}
        self._known: dict[tuple[str, int], int] = {}
        self.namespaces = Namespaces()
        self.rules: dict[str, Any] = {"hash": hash, "hash_seed": hash_seed}

    def of_columns(self, identities: Iterable[str], numbers: Iterable[str] | None = None) -> NameHashes:
        """Record in the rules that names are made of dicts or columns, with these identities; return self.

        `numbers` are the columns with other numbers, if they are known.
        """
        self.rules = {**self.rules, "names": "columns", "name_columns": tuple(sorted(identities))}
        if numbers is not None:
            self.rules["number_columns"] = tuple(sorted(numbers))
        return self

    def namespace(self, name: str) -> int:
        """Return the number of a namespace; ``" "`` is the namespace without a name."""
        number = self._numbers.get(name)
        if number is None:
            if _bytes(name) in (b"", DEFAULT) and name != _NO_NAME:
                number = self.namespace(_NO_NAME)
            else:
                number = self.namespaces.add(_bytes(name), self.namespace_hash(name))
            self._numbers[name] = number
        return number

    def namespace_hash(self, name: str) -> int:
        """Return the hash of a namespace's name, which seeds the hashes of its features."""
        if _bytes(name) in (b"", DEFAULT):
            return int(murmur3(np.empty(0, np.uint8), 0, 0, self._seed)) if self._seed else 0
        return self.hash(name, int(self._seed))

    def feature(self, name: str | int, namespace: int) -> int:
        """Return the hash of a feature's name, or of its index in a list, in the namespace of this number."""
        if isinstance(name, int):
            return (self.namespaces.hashes[namespace] + name) % 2**32
        key = name, namespace
        value = self._known.get(key)
        if value is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            value = self.hash(name, self.namespaces.hashes[namespace])
            self._known[key] = value
        return value

    def hash_in(self, name: str | int, namespace: str) -> int:
        """Return the hash of a feature in a namespace; a number is a hash already, as in an Event."""
        return name if isinstance(name, int) else self.feature(name, self.namespace(namespace))

    def features(
        self, names: Sequence[str | int], namespace: int
    ) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """Return the hashes of several names: uint32[n]."""
        return np.array([self.feature(name, namespace) for name in names], np.uint32)

    def hash(self, name: str, seed: int) -> int:
        """Return the hash of a name, seeded with another hash."""
        data = np.frombuffer(_bytes(name), np.uint8)
        return int(hash_name(data, 0, len(data), np.uint32(seed), self._hash_all))


def _bytes(name: str) -> bytes:
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InputError(f"the name {name!r} has half of a surrogate pair, which UTF-8 cannot have") from None
