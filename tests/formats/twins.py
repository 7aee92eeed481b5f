"""A reader beside its naive twin: the same events, the same problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.errors import ParseError
from tests.naive.lines import Problem, Reading, unpack

if TYPE_CHECKING:
    from onlineauto.features.block import Block
    from onlineauto.formats.json_reader import JsonReader
    from onlineauto.formats.text_reader import TextReader

_KEPT = 100
"""Problems that a reader spells out."""


def is_read_as(reader: TextReader | JsonReader, expected: Reading) -> bool:
    """Whether a reader finds what its twin has found."""
    blocks: list[Block] = []
    stopped = False
    try:
        blocks.extend(reader)
    except ParseError:
        stopped = True
    problems: list[Problem] = [(d.line, d.column, d.code) for d in reader.diagnostics.kept]
    assert reader.diagnostics.total >= len(problems)
    expected.problems = expected.problems[:_KEPT]
    # NaN is a value in exact mode, and not equal to itself; its text is
    return repr(Reading(events=unpack(blocks), problems=problems, stopped=stopped)) == repr(expected)
