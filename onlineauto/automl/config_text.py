"""Configs and interactions as text, in Vowpal Wabbit's notation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onlineauto.automl.config import Config, Interaction

_SPECIAL = {
    b" ": "[default]",
    b"\x8b": "[ccbslot]",
    b"\x8c": "[ccbid]",
    b"\x80": "[constant]",
    b":": "[wild]",
}
_FLAGS = {2: "-q ", 3: "--cubic="}


def namespace_text(name: bytes) -> str:
    """Return the name of a namespace as text for people.

    >>> namespace_text(b" ")
    '[default]'
    """
    return _SPECIAL.get(name) or name.decode("utf-8", "backslashreplace")


def flags_text(interactions: Iterable[Interaction]) -> str:
    """Return interactions as options, each followed by a space.

    >>> flags_text([(b"a", b"b"), (b"a", b"b", b"b")])
    '-q ab --cubic=abb '
    """
    return "".join(f"{_FLAGS[len(interaction)]}{_join_names(interaction)} " for interaction in interactions)


def _join_names(interaction: Interaction) -> str:
    """Return names side by side, like VW's letters, or separated by bars if one is longer than a letter."""
    bar = "|" if any(len(name) > 1 for name in interaction) else ""
    return bar.join(map(namespace_text, interaction))


def words_text(interactions: Sequence[Interaction], *, most: int = 20) -> str:
    """Return the first `most` interactions as text for people.

    >>> words_text([(b"user", b"page"), (b"user", b"user")], most=1)
    'user*page and 1 more'
    """
    text = ", ".join("*".join(map(namespace_text, names)) for names in interactions[:most])
    more = len(interactions) - most
    return f"{text} and {more} more" if more > 0 else text


def elements_text(config: Config, delimiter: str = ", ") -> str:
    """Return the elements of a config as nested lists.

    >>> from onlineauto.automl.config import Config
    >>> elements_text(Config(((b"a", b"b"), (b"c", b"c"))))
    '{["a", "b"], ["c", "c"]}'
    """
    lists = (
        "[" + delimiter.join(f'"{namespace_text(name)}"' for name in interaction) + "]"
        for interaction in config.elements
    )
    return "{" + delimiter.join(lists) + "}"
