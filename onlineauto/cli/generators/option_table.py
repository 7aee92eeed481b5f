"""Keep the option table of a Markdown file in step with the registry.

``python -m onlineauto.cli.generators.option_table docs/reference/options.md`` rewrites the text between the
comments ``<!-- options:begin -->`` and ``<!-- options:end -->``. With ``--check`` it only reports whether the
text is current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.cli.help import default_text
from onlineauto.options import options_of, title_of
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.options import Group, Option

BEGIN: Final = "<!-- options:begin -->"
"""The marker before the tables."""
END: Final = "<!-- options:end -->"
"""The marker after the tables."""


def option_tables() -> str:
    """Return one Markdown table for each group of options."""
    return "\n\n".join("\n".join(_table(group)) for group in REGISTRY.groups)


def between(text: str, *, begin: str, end: str, made: str) -> str:
    """Return a text whose part between two markers is replaced by `made`.

    Raises
    ------
    ValueError
        If the text does not have each marker once, in order.
    """
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"the text needs {begin} and then {end}, each once")
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"


def update(text: str) -> str:
    """Return a Markdown text with new option tables between its two markers.

    Raises
    ------
    ValueError
        If the text does not have each marker once, in order.
    """
    return between(text, begin=BEGIN, end=END, made=option_tables())


def main(argv: Sequence[str]) -> int:
    """Update the named file and return 0; with ``--check``, return 1 if it is not current."""
    check = "--check" in argv
    path = Path(next(word for word in argv if word != "--check"))
    old = path.read_text(encoding="utf-8")
    new = update(old)
    if check and new != old:
        print(
            f"{path} is not current: run python -m onlineauto.cli.generators.option_table {path}",
            file=sys.stderr,
        )
        return 1
    if new != old:
        path.write_text(new, encoding="utf-8")
    return 0


def _table(group: Group) -> Iterator[str]:
    yield f"## {title_of(group)}\n"
    yield "| option | default | meaning |"
    yield "| --- | --- | --- |"
    for option in options_of(group):
        yield f"| {_flags(option)} | {_code(default_text(option))} | {_meaning(option)} |"


def _flags(option: Option) -> str:
    value = f" {option.metavar}" if option.metavar else ""
    short = f"{_code('-' + option.short)}, " if option.short else ""
    return short + _code(option.flag + value)


def _meaning(option: Option) -> str:
    text = REGISTRY.meaning(option)
    if not option.vw:
        text += " (onlineauto's own)"
    return text.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")


def _code(text: str) -> str:
    return "`" + text.replace("|", r"\|") + "`" if text else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
