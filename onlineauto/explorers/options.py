"""The options that explorers share, and the explorer that a configuration chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.errors import OptionError
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.explorer import EXPLORING, explores
from onlineauto.explorers.sampling import SampleOptions
from onlineauto.options import option

if TYPE_CHECKING:
    from onlineauto.explorers.explorer import Explorer
    from onlineauto.options import Configuration
    from onlineauto.options.registry import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOptions:
    """Options of slots."""

    title: ClassVar[str] = "Exploration: slots"

    ccb_explore_adf: bool = option(
        False,
        "Learn like --cb_explore_adf for each slot of an event, one after the other. A slot cannot have the "
        "action of an earlier slot. Always samples as --cb_sample does.",
        keep=True,
    )
    all_slots_loss: bool = option(
        False, "Report the loss of all slots, not of the first one only.", needs=("ccb_explore_adf",)
    )
    ccb_no_slot_index: bool = option(
        False,
        "Leave out the features and interactions by which models distinguish the slots of an event.",
        keep=True,
        needs=("ccb_explore_adf",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorerOptions:
    """Options of exploration."""

    title: ClassVar[str] = "Exploration"

    cb_explore: int | None = option(
        None,
        "Learn like --cb K; predict a probability for each of the K actions.",
        keep=True,
        minimum=1,
        maximum=2**32 - 1,
        metavar="K",
    )
    cb_explore_adf: bool = option(
        False, "Learn like --cb_adf; predict a probability for each action.", keep=True
    )
    epsilon: float = option(
        0.05,
        "Probability that all actions share; the best one gets the rest. With another explorer, the least "
        "probability times the number of actions; then the default is 0, or 0.01 for --scaled_squarecb and "
        "--synthcover.",
        keep=True,
        override=True,
        minimum=0,
        maximum=1,
        needs=EXPLORING,
    )
    first_only: bool = option(
        False,
        "Let only the first of several best actions get the rest. Without it, they share the rest.",
        keep=True,
        override=True,
        needs=EXPLORING,
    )


EXPLORER_GROUPS: tuple[Group, ...] = (
    ExplorerOptions,
    *(group for explorer in EXPLORERS.values() for group in explorer.options),
    SampleOptions,
    SlotOptions,
)
"""All groups of options of explorers, in the order of the help."""


def choose_explorer(configuration: Configuration) -> Explorer:
    """Return the explorer that the options choose: by default ε-greedy, or scaled SquareCB for a search."""
    for explorer in EXPLORERS.values() if explores(configuration) else ():
        if not configuration.supplied.isdisjoint(explorer.flags):
            return explorer
    return EXPLORERS["scaled_squarecb" if _searches_actions(configuration) else "greedy"]


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
