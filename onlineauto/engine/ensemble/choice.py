"""The members that the options choose for a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.ensemble.inputs import can_have_members
from onlineauto.engine.ensemble.options import EnsembleOptions
from onlineauto.engine.ensemble.registry import members_of

if TYPE_CHECKING:
    from onlineauto.engine.ensemble.member import Member
    from onlineauto.engine.records.task import Task
    from onlineauto.options import Configuration

__all__ = ["chosen_members"]


def chosen_members(configuration: Configuration, task: Task) -> tuple[Member, ...]:
    """Return the members of an ensemble, in the order of their weights; with slots there are none."""
    return members_of(configuration[EnsembleOptions].members) if can_have_members(task) else ()
