"""``EncodedEvent``: an event that is predicted first and learnt later, encoded only once."""

from __future__ import annotations

from marshal import dumps
from operator import is_
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from onlineauto.formats.mappings.values import as_lists

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

    `asked` is the encoding without an outcome, and None if the type of a value is not a built-in type of
    Python. `known` is the encoded outcome alone, empty if there is none.

    >>> event = EncodedEvent({"user": "tom"}, [{"article": "politics"}, {"article": "sports"}])
    >>> event.with_outcome(1, cost=-1.0, probability=0.5).mapping()["chosen"]
    1
    """

    __slots__ = ("_outcome", "actions", "asked", "context", "known")

    def __init__(self, context: dict[str, Any], actions: list[Any]) -> None:
        self.context, self.actions = context, actions
        self._outcome: tuple[Any, ...] = _NO_OUTCOME
        self.known: bytes | None = b""
        try:  # like `marshal_values`, without its call, since every decision does this
            self.asked: bytes | None = dumps((context, actions, *_NO_OUTCOME), _VERSION)
        except ValueError:
            self.asked = None

    @property
    def data(self) -> bytes | None:
        """The encoding; None if the type of a value is not a built-in type of Python."""
        if not self.known or self.asked is None:
            return None if self.known is None else self.asked
        return self.asked[:_OUTCOME_START] + self.known

    def list_arrays(self) -> bool:
        """Replace arrays by lists that a kernel reads, and encode again; return whether there were any."""
        lists = with_lists({"context": self.context, "actions": self.actions})
        if lists is None:
            return False
        self.context, self.actions = lists["context"], lists["actions"]
        self.asked = marshal_values((self.context, self.actions, *_NO_OUTCOME))
        return True

    def with_outcome(self, chosen: int, *, cost: float, probability: float) -> EncodedEvent:
        """Return the event with the chosen action, its cost and its probability."""
        event = object.__new__(EncodedEvent)
        event.context, event.actions, event.asked = self.context, self.actions, self.asked
        event._outcome = outcome = (chosen, _MISSING, cost, probability, _MISSING, _MISSING, _MISSING)
        if type(chosen) is int and type(cost) is float and type(probability) is float and chosen < _MOST_INT:
            event.known = _pack_outcome(b"i", chosen, b".g", cost, b"g", probability, b"...")
        else:
            known = marshal_values(outcome)
            event.known = None if known is None else known[_HEAD:]
        return event

    def mapping(self) -> dict[str, Any]:
        """Return the event as a mapping."""
        values = self.context, self.actions, *self._outcome
        return {key: value for key, value in zip(KEYS, values, strict=True) if value is not _MISSING}


_MOST_INT = 2**31
_pack_outcome: Final = Struct("<ci2sdcd3s").pack
"""Encodes outcomes of the usual types like `marshal`, in a third of the time."""
_NO_OUTCOME: Final = (_MISSING,) * (len(KEYS) - 2)
"""The missing values of an event with only context and actions; each is encoded as one byte."""
_OUTCOME_START: Final = -len(_NO_OUTCOME)
"""Index in an encoded event of its missing outcome."""


def values_of(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of `KEYS` of a mapping; Ellipsis for a missing key."""
    get = event.get
    return tuple([get(key, _MISSING) for key in KEYS])


def with_lists(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return an event with lists in place of arrays; None if it has no arrays."""
    changed, context, actions = {}, event.get("context"), event.get("actions")
    if (listed := as_lists(context)) is not context:
        changed["context"] = listed
    if type(actions) is list and not all(map(is_, actions, listed := [*map(as_lists, actions)])):
        changed["actions"] = listed
    return event | changed if changed else None


def marshal_values(values: tuple[Any, ...]) -> bytes | None:
    """Return values encoded by `marshal`; None if a type is not a built-in type of Python."""
    try:
        return dumps(values, _VERSION)
    except ValueError:
        return None
