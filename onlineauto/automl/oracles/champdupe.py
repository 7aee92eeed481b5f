"""``--oracle_type champdupe``: a copy of the champion, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.config import Config, ConfigKind
from onlineauto.automl.oracles.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.oracles.oracle import SearchSpace
    from onlineauto.automl.random_draw import RandomOrder


class Champdupe(Oracle):
    """Proposes a copy of the champion, which must learn the same, and a config without interactions.

    Source: VW ``champdupe_impl``.
    """

    once: ClassVar[bool] = True

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:  # noqa: ARG002
        """Return these two configs."""
        return [Config((), ConfigKind.INCLUSION), champion]
