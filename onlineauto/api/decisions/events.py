"""Events of `AutoML`: actions may have ids, and rewards may replace costs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onlineauto.api.numbers import as_float
from onlineauto.errors import EventTypeError, InputError, short_repr
from onlineauto.formats.mappings.values import is_missing, plain, whole_number

if TYPE_CHECKING:
    from typing import TypeAlias

_MOST = (2 - 2**-23) * 2.0**127
"""The largest float32."""

Features: TypeAlias = "Mapping[str, Any]"
"""Features by namespace, as for `onlineauto.interop.from_dicts`."""

Actions: TypeAlias = "Sequence[Features] | Mapping[Any, Features]"
"""The features of each action, in a list or by the action's id."""


def copy_context(context: Features) -> dict[str, Any]:
    """Return a copy of a context, which the caller may change afterwards."""
    if type(context) is not dict and not isinstance(context, Mapping):
        raise InputError(f"event: the context is a mapping of features, not {type(context).__name__}")
    return context.copy() if type(context) is dict else dict(context)


def list_features(actions: Any, *, where: str = "event") -> list[Features]:
    """Return the features of the actions as a new list."""
    if type(actions) is list:  # a fast test for the usual case
        return actions[:]
    if isinstance(actions, str | bytes) or not isinstance(actions, Iterable):
        raise InputError(
            f"{where}: actions are a list or a mapping of features, not {type(actions).__name__}"
        )
    return list(actions.values() if isinstance(actions, Mapping) else actions)


def index_of(action: Hashable, actions: Actions, *, where: str = "event") -> int:
    """Return the index of an action, passed as an id if the actions have ids, else as an index."""
    if isinstance(actions, Mapping):
        if action not in actions:
            raise InputError(
                f"{where}: there is no action {short_repr(action)}; the ids are {_first_ids(list(actions))}"
            )
        return list(actions).index(action)
    index = whole_number(action)
    if index is None:
        raise InputError(
            f"{where}: the action is {short_repr(action)}; in a list, it is an index from 0 "
            "(a mapping has ids)"
        )
    if not 0 <= index < len(actions):
        raise InputError(
            f"{where}: the action is {short_repr(index)}, and there are {len(actions)}, counted from 0"
        )
    return index


def cost_of(reward: object, cost: object, *, where: str = "event") -> float:
    """Return the cost of an event from either its reward or its cost.

    >>> cost_of(1, None), cost_of(None, 0.5)
    (-1.0, 0.5)
    """
    if cost is None and type(reward) is float and -_MOST <= reward <= _MOST:  # the usual case
        return -reward
    if (reward is None) == (cost is None):
        raise InputError(f"{where}: give either reward or cost" + (", not both" if cost is not None else ""))
    name, value = ("cost", cost) if reward is None else ("reward", reward)
    builtin = plain(value)
    if not isinstance(builtin, float | int) or not math.isfinite(number := as_float(builtin)):
        raise InputError(f"{where}: {name} {short_repr(value)} is not a finite number")
    if abs(number) > _MOST:
        raise InputError(f"{where}: {name} {short_repr(value)} is too large for a float32")
    return number if reward is None else -number


def logged_event(event: object, number: int) -> tuple[Mapping[str, Any], str]:
    """Return an event of `AutoML.fit` as a mapping for `from_dicts`, and what its label lacks, or "".

    It may have ``reward`` in place of ``cost``, ``action`` in place of ``chosen``, and actions by id. If the
    cost or reward, the action or the probability is missing, the event has no label.
    """
    where = f"event {number}"
    if not isinstance(event, Mapping):
        type_name = type(event).__name__
        raise EventTypeError(f"{where}: an event is a mapping, a text or a Block, not {type_name}")
    if "actions" not in event:
        raise InputError(f"{where}: it has no actions, of which a decision takes one")
    mapping = dict(event)
    actions = mapping["actions"]
    mapping["actions"] = list_features(actions, where=where)
    action = mapping.pop("action", mapping.get("chosen"))
    if not is_missing(action):
        mapping["chosen"] = index_of(action, actions, where=where)
    known = {name: mapping.pop(name) for name in ("reward", "cost") if name in mapping}
    present = {name: value for name, value in known.items() if not is_missing(value)}
    if not present:
        return mapping | ({"cost": None} if known else {}), ", ".join(
            f"{k} {short_repr(v)}" for k, v in known.items()
        )
    mapping["cost"] = cost_of(present.get("reward"), present.get("cost"), where=where)
    lacking = [name for name in ("chosen", "probability") if is_missing(mapping.get(name))]
    if lacking and "slots" not in mapping:
        mapping["cost"] = None
        return mapping, ", ".join(f"{name} {short_repr(mapping.get(name))}" for name in lacking)
    return mapping, ""


def _first_ids(ids: list[Any]) -> str:
    """Return the first ids as text."""
    text = ", ".join(map(short_repr, ids[:5]))
    return text + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
