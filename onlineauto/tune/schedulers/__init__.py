"""Schedulers allocate resources to trials. One file for each scheduler, and their registry."""

from __future__ import annotations

from onlineauto.options import Parts
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.schedulers.median import Median
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.schedulers.pruning import Pruning
from onlineauto.tune.schedulers.race import Race
from onlineauto.tune.schedulers.scheduler import (
    Decision,
    ResumeFrom,
    Scheduler,
    Setting,
    State,
    Suggestion,
)

__all__ = ["SCHEDULERS", "Decision", "ResumeFrom", "Scheduler", "Setting", "State", "Suggestion", "register"]

SCHEDULERS: Parts[type[Scheduler]] = Parts(
    "scheduler",
    Scheduler,
    {
        "hyperband": Hyperband,
        "race": Race,
        "dehb": Dehb,
        "asha": Asha,
        "median": Median,
        "pruning": Pruning,
        "pbt": Pbt,
        "fifo": FifoScheduler,
    },
)
"""Schedulers by name."""
register = SCHEDULERS.register
"""Make a scheduler known by its name; see `onlineauto.options.Parts.register`."""
