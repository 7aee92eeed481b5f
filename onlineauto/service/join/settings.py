"""``JoinSettings``: the rules by which decisions wait for their rewards, which the log can change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["JoinSettings", "read_settings"]


class JoinSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules by which decisions wait for their rewards and end.

    Attributes
    ----------
    reward_wait : float
        Seconds for which a decision waits. A change holds for later decisions.
    default_reward : float
        The reward of a decision that got none.
    aggregation : str
        One of `onlineauto.service.join.aggregation.AGGREGATIONS`.
    mode : {"online", "apprentice", "logging-only"}
        Who decides, and whether what is joined is learnt.
    options : str
        Options of the model, as on a command line.
    reward_range : tuple of (float, float), optional
        The lowest and the highest reward. A reward beyond it counts as the nearer of the two; by default the
        bound is learnt (`onlineauto.service.join.scale`).
    max_finished : int
        The number of finished decisions that are remembered until their wait is over, to recognise
        repetitions. At least the latest half of them are.
    """

    reward_wait: float = 600.0
    default_reward: float = 0.0
    aggregation: str = "first"
    mode: str = "online"
    options: str = ""
    reward_range: tuple[float, float] | None = None
    max_finished: int = 1_000_000


def read_settings(values: Mapping[str, Any]) -> JoinSettings:
    """Return the settings of a record of the log.

    Raises
    ------
    InputError
        They are those of a later program, or of none.
    """
    try:
        return msgspec.convert(values, JoinSettings)
    except msgspec.ValidationError as error:
        raise InputError(f"the log has settings that this program does not know: {error}") from None
