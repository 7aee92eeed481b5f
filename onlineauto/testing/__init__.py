"""Conformance: hold an oracle or a priority of your own to what the search expects of it."""

from __future__ import annotations

from onlineauto.testing.oracles import check_oracle
from onlineauto.testing.priorities import check_priority

__all__ = ["check_oracle", "check_priority"]
