"""Configs and interactions as text, in Vowpal Wabbit's notation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.automl.config import Config, Interaction

__all__ = ["elements_text", "flags_text", "namespace_text"]

_SPECIAL = {
    b" ": "[default]",
    b"\x8b": "[ccbslot]",
    b"\x8c": "[ccbid]",
    b"\x80": "[constant]",
    b":": "[wild]",
}
_FLAGS = {2: "-q ", 3: "--cubic="}


def namespace_text(name: bytes) -> str:
    """Name of a namespace for people.

    >>> namespace_text(b" ")
    '[default]'
    """
    return _SPECIAL.get(name) or name.decode("utf-8", "backslashreplace")


def flags_text(interactions: Iterable[Interaction]) -> str:
    """Interactions as options, each followed by a space.

    >>> flags_text([(b"a", b"b"), (b"a", b"b", b"b")])
    '-q ab --cubic=abb '
    """
    return "".join(
        f"{_FLAGS[len(interaction)]}{''.join(map(namespace_text, interaction))} "
        for interaction in interactions
    )


def elements_text(config: Config, delimiter: str = ", ") -> str:
    """Elements of a config as nested lists.

    >>> from onlineauto.automl.config import Config
    >>> elements_text(Config(((b"a", b"b"), (b"c", b"c"))))
    '{["a", "b"], ["c", "c"]}'
    """
    lists = (
        "[" + delimiter.join(f'"{namespace_text(name)}"' for name in interaction) + "]"
        for interaction in config.elements
    )
    return "{" + delimiter.join(lists) + "}"
