"""``seconds_of``: a duration, in seconds or as ISO 8601 writes it, as Personalizer's settings do."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from onlineauto.errors import OptionError


def seconds_of(duration: float | str, *, name: str) -> float:
    """Return a duration in seconds; `name` is that of the setting, for errors.

    >>> seconds_of("PT10M", name="reward_wait"), seconds_of("90", name="reward_wait")
    (600.0, 90.0)
    """
    try:
        return float(duration)
    except ValueError:
        pass
    try:
        return msgspec.convert(duration, timedelta).total_seconds()
    except msgspec.ValidationError:
        raise OptionError(
            f"{name} is a number of seconds, or a duration like PT10M or P1DT12H, not {duration!r}"
        ) from None
