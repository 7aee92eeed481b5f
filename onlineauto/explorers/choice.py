"""Which explorer a configuration chooses, and what it cannot be together with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.errors import OptionError
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.explorer import explores

if TYPE_CHECKING:
    from onlineauto.explorers.explorer import Explorer
    from onlineauto.options import Configuration

__all__ = ["check_explorer", "check_one_explorer", "chosen_explorer"]

_SHARED = ("epsilon", "first_only")


def chosen_explorer(configuration: Configuration) -> Explorer:
    """Return the explorer that is asked for, ε-greedy if none is."""
    for explorer in EXPLORERS.values() if explores(configuration) else ():
        if not configuration.supplied.isdisjoint(explorer.flags):
            return explorer
    return next(iter(EXPLORERS.values()))


def check_one_explorer(configuration: Configuration) -> None:
    """Refuse two explorers at once.

    Raises
    ------
    OptionError
        Such as ``--softmax`` with ``--squarecb``.
    """
    asked = [
        next(flag for flag in explorer.flags if flag in configuration.supplied)
        for explorer in EXPLORERS.values()
        if not configuration.supplied.isdisjoint(explorer.flags)
    ]
    if len(asked) > 1:
        raise OptionError(f"--{asked[0]} and --{asked[1]} exclude each other: there is one explorer")


def check_explorer(configuration: Configuration) -> None:
    """Refuse costs that the explorer cannot learn, and options that it does not use.

    Raises
    ------
    OptionError
        Such as ``--squarecb`` with ``--cb_type dr``.
    """
    explorer, cb_type = chosen_explorer(configuration), configuration.get("cb_type")
    if cb_type not in explorer.cb_types:
        raise OptionError(
            f"--{explorer.name} cannot learn by --cb_type {cb_type}; it can by {', '.join(explorer.cb_types)}"
        )
    for name in _SHARED:
        if name in configuration.supplied and name not in explorer.uses and not configuration.get("vw_exact"):
            raise OptionError(f"--{name} has no effect with --{explorer.name}: leave it out")
