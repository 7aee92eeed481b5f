"""Dialect: the choices in reading a source in which native and exact mode differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onlineauto.features.layout import StreamLayout
from onlineauto.formats.quirks import NO_QUIRKS, ReadingQuirks
from onlineauto.formats.text_reader import TextReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The choices in reading a source in which native and exact mode differ."""

    rules: Mapping[str, bool]  # Recorded in files of blocks; blocks of another dialect are rejected.
    layout: type[StreamLayout]  # Maps namespaces to groups of features.
    text: type[TextReader]  # The reader of text.
    quirks: ReadingQuirks  # Oddities of the reader of JSON.
    # True if ``--examples`` counts the lines of a text, including empty ones, and not events.
    counts_lines: bool


NATIVE = Dialect(
    rules={"vw_exact": False}, layout=StreamLayout, text=TextReader, quirks=NO_QUIRKS, counts_lines=False
)
"""The dialect of native mode."""


def dialect_of(configuration: Configuration) -> Dialect:
    """Return the dialect of a group of options that has a method ``dialect``, else the native one."""
    dialect: Dialect | None = configuration.first_result("dialect")
    return NATIVE if dialect is None else dialect
