"""Outer tuners: spaces, schedulers, searchers, and studies that many processes share."""

from __future__ import annotations

from onlineauto.tune.schedulers import SCHEDULERS, Decision, ResumeFrom, Scheduler, Setting, State, Suggestion
from onlineauto.tune.searchers import SEARCHERS, Searcher
from onlineauto.tune.spaces import (
    Choice,
    Float,
    Int,
    Parameter,
    Space,
    from_configspace,
    space_of_options,
    to_configspace,
)
from onlineauto.tune.store import LeaseLost, Store
from onlineauto.tune.study import Study
from onlineauto.tune.trial import Job, Trial

__all__ = [
    "SCHEDULERS",
    "SEARCHERS",
    "Choice",
    "Decision",
    "Float",
    "Int",
    "Job",
    "LeaseLost",
    "Parameter",
    "ResumeFrom",
    "Scheduler",
    "Searcher",
    "Setting",
    "Space",
    "State",
    "Store",
    "Study",
    "Suggestion",
    "Trial",
    "from_configspace",
    "space_of_options",
    "to_configspace",
]
