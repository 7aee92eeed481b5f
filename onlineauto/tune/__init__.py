"""Tune hyperparameters: spaces, schedulers, searchers, and studies that many processes share."""

from __future__ import annotations

from onlineauto.tune import distributions, exceptions, integration, logging, pruners, samplers, visualization
from onlineauto.tune.active_trial import ActiveTrial, TrialPruned
from onlineauto.tune.creating import copy_study, create_study, load_study
from onlineauto.tune.drawing import draw_study
from onlineauto.tune.objective_study import ObjectiveStudy
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
from onlineauto.tune.study_view import StudyDirection, StudyState
from onlineauto.tune.terminator import Terminator
from onlineauto.tune.trial import FrozenTrial, Job, Trial, TrialState, create_trial
from onlineauto.tune.tuner import ResultGrid, RunConfig, TuneConfig, Tuner
from onlineauto.tune.workers.hooks import Callback, Plateau, Stopper, Target, Timeout
from onlineauto.tune.workers.resources import Headcount, RayWorkers, Workers
from onlineauto.tune.workers.trainable import Trainable

__all__ = [
    "SCHEDULERS",
    "SEARCHERS",
    "ActiveTrial",
    "Callback",
    "Categorical",
    "Decision",
    "Float",
    "FrozenTrial",
    "Headcount",
    "Int",
    "Job",
    "LeaseLost",
    "ObjectiveStudy",
    "Parameter",
    "Plateau",
    "RayWorkers",
    "ResultGrid",
    "ResumeFrom",
    "RunConfig",
    "Scheduler",
    "Searcher",
    "Setting",
    "Space",
    "State",
    "Stopper",
    "Store",
    "Study",
    "StudyDirection",
    "StudyState",
    "Suggestion",
    "Target",
    "Terminator",
    "Timeout",
    "Trainable",
    "Trial",
    "TrialPruned",
    "TrialState",
    "TuneConfig",
    "Tuner",
    "Workers",
    "copy_study",
    "create_study",
    "create_trial",
    "distributions",
    "draw_study",
    "exceptions",
    "from_configspace",
    "integration",
    "load_study",
    "logging",
    "pruners",
    "samplers",
    "space_of_options",
    "to_configspace",
    "visualization",
]

Choice = Categorical
"""The earlier name of `Categorical`."""
