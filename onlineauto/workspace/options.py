"""The registry of all options."""

from __future__ import annotations

from typing import Final

from onlineauto.engine.options.registry import CHECKS, GROUPS
from onlineauto.exact.options import ExactOptions
from onlineauto.exact.refusals import CHECKS as EXACT_CHECKS
from onlineauto.explorers import extend
from onlineauto.explorers.choice import check_effects
from onlineauto.options import Configuration, Registry

__all__ = ["REGISTRY"]


def _check_effects(configuration: Configuration) -> None:
    """Refuse options that the chosen explorer does not use. Vowpal Wabbit takes them, so exact mode does."""
    if not configuration[ExactOptions].vw_exact:
        check_effects(configuration)


REGISTRY: Final = Registry((*GROUPS, ExactOptions), checks=(*EXACT_CHECKS, *CHECKS, _check_effects))
"""The command line, Python, the help and the documentation are made from it."""

extend(REGISTRY)
