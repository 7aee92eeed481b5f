"""Multipliers of hashes: a product of whole numbers with one of them, modulo 2^64, spreads their bits."""

from __future__ import annotations

from typing import Final

GOLDEN: Final = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio. Source: Knuth, *The art of computer programming*, 6.4."""

FNV_32_PRIME: Final = 16777619
FNV_64_BASIS: Final = 0xCBF29CE484222325
FNV_64_PRIME: Final = 0x100000001B3
"""Constants of Fowler, Noll and Vo's hashes of 32 and 64 bits."""
