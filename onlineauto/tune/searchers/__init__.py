"""Searchers propose configs. One file for each, and their registry."""

from __future__ import annotations

from onlineauto.options import Parts
from onlineauto.tune.searchers.auto import AutoSearcher
from onlineauto.tune.searchers.cmaes import CmaesSearcher
from onlineauto.tune.searchers.gp import GpSearcher
from onlineauto.tune.searchers.grid import GridSearcher
from onlineauto.tune.searchers.quasi import QuasiSearcher
from onlineauto.tune.searchers.random import RandomSearcher
from onlineauto.tune.searchers.searcher import Searcher
from onlineauto.tune.searchers.tpe import TpeSearcher

__all__ = ["SEARCHERS", "Searcher", "register"]

SEARCHERS: Parts[type[Searcher]] = Parts(
    "searcher",
    Searcher,
    {
        "auto": AutoSearcher,
        "random": RandomSearcher,
        "quasi": QuasiSearcher,
        "grid": GridSearcher,
        "tpe": TpeSearcher,
        "gp": GpSearcher,
        "cmaes": CmaesSearcher,
    },
)
"""Searchers by name."""
register = SEARCHERS.register
"""Make a searcher known by its name; see `onlineauto.options.Parts.register`."""
