"""Oracles, which propose challengers of the champion, and their registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.oracles.neighbours import Champdupe, OneDiff, OneDiffInclusion, QbaseCubic, Rand
from onlineauto.automl.oracles.stepwise import Stepwise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.automl.oracles.oracle import Oracle

__all__ = ["ORACLES"]

ORACLES: Mapping[str, Oracle] = {
    "one_diff": OneDiff(),
    "rand": Rand(),
    "champdupe": Champdupe(),
    "one_diff_inclusion": OneDiffInclusion(),
    "qbase_cubic": QbaseCubic(),
    "stepwise": Stepwise(),
}
"""Oracles by their names on the command line."""
