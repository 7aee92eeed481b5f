"""``help_text``: the text of ``onlineauto --help``, generated from the registry."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final, NamedTuple

from onlineauto.options import options_of, title_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.options import Option, Registry

_COLUMN: Final = 30


class Page(NamedTuple):
    """The text around the options: usage, description and examples of a verb."""

    usage: str
    introduction: str
    examples: str
    options: tuple[str, ...] = ()  # names of the options that the verb uses; empty means all options


LEARN: Final = Page(
    "Usage: onlineauto [learn] [options] [FILE ...]",
    "Learn from a stream of events and report the loss of what was predicted before each was learnt. The "
    "options have the names and meanings that Vowpal Wabbit 9.11.9 gives them; a + marks those that are "
    "onlineauto's own. Defaults are in brackets.",
    """\
Examples:
  onlineauto -d events.txt                               regression
  onlineauto -d events.txt --cb_explore_adf -q ::        contextual bandit with all pairs of namespaces
  onlineauto -d events.txt.gz --cb_explore_adf -p out    the same, predictions to a file
  zcat events.txt.gz | onlineauto --cb_explore_adf       from standard input""",
)
"""The page of ``learn``."""


def help_text(registry: Registry, *, width: int, page: Page = LEARN) -> str:
    """Return the help of all options, by group, or of the options that a page names."""
    width = min(max(width, 60), 110)
    parts = [page.usage, textwrap.fill(page.introduction, width)]
    groups = [(title_of(group), options_of(group)) for group in registry.groups]
    if page.options:
        groups = [("Options", tuple(registry[name] for name in page.options))]
    for title, options in groups:
        lines = (line for option in options for line in option_lines(registry, option, width))
        parts.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join([*parts, page.examples])


def default_text(option: Option) -> str:
    """Return an option's default in the form of the command line, or "" if it has no such form."""
    if option.switch or option.repeatable or option.default is None:
        return ""
    return str(option.default)


def option_lines(registry: Registry, option: Option, width: int) -> Iterator[str]:
    """Yield the lines about one option: its names and its meaning."""
    names = _names(option)
    texts = textwrap.wrap(_meaning(registry, option), width - _COLUMN)
    if len(names) > _COLUMN - 2:
        yield names
    else:
        yield f"{names:{_COLUMN}}{texts.pop(0)}"
    for text in texts:
        yield " " * _COLUMN + text


def _names(option: Option) -> str:
    mark = " " if option.vw else "+"
    short = f"-{option.short}, " if option.short else "    "
    return f"{mark} {short}{option.flag} {option.metavar}".rstrip()


def _meaning(registry: Registry, option: Option) -> str:
    meaning, default = registry.meaning(option), default_text(option)
    return f"{meaning} [{default}]" if default else meaning
