"""The explorer that a configuration chooses, and the options that exclude it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.errors import OptionError
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.explorer import explores

if TYPE_CHECKING:
    from onlineauto.explorers.explorer import Explorer
    from onlineauto.options import Configuration


def choose_explorer(configuration: Configuration) -> Explorer:
    """Return the explorer that the options choose: by default ε-greedy, or scaled SquareCB for a search."""
    for explorer in EXPLORERS.values() if explores(configuration) else ():
        if not configuration.supplied.isdisjoint(explorer.flags):
            return explorer
    return EXPLORERS["scaled_squarecb" if _searches_actions(configuration) else "greedy"]


def earlier_defaults(configuration: Configuration) -> dict[str, float]:
    """Return the defaults with which models were saved before ε-greedy and ``--synthcover`` had others."""
    if _searches_actions(configuration) and choose_explorer(configuration).name == "scaled_squarecb":
        return {"epsilon": EXPLORERS["greedy"].epsilon}
    return {"epsilon": 0.0} if configuration.supplied & {"synthcover", "epsilon"} == {"synthcover"} else {}


def _searches_actions(configuration: Configuration) -> bool:
    """Return whether the options choose a search of ``--cb_explore_adf``, and nothing that excludes it."""
    return configuration.supplied >= {"cb_explore_adf", "automl"} and configuration.supplied.isdisjoint(
        ("epsilon", "first_only", "vw_exact")
    )


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
    choose_explorer(configuration).check(configuration)


def check_effects(configuration: Configuration) -> None:
    """Refuse options that the chosen explorer does not use, see `Explorer.check_effects`."""
    choose_explorer(configuration).check_effects(configuration)
