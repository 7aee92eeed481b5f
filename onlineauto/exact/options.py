"""The option of exact mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.options import option

if TYPE_CHECKING:
    from onlineauto.automl.control import Control
    from onlineauto.engine.stream.dialect import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactOptions:
    """Options of exact mode."""

    title: ClassVar[str] = "Vowpal Wabbit"

    vw_exact: bool = option(
        False, "Reproduce Vowpal Wabbit 9.11.9 bit for bit, its defects included.", vw=False, keep=True
    )

    def bytewise_letters(self) -> bool | None:
        """Return True in exact mode, where letters of options are bytes, else None."""
        return self.vw_exact or None

    def dialect(self) -> Dialect | None:
        """Return the dialect of VW in exact mode, else None."""
        if not self.vw_exact:
            return None
        from onlineauto.exact.dialect import VW

        return VW

    def control(self) -> Control | None:
        """Return the control plane of VW in exact mode, else None."""
        if not self.vw_exact:
            return None
        from onlineauto.exact.control import VW

        return VW
