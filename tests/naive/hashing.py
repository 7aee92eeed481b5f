"""MurmurHash3 and VW's hash of names, with Python's integers."""

from __future__ import annotations

MASK = 0xFFFFFFFF


def rotate_left(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (32 - bits))) & MASK


def scramble(k: int) -> int:
    return rotate_left(k * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK


def murmur3(data: bytes, seed: int) -> int:
    h = seed
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        h = rotate_left(h ^ scramble(int.from_bytes(data[i : i + 4], "little")), 13)
        h = (h * 5 + 0xE6546B64) & MASK
    h ^= scramble(int.from_bytes(data[whole:], "little"))
    h ^= len(data) & MASK
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    return h ^ h >> 16


def hash_name(name: bytes, seed: int, hash_all: bool = False) -> int:
    if hash_all:
        return murmur3(name, seed)
    stripped = name.strip(bytes(range(0x21)))
    value = 0
    for byte in stripped:
        if not 48 <= byte <= 57:
            return murmur3(stripped, seed)
        value = (value * 10 + byte - 48) % 2**64
    return (value + seed) & MASK
