"""Read a text in tests."""

from __future__ import annotations

from typing import Any

from onlineauto.exact.dialect import VwTextReader
from onlineauto.exact.options import READING
from onlineauto.formats.json_reader import JsonReader
from onlineauto.formats.lines.reader_state_kernels import ReaderRules
from onlineauto.formats.quirks import NO_QUIRKS
from onlineauto.formats.sources.source import Source
from onlineauto.formats.text_reader import TextReader
from tests.naive.lines import Line, unpack

SHAPES: dict[str, dict[str, Any]] = {
    "simple": {"label": "simple", "multiline": False},
    "cb": {"label": "cb", "multiline": False},
    "cb_adf": {"label": "cb", "multiline": True},
    "ccb": {"label": "ccb", "multiline": True},
}


def _split(label: str = "simple", **how: Any) -> tuple[ReaderRules, dict[str, Any]]:
    """Return the rules of reading and the other arguments of a reader; `label` is the kind of labels."""
    rules = {name: how.pop(name) for name in ReaderRules._fields if name in how}
    return ReaderRules(simple=label == "simple", slots=label == "ccb", **rules), how


def text_reader(text: Source, *, exact: bool = False, **how: Any) -> TextReader:
    """Return the reader of text of native or exact mode."""
    rules, others = _split(**how)
    return (VwTextReader if exact else TextReader)(text, rules, **others)


def json_reader(text: Source, *, exact: bool = False, **how: Any) -> JsonReader:
    """Return the reader of JSON of native or exact mode."""
    rules, others = _split(quirks=READING if exact else NO_QUIRKS, **how)
    return JsonReader(text, rules, **others)


def events(text: bytes, kind: str = "simple", **options: Any) -> list[list[Line]]:
    """Return the events of a text."""
    return unpack(text_reader(text, **SHAPES[kind], **options))


def only_line(text: bytes, kind: str = "simple", **options: Any) -> Line:
    """Return the line of a text of one line without problems."""
    reader = text_reader(text, **SHAPES[kind], **options)
    ((line,),) = unpack(reader)
    assert not reader.diagnostics.kept
    return line


def messages(text: bytes, kind: str = "simple", **options: Any) -> tuple[int, list[str]]:
    """Return the number of events of a text, and the reported problems."""
    reader = text_reader(text, name="file", **SHAPES[kind], **options)
    n = sum(len(block) for block in reader)
    return n, [str(diagnostic) for diagnostic in reader.diagnostics.kept]


def strings_of(line: Line) -> list[str]:
    """Return the names of a line's namespaces, in order."""
    return [name.decode("utf-8", "replace") for name, _ in line.spans]
