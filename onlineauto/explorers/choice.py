"""The explorer that a configuration chooses, and the options that exclude it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.errors import OptionError
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.explorer import explores

if TYPE_CHECKING:
    from onlineauto.explorers.explorer import Explorer
    from onlineauto.options import Configuration


def chosen_explorer(configuration: Configuration) -> Explorer:
    """Return the explorer that the options choose, ε-greedy by default."""
    for explorer in EXPLORERS.values() if explores(configuration) else ():
        if not configuration.supplied.isdisjoint(explorer.flags):
            return explorer
    return next(iter(EXPLORERS.values()))


def check_one_explorer(configuration: Configuration) -> None:
    """Refuse two explorers at once, such as ``--softmax`` with ``--squarecb``."""
    chosen = [
        next(flag for flag in explorer.flags if flag in configuration.supplied)
        for explorer in EXPLORERS.values()
        if not configuration.supplied.isdisjoint(explorer.flags)
    ]
    if len(chosen) > 1:
        raise OptionError(f"--{chosen[0]} and --{chosen[1]} exclude each other: there is one explorer")


def check_explorer(configuration: Configuration) -> None:
    """Refuse options that the chosen explorer cannot be combined with, see `Explorer.check`."""
    chosen_explorer(configuration).check(configuration)


def check_effects(configuration: Configuration) -> None:
    """Refuse options that the chosen explorer does not use, see `Explorer.check_effects`."""
    chosen_explorer(configuration).check_effects(configuration)
