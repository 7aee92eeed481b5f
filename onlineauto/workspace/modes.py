"""Modes: the semantics selected by the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.loop.semantics import NATIVE
from onlineauto.exact.options import ExactOptions
from onlineauto.exact.semantics import EXACT

if TYPE_CHECKING:
    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.options import Configuration


def semantics_of(configuration: Configuration) -> Semantics:
    """Return the semantics for some options: exact with ``--vw_exact``, else native."""
    return EXACT if configuration[ExactOptions].vw_exact else NATIVE
