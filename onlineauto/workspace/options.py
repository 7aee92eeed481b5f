"""The registry of all options."""

from __future__ import annotations

from typing import Final

from onlineauto.engine.options.registry import CHECKS, GROUPS
from onlineauto.exact.options import ExactOptions
from onlineauto.exact.refusals import CHECKS as EXACT_CHECKS
from onlineauto.options import Registry

__all__ = ["REGISTRY"]

REGISTRY: Final = Registry((*GROUPS, ExactOptions), checks=(*EXACT_CHECKS, *CHECKS))
"""The command line, Python, the help and the documentation are made from it."""
