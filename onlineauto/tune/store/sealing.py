"""Seal JSON with a checksum, and open it again: what was damaged is found, and refused by name."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from onlineauto.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["opened", "sealed"]


def sealed(value: Mapping[str, Any], place: str) -> tuple[str, int]:
    """Return a JSON object as text, and a checksum over the text and its place.

    >>> sealed({"kind": "told"}, "record 3")
    ('{"kind":"told"}', 1676270590)
    """
    text = json.dumps(value, separators=(",", ":"))
    return text, _checksum(text, place)


def opened(text: str, crc: int, place: str, where: str) -> dict[str, Any]:
    """Return the JSON object that was sealed.

    Raises
    ------
    StoreError
        It is not what was sealed in this place; `where` says which store it is in.
    """
    if _checksum(text, place) == crc:
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    raise StoreError(f"{place} in {where} is damaged: its checksum is not the one it was written with")


def _checksum(text: str, place: str) -> int:
    return zlib.crc32(text.encode(), zlib.crc32(place.encode()))
