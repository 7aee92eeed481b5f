"""The dialect of Vowpal Wabbit: how it reads its input."""

from __future__ import annotations

from onlineauto.engine.stream.dialect import Dialect
from onlineauto.exact.layout import VwLayout
from onlineauto.exact.quirks import READING
from onlineauto.exact.text.reader import VwTextReader

VW = Dialect(rules={"vw_exact": True}, layout=VwLayout, text=VwTextReader, quirks=READING, counts_lines=True)
"""The dialect of VW: its own reader of text, JSON with its quirks; ``--examples`` counts lines of a text."""
