"""Replay: the entries of the journal in ``--replay``, for a run with the same options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.search.journal import read_journal
from onlineauto.errors import InputError, OptionError
from onlineauto.options import Registry

if TYPE_CHECKING:
    from onlineauto.engine.search.journal import End, Entry
    from onlineauto.options import Configuration


def entries_to_replay(configuration: Configuration) -> list[Entry | End] | None:
    """Return the entries of the journal to replay, None if there is none."""
    path = configuration[RunOptions].replay
    if path is None:
        return None

    registry = Registry([type(group) for group in configuration.groups])

    def has_options(command: str) -> bool:
        try:
            other = registry.parse_kept(command)
        except OptionError as error:
            raise InputError(f"{path} is the journal of a run with other options: {error}") from None
        names = (option.name for option in registry.options if option.keep)
        return all(other.get(name) == configuration.get(name) for name in names)

    try:
        with Path(path).open("rb") as file:
            return list(read_journal(file, name=path, same_options=has_options))
    except OSError as error:
        raise InputError(f"cannot read the journal {path}: {error.strerror}") from None
