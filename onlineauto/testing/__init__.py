"""Conformance: hold an oracle, priority, estimator or explorer of your own to what is expected of it."""

from __future__ import annotations

from onlineauto.testing.estimators import check_estimator
from onlineauto.testing.explorers import check_explorer, check_pmf
from onlineauto.testing.oracles import check_oracle
from onlineauto.testing.priorities import check_priority

__all__ = ["check_estimator", "check_explorer", "check_oracle", "check_pmf", "check_priority"]
