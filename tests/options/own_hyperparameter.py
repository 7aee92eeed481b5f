"""A hyperparameter from outside the package: how much of a learning rate a live config takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlineauto.features.records import Records
from onlineauto.options import option
from onlineauto.options.registry import Log


def _write(record: Records, value: float, default: float) -> None:
    record["rate"] *= value


@dataclass(frozen=True, slots=True, kw_only=True)
class CautionOptions:
    """Caution."""

    title: ClassVar[str] = "Caution"

    caution: float = option(
        1.0,
        "Part of the learning rate that is used.",
        vw=False,
        keep=True,
        above=0,
        tunable=Log(0.01, 10, write=_write),
    )
