"""Explore first: all actions alike for the first events that are learnt, then only the best.

For as long as it explores the log is uniform, which suits every later comparison; after that nothing is
found out any more.

Source: VW's ``--first``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import Explorer
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration

__all__ = ["First", "FirstOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOptions:
    """Explore first."""

    title: ClassVar[str] = "Exploration: first"

    first: int | None = option(
        None,
        "Choose among all actions alike until N events are learnt, and the best one after that.",
        keep=True,
        minimum=0,
        maximum=2**63 - 1,
        metavar="N",
        needs=("cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )


class First(Explorer):
    """All actions alike at first, then the best."""

    name = "first"
    flags = ("first",)

    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """How many events are for exploring."""
        del exact
        return {"tau": configuration[FirstOptions].first or 0}
