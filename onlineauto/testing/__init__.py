"""Conformance suites that check oracles, priorities, estimators and explorers, also those of users."""

from __future__ import annotations

from onlineauto.testing.estimators import check_estimator
from onlineauto.testing.explorers import check_explorer, check_pmf
from onlineauto.testing.oracles import check_oracle
from onlineauto.testing.priorities import check_priority

__all__ = ["check_estimator", "check_explorer", "check_oracle", "check_pmf", "check_priority"]
