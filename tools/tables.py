"""Text of pages that is made from the code: VW's flags, messages about the input, journal lines."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.cli import hints
from onlineauto.engine.search.journal import Bounds, End, Entry, JournalHead
from onlineauto.explorers import quirks
from onlineauto.formats.lines.diagnostics import ProblemCode, make_diagnostic
from onlineauto.options.vw_names import INSTEAD, NAMES, NO_EFFECT
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECTIONS: Final = (
    ("VW_", "As Vowpal Wabbit says it, with `--vw_exact`"),
    ("JSON_", "JSON"),
    ("SLOT", "Slots"),
    ("TOO_MANY_SLOTS", "Slots"),
    ("", "Text"),
)
"""The section of a message, by the beginning of its code's name."""

_SERVE: Final = "`onlineauto serve`"


def vw_flags() -> Iterator[str]:
    """Yield the flags of Vowpal Wabbit: those with a substitute, the same ones, ignored ones and the rest."""
    ours = {option.name: option for option in REGISTRY.options if option.vw}
    aliases = {alias for option in ours.values() for alias in option.aliases}
    same = [name for name in NAMES if name in ours or name in aliases]
    missing = [name for name in NAMES if name not in same and name not in NO_EFFECT]
    quirky = {name for flags, _ in _quirks() for name in re.findall(r"--(\w+)", flags)}
    differing = [name for name in same if name in quirky]
    yield "## Rejected, with a substitute"
    yield ""
    yield "| flag | instead |"
    yield "| --- | --- |"
    for name in missing:
        if name in INSTEAD:
            yield f"| `--{name}` | {INSTEAD[name].replace(_SERVE, f'[{_SERVE}](../guides/service.md)')} |"
    for title, names in (
        ("The same", [name for name in same if name not in quirky]),
        ("The same in exact mode only", differing),
        ("Accepted without effect", sorted(NO_EFFECT)),
        ("Rejected", [name for name in missing if name not in INSTEAD]),
    ):
        yield ""
        yield f"## {title}"
        yield ""
        if names[:1] == differing[:1]:
            yield "[Exact mode](exact-mode.md#explorers) says what native mode does instead."
            yield ""
        yield ", ".join(f"`--{name}`" for name in names)


def explorer_quirks() -> Iterator[str]:
    """Yield a table of what the explorers of exact mode do otherwise than those of native mode."""
    yield "| with | difference |"
    yield "| --- | --- |"
    yield from (f"| {flags} | {text} |" for flags, text in _quirks())


def _quirks() -> Iterator[tuple[str, str]]:
    """Yield the flags of each quirk of the explorers and its text, from the docstrings of their fields."""
    tree = ast.parse(Path(quirks.__file__).read_text(encoding="utf-8"))
    fields = next(node for node in tree.body if isinstance(node, ast.ClassDef)).body[1:]
    for docstring in fields[1::2]:
        text = ast.literal_eval(docstring.value)  # type: ignore[attr-defined]
        flags, _, text = " ".join(text.replace("``", "`").split()).partition(": ")
        yield flags, text[0].upper() + text[1:]


def input_messages() -> Iterator[str]:
    """Yield a table of messages for each kind of input, and the hints of a run that learnt nothing."""
    sections: dict[str, list[ProblemCode]] = {}
    for code in ProblemCode:
        if code is not ProblemCode.FINE:
            title = next(title for begin, title in _SECTIONS if code.name.startswith(begin))
            sections.setdefault(title, []).append(code)
    for title, codes in sorted(sections.items(), key=lambda item: item[0] != "Text"):
        yield f"## {title}"
        yield ""
        yield "| message | what is done |"
        yield "| --- | --- |"
        for code in codes:
            made = make_diagnostic(code, file="", line=1, column=1, text=b"...", unit="line")
            yield f"| {_cell(made.message)} | {_cell(made.done)} |"
        yield ""
    yield "## Hints"
    yield ""
    yield "A run that learnt nothing prints one of these, if it applies."
    yield ""
    for text in dict.fromkeys(hint.text for hint in hints._HINTS):  # noqa: SLF001 - has no other use
        yield "- " + re.sub(r"--\w+", r"`\g<0>`", text)


def journal_lines() -> Iterator[str]:
    """Yield a table of the lines of a journal, and the fields of the bounds in them."""
    yield "| `decision` | fields |"
    yield "| --- | --- |"
    for line in (JournalHead, *Entry.__args__, End):
        fields = ", ".join(f"`{name}`: {kind}" for name, kind in _fields(line))
        yield f"| `{line.__struct_config__.tag}` | {fields} |"
    yield ""
    yield "`bounds` is an object: " + ", ".join(f"`{name}` ({kind})" for name, kind in _fields(Bounds)) + "."


def _fields(struct: type) -> Iterator[tuple[str, str]]:
    for field in msgspec.inspect.type_info(struct).fields:  # type: ignore[attr-defined]
        yield field.encode_name, _kind(field.type)


def _kind(kind: Any) -> str:
    """Return the name of a type in words of JSON."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return " or ".join(_kind(each) for each in kind.types)
    if isinstance(kind, msgspec.inspect.ListType):
        return "list of " + re.sub(r"^(list|.*$)", r"\1s", _kind(kind.item_type), count=1)
    if isinstance(kind, msgspec.inspect.LiteralType):
        return " or ".join(f'"{value}"' for value in kind.values)
    if isinstance(kind, msgspec.inspect.StructType):
        return kind.cls.__name__.lower()
    return {
        "IntType": "whole number",
        "FloatType": "number",
        "StrType": "string",
        "BoolType": "true or false",
        "NoneType": "null",
        "DictType": "object",
        "EnumType": "string",
    }[type(kind).__name__]


def _cell(text: str) -> str:
    """Return text for a cell of a table, with nothing that Markdown would read."""
    for sign in "\\|<*_[":
        text = text.replace(sign, "\\" + sign)
    return text
