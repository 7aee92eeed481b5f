"""``--priority_type none``: the config that was proposed last is next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.priorities.priority import Priority

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.automl.config import Config


class NoPriority(Priority):
    """Gives every config the same priority."""

    def of(self, config: Config, count: Callable[[bytes], int]) -> float:  # noqa: ARG002
        """Return 0."""
        return 0.0
