"""Short ways to read a text in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.exact.dialect import VwTextReader
from onlineauto.exact.quirks import READING
from onlineauto.formats.json_reader import JsonReader
from onlineauto.formats.quirks import NO_QUIRKS
from onlineauto.formats.records.reader_state_kernels import ReaderRules
from onlineauto.formats.text_reader import TextReader
from tests.naive.lines import unpack

if TYPE_CHECKING:
    from onlineauto.formats.sources.source import Source
    from tests.naive.lines import Line

SHAPES: dict[str, dict[str, Any]] = {
    "simple": {"label": "simple", "multiline": False},
    "cb": {"label": "cb", "multiline": False},
    "cb_adf": {"label": "cb", "multiline": True},
    "ccb": {"label": "ccb", "multiline": True},
}


def _split(label: str = "simple", **how: Any) -> tuple[ReaderRules, dict[str, Any]]:
    """Rules of reading, with a word for the kind of labels, and the other arguments of a reader."""
    rules = {name: how.pop(name) for name in ReaderRules._fields if name in how}
    return ReaderRules(simple=label == "simple", slots=label == "ccb", **rules), how


def text_reader(text: Source, *, exact: bool = False, **how: Any) -> TextReader:
    """Make the reader of text of one of the modes."""
    rules, others = _split(**how)
    return (VwTextReader if exact else TextReader)(text, rules, **others)


def json_reader(text: Source, *, exact: bool = False, **how: Any) -> JsonReader:
    """Make the reader of JSON with VW's quirks or without."""
    rules, others = _split(quirks=READING if exact else NO_QUIRKS, **how)
    return JsonReader(text, rules, **others)


def events(text: bytes, kind: str = "simple", **options: Any) -> list[list[Line]]:
    """All events of a text."""
    return unpack(text_reader(text, **SHAPES[kind], **options))


def only_line(text: bytes, kind: str = "simple", **options: Any) -> Line:
    """The line of a text of one line, which has to be free of problems."""
    reader = text_reader(text, **SHAPES[kind], **options)
    ((line,),) = unpack(reader)
    assert not reader.diagnostics.kept
    return line


def messages(text: bytes, kind: str = "simple", **options: Any) -> tuple[int, list[str]]:
    """Number of events read, and what was said about the rest."""
    reader = text_reader(text, name="file", **SHAPES[kind], **options)
    n = sum(len(block) for block in reader)
    return n, [str(diagnostic) for diagnostic in reader.diagnostics.kept]


def strings_of(line: Line) -> list[str]:
    """Names of a line's namespaces, in order."""
    return [name.decode("utf-8", "replace") for name, _ in line.spans]
