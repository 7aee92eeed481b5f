"""Oracles, which propose challengers of the champion, and their registry."""

from __future__ import annotations

from onlineauto.automl.oracles.neighbours import Champdupe, OneDiff, OneDiffInclusion, QbaseCubic, Rand
from onlineauto.automl.oracles.oracle import Oracle
from onlineauto.automl.oracles.stepwise import Stepwise
from onlineauto.options import Parts

__all__ = ["ORACLES", "register"]

ORACLES: Parts[Oracle] = Parts(
    "oracle",
    Oracle,
    {
        oracle.name: oracle
        for oracle in (OneDiff(), Rand(), Champdupe(), OneDiffInclusion(), QbaseCubic(), Stepwise())
    },
)
"""Oracles by their names on the command line."""
register = ORACLES.register
"""Make an oracle known by its name; see `onlineauto.options.Parts.register`."""
