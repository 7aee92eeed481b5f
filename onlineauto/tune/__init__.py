"""Tune hyperparameters: spaces, schedulers, searchers, and studies that many processes share."""

from __future__ import annotations

from onlineauto.tune.drawing import draw_study
from onlineauto.tune.schedulers import SCHEDULERS, Decision, ResumeFrom, Scheduler, Setting, State, Suggestion
from onlineauto.tune.searchers import SEARCHERS, Searcher
from onlineauto.tune.spaces import (
    Categorical,
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
from onlineauto.tune.study_view import StudyState
from onlineauto.tune.trial import Job, Trial
from onlineauto.tune.workers.callbacks import Callback
from onlineauto.tune.workers.headcount import Headcount
from onlineauto.tune.workers.on_ray.ray_workers import RayWorkers
from onlineauto.tune.workers.resources import Workers
from onlineauto.tune.workers.stoppers import Plateau, Stopper, Target, Timeout
from onlineauto.tune.workers.trainable import Trainable

__all__ = [
    "SCHEDULERS",
    "SEARCHERS",
    "Callback",
    "Categorical",
    "Decision",
    "Float",
    "Headcount",
    "Int",
    "Job",
    "LeaseLost",
    "Parameter",
    "Plateau",
    "RayWorkers",
    "ResumeFrom",
    "Scheduler",
    "Searcher",
    "Setting",
    "Space",
    "State",
    "Stopper",
    "Store",
    "Study",
    "StudyState",
    "Suggestion",
    "Target",
    "Timeout",
    "Trainable",
    "Trial",
    "Workers",
    "draw_study",
    "from_configspace",
    "space_of_options",
    "to_configspace",
]

Choice = Categorical
"""The earlier name of `Categorical`."""
