"""The dialect of Vowpal Wabbit: the rules by which input is read, and the reader of text."""

from __future__ import annotations

from onlineauto.engine.stream.dialect import Dialect
from onlineauto.exact.layout import VwLayout
from onlineauto.exact.quirks import READING
from onlineauto.exact.text.line_kernels import read_vw_lines
from onlineauto.formats.text_reader import TextReader


class VwTextReader(TextReader):
    r"""Iterator over the events of a VW text, in Blocks, read with VW's oddities and warnings.

    Parameters, attributes and errors are those of `TextReader`. A label that is fatal to VW raises a
    `ParseError`.

    Source: VW 9.11.9, ``parse_example_text.cc``.

    >>> from onlineauto.formats.records.reader_state_kernels import ReaderRules
    >>> [len(block) for block in VwTextReader(b"1 |a x\n\n2 |a y\n", ReaderRules())]
    [2]
    """

    quirks = READING
    _read_lines = staticmethod(read_vw_lines)


VW = Dialect(rules={"vw_exact": True}, layout=VwLayout, text=VwTextReader, quirks=READING, counts_lines=True)
"""The dialect of VW: a separate reader of text, JSON with quirks; ``--examples`` counts lines of a text."""
