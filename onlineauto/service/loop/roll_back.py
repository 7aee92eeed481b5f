"""``changes_after_alarm``: the settings with which a service answers a broken guardrail."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from onlineauto.service.learning.experiment import CANARY

if TYPE_CHECKING:
    from onlineauto.service.join.settings import JoinSettings
    from onlineauto.service.learning.experiment import Experiment

_LOG = logging.getLogger("onlineauto.service")
NO_CANARY: Final[dict[str, Any]] = {"canary": "", "canary_share": 0.0}
"""The settings that end a canary."""


def changes_after_alarm(experiment: Experiment, settings: JoinSettings) -> dict[str, Any]:
    """Return the settings to change: a failed canary ends, and else the baseline decides; empty if none."""
    arm = experiment.failed_arm()
    changes: dict[str, Any] = {}
    if arm == CANARY and settings.canary:
        changes = NO_CANARY
    elif arm and arm != CANARY and settings.mode == "online":
        changes = {"mode": "apprentice"}
    if changes:
        _LOG.error(
            "a guardrail is broken: the %s is rolled back",
            arm,
            extra={"event": "rolled_back", "arm": arm, "quantity": experiment.alarms[-1].quantity},
        )
    return changes
