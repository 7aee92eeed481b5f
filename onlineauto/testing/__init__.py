"""Conformance suites for a user's parts: oracles, explorers, estimators, schedulers, policies and others."""

from __future__ import annotations

from onlineauto.testing.estimators import check_estimator
from onlineauto.testing.explorers import check_explorer, check_pmf
from onlineauto.testing.members import check_member
from onlineauto.testing.oracles import check_oracle
from onlineauto.testing.policies import check_policy
from onlineauto.testing.priorities import check_priority
from onlineauto.testing.schedulers import check_scheduler
from onlineauto.testing.searchers import check_searcher
from onlineauto.testing.stores import check_store

__all__ = [
    "check_estimator",
    "check_explorer",
    "check_member",
    "check_oracle",
    "check_pmf",
    "check_policy",
    "check_priority",
    "check_scheduler",
    "check_searcher",
    "check_store",
]
