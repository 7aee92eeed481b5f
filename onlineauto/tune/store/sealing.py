"""Add a checksum to JSON when it is stored, and verify the checksum when the JSON is read."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping


WRONG_CHECKSUM: Final = "its checksum is not the one it was written with"


def seal(value: Mapping[str, Any], version: int = 0) -> tuple[str, int]:
    """Return a JSON object as text, and its checksum plus its version, which detects swapped records.

    >>> seal({"kind": "told"}, 3)
    ('{"kind":"told"}', 2043669275)
    """
    text = json.dumps(value, separators=(",", ":"))
    return text, zlib.crc32(text.encode()) + version


def unseal(text: str, crc: int, version: int, noun: str, where: str) -> dict[str, Any]:
    """Return the JSON object that was sealed."""
    value = unseal_or_none(text, crc, version)
    if value is None:
        raise StoreError(f"{noun} in {where} is damaged: {WRONG_CHECKSUM}")
    return value


def unseal_or_none(text: object, crc: object, version: int) -> dict[str, Any] | None:
    """Return the JSON object that was sealed, or None if it is damaged."""
    if isinstance(text, str) and zlib.crc32(text.encode(errors="replace")) + version == crc:
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    return None
