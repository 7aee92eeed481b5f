"""How Vowpal Wabbit reads its input."""

from __future__ import annotations

from onlineauto.engine.stream.dialect import Dialect
from onlineauto.exact.layout import VwLayout
from onlineauto.exact.quirks import READING
from onlineauto.exact.text.reader import VwTextReader

__all__ = ["VW"]

VW = Dialect(rules={"vw_exact": True}, layout=VwLayout, text=VwTextReader, quirks=READING, counts_lines=True)
"""Text by VW's own reader, JSON with its quirks; ``--examples`` counts lines of one text."""
