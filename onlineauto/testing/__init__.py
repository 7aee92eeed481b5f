"""Conformance: hold an oracle, a priority or an estimator of your own to what the search expects of it."""

from __future__ import annotations

from onlineauto.testing.estimators import check_estimator
from onlineauto.testing.oracles import check_oracle
from onlineauto.testing.priorities import check_priority

__all__ = ["check_estimator", "check_oracle", "check_priority"]
