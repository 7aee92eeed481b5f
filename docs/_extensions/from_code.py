"""Directives that write parts of pages from the code, so that these cannot grow old.

* ``help-of``: the help of a command;
* ``vw-flags``: Vowpal Wabbit's flags: ours too, those with another way, those that are refused;
* ``input-problems``: all messages about malformed input;
* ``hints``: what a run says that could read nothing;
* ``journal-lines``: the lines of a journal, with their fields.

The page ``develop/contributing`` is CONTRIBUTING.md.
"""

from __future__ import annotations

import os
import re
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from onlineauto.cli import hints
from onlineauto.cli.main import main
from onlineauto.engine.search.journal import Bounds, End, Entry, JournalHead
from onlineauto.formats.lines.diagnostics import ProblemCode, make_diagnostic
from onlineauto.options.vw_names import INSTEAD, NAMES, NO_EFFECT
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

SECTIONS: Final = (
    ("VW_", "As Vowpal Wabbit says it, with `--vw_exact`"),
    ("JSON_", "JSON"),
    ("SLOT", "Slots"),
    ("TOO_MANY_SLOTS", "Slots"),
    ("", "Text"),
)
"""By the beginning of a code's name: the section of its message."""


class FromCode(SphinxDirective):
    """A directive whose content is Markdown made from the code."""

    optional_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the text."""
        return self.parse_text_to_nodes("\n".join(self.lines()))

    def lines(self) -> Iterator[str]:
        """Yield the lines of Markdown."""
        raise NotImplementedError


class HelpOf(SphinxDirective):
    """The help of a command, as the terminal has it."""

    optional_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Return the help as it is."""
        printed = StringIO()
        os.environ["COLUMNS"] = "88"
        with redirect_stdout(printed), suppress(SystemExit):  # argparse ends like this
            main([*self.arguments, "--help"])
        text = printed.getvalue().rstrip()
        return [nodes.literal_block(text, text, language="text")]


class VwFlags(FromCode):
    """All flags of Vowpal Wabbit, in three tables."""

    def lines(self) -> Iterator[str]:
        """Yield the tables."""
        ours = {option.name: option for option in REGISTRY.options if option.vw}
        aliases = {alias: option for option in ours.values() for alias in option.aliases}
        known = [name for name in NAMES if name in ours or name in aliases]
        yield f"**{len(known)} flags mean the same:** see [Options](../reference/options.md).\n"
        yield ", ".join(f"`--{name}`" for name in known) + "\n"
        ignored = ", ".join(f"`--{name}`" for name in sorted(NO_EFFECT))
        yield f"**{len(NO_EFFECT)} flags have no effect here**, since they change no numbers: {ignored}\n"
        yield "**These are refused, and something else does their work:**\n"
        yield "| flag | instead |"
        yield "|---|---|"
        refused = [name for name in NAMES if name not in known and name not in NO_EFFECT]
        for name in refused:
            if INSTEAD.get(name):
                instead = INSTEAD[name].replace(
                    "`onlineauto serve`", "[`onlineauto serve`](service.md)"
                )
                yield f"| `--{name}` | {instead} |"
        rest = [name for name in refused if not INSTEAD.get(name)]
        yield f"\n:::{{dropdown}} {len(rest)} flags are refused by name\n"
        yield ", ".join(f"`--{name}`" for name in rest)
        yield ":::\n"


class InputProblems(FromCode):
    """Messages about malformed input."""

    def lines(self) -> Iterator[str]:
        """Yield a table for each kind of input."""
        found: dict[str, list[ProblemCode]] = {}
        for code in ProblemCode:
            if code is not ProblemCode.FINE:
                title = next(
                    title for begin, title in SECTIONS if code.name.startswith(begin)
                )
                found.setdefault(title, []).append(code)
        for title, codes in sorted(found.items(), key=lambda item: item[0] != "Text"):
            yield f"**{title}**\n"
            yield "| message | what is done |"
            yield "|---|---|"
            for code in codes:
                made = make_diagnostic(
                    code, file="", line=1, column=1, text=b"...", unit="line"
                )
                yield f"| {_cell(made.message)} | {_cell(made.done)} |"
            yield ""


class Hints(FromCode):
    """What a run says that could read nothing."""

    def lines(self) -> Iterator[str]:
        """Yield the hints, each once."""
        for text in dict.fromkeys(hint.text for hint in hints._HINTS):  # noqa: SLF001 - has no other use
            yield "- " + re.sub(r"--\w+", r"`\g<0>`", text)


class JournalLines(FromCode):
    """The lines of a journal, and the bounds in them."""

    def lines(self) -> Iterator[str]:
        """Yield a table."""
        yield "| `decision` | fields |"
        yield "|---|---|"
        for line in (JournalHead, *Entry.__args__, End):
            fields = ", ".join(f"`{name}`: {kind}" for name, kind in _fields(line))
            yield f"| `{line.__struct_config__.tag}` | {fields} |"
        yield (
            "\n`bounds` is an object: "
            + ", ".join(f"`{name}` ({kind})" for name, kind in _fields(Bounds))
            + ".\n"
        )


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


def contributing(app: Sphinx, page: str, source: list[str]) -> None:
    """Let CONTRIBUTING.md, whose links are those of the repository, be a page."""
    if page == "develop/contributing":
        text = (Path(app.srcdir).parent / "CONTRIBUTING.md").read_text("utf-8")
        text = re.sub(r"\[([^\]]+)\]\((?:onlineauto|examples|tests)/[^)]+\)", r"\1", text)
        source[0] = text.replace("](docs/", "](../")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives to Sphinx."""
    app.connect("source-read", contributing)
    app.add_directive("help-of", HelpOf)
    app.add_directive("vw-flags", VwFlags)
    app.add_directive("input-problems", InputProblems)
    app.add_directive("hints", Hints)
    app.add_directive("journal-lines", JournalLines)
    return {"parallel_read_safe": True}
