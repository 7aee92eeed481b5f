"""The quirks of Vowpal Wabbit 9.11.9: all switches of the shared code, turned on."""

from __future__ import annotations

from onlineauto.engine.records.quirks import Quirks
from onlineauto.explorers.quirks import ExploringQuirks
from onlineauto.formats.quirks import ReadingQuirks

READING = ReadingQuirks(*(True for _ in ReadingQuirks._fields))
"""Quirks of VW's readers."""

EVENT = Quirks(*(True for _ in Quirks._fields))
"""Quirks of VW's handling of events."""

EXPLORING = ExploringQuirks(*(True for _ in ExploringQuirks._fields))
"""Quirks of VW's explorers."""
