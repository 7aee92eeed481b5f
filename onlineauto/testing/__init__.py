"""Conformance suites for a user's parts: oracles, explorers, estimators, schedulers, policies and others."""

from __future__ import annotations

from onlineauto.testing.estimators import check_estimator
from onlineauto.testing.explorers import check_explorer, check_pmf
from onlineauto.testing.members import check_member
from onlineauto.testing.policies import check_policy
from onlineauto.testing.search import check_oracle, check_priority
from onlineauto.testing.studies import check_scheduler, check_searcher, check_store

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
