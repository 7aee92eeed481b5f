"""Namespaces: the names seen so far, numbered in order of appearance."""

from __future__ import annotations

from dataclasses import dataclass, field

DEFAULT = b" "
"""Name of the default namespace, as in ``| feature``."""


@dataclass(slots=True)
class Namespaces:
    """Names of namespaces, by number."""

    # Full name of each; the default namespace is called ``b" "``.
    names: list[bytes] = field(default_factory=list)
    # Hash (uint32) of each full name, the seed of its features' hashes; 0 for the default namespace.
    hashes: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of namespaces."""
        return len(self.names)

    def add(self, name: bytes, hash_: int) -> int:
        """Append a new name and return its number."""
        self.names.append(name)
        self.hashes.append(hash_)
        return len(self.names) - 1
