"""The quirks of Vowpal Wabbit 9.11.9: all that shared code can follow, switched on."""

from __future__ import annotations

from onlineauto.formats.quirks import ReadingQuirks

__all__ = ["READING"]

READING = ReadingQuirks(*(True for _ in ReadingQuirks._fields))
"""How VW reads."""
