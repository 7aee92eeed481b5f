"""Oracles, which propose challengers of the champion: one file for each, and their registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.oracles.champdupe import Champdupe
from onlineauto.automl.oracles.one_diff import OneDiff
from onlineauto.automl.oracles.one_diff_inclusion import OneDiffInclusion
from onlineauto.automl.oracles.qbase_cubic import QbaseCubic
from onlineauto.automl.oracles.rand import Rand
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
