"""The options of the ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.engine.ensemble.registry import DEFAULT, MEMBERS, check_names
from onlineauto.options import option

if TYPE_CHECKING:
    from onlineauto.options import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleOptions:
    """Ensemble."""

    title: ClassVar[str] = "Ensemble"

    members: str = option(
        DEFAULT,
        "Learners of the ensemble besides the live configs, separated by commas, or none: "
        + ", ".join(MEMBERS)
        + ".",
        vw=False,
        keep=True,
        override=True,
        metavar="NAMES",
        listed=True,
        needs=("automl",),
    )


def check_members(configuration: Configuration) -> None:
    """Check that ``--members`` names existing members and all that they need."""
    check_names(configuration[EnsembleOptions].members)
