"""Priorities, which rank the waiting configs, and their registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.priorities.priority import FavorPopularNamespaces, NoPriority

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.automl.priorities.priority import Priority

__all__ = ["PRIORITIES"]

PRIORITIES: Mapping[str, Priority] = {
    "none": NoPriority(),
    "favor_popular_namespaces": FavorPopularNamespaces(),
}
"""Priorities by their names on the command line."""
