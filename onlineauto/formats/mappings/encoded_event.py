"""``EncodedEvent``: an event that is predicted first and learnt later, encoded only once."""

from __future__ import annotations

from marshal import dumps
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS: Final = (
    "context", "actions", "chosen", "action", "cost", "probability", "label", "weight", "initial",
)  # fmt: skip
"""The keys of an event, in the order of the encoding."""
_MISSING: Final = ...
_VERSION = 2
"""Version of `marshal`'s format: the last one without references to earlier values."""
_HEAD = 5
"""Number of bytes of an encoded tuple before its first value."""


class EncodedEvent:
    """A context and actions as Python values, and their encoding that a kernel reads.

    Parameters
    ----------
    context : dict
        The features of the context.
    actions : list of mappings
        The features of each action.

    Attributes
    ----------
    values : tuple
        The values of `KEYS`; Ellipsis for a missing value.
    data : bytes or None
        The encoded values; None if a value's type is not a built-in type of Python.

    Examples
    --------
    >>> event = EncodedEvent({"user": "tom"}, [{"article": "politics"}, {"article": "sports"}])
    >>> event.with_outcome(1, cost=-1.0, probability=0.5).mapping()["chosen"]
    1
    """

    __slots__ = ("data", "values")

    def __init__(self, context: dict[str, Any], actions: list[Any]) -> None:
        self.values: tuple[Any, ...] = (context, actions, *_NO_OUTCOME)
        self.data = marshal_values(self.values)

    def with_outcome(self, chosen: int, *, cost: float, probability: float) -> EncodedEvent:
        """Return the event with the chosen action, its cost and its probability."""
        event = object.__new__(EncodedEvent)
        outcome = (chosen, _MISSING, cost, probability, _MISSING, _MISSING, _MISSING)
        event.values = (*self.values[:2], *outcome)
        asked, known = self.data, marshal_values(outcome)
        event.data = asked and known and asked[: -len(_NO_OUTCOME)] + known[_HEAD:]
        return event

    def mapping(self) -> dict[str, Any]:
        """Return the event as a mapping."""
        return {key: value for key, value in zip(KEYS, self.values, strict=True) if value is not _MISSING}


_NO_OUTCOME: Final = (_MISSING,) * (len(KEYS) - 2)
"""The missing values of an event with only context and actions; each is encoded as one byte."""


def values_of(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of `KEYS` of a mapping; Ellipsis for a missing key."""
    get = event.get
    return tuple([get(key, _MISSING) for key in KEYS])


def marshal_values(values: tuple[Any, ...]) -> bytes | None:
    """Return values encoded by `marshal`; None if a type is not a built-in type of Python."""
    try:
        return dumps(values, _VERSION)
    except ValueError:
        return None
