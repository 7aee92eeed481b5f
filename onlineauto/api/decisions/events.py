"""Events of `AutoML`: actions may have ids, and rewards may replace costs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from onlineauto.api.numbers import as_float
from onlineauto.errors import EventTypeError, InputError, kind_of, short_repr
from onlineauto.features.block import DEFAULT
from onlineauto.formats.mappings.encoded_event import marshal_values
from onlineauto.formats.mappings.named_event import EVENT_KEYS, refuse_unknown
from onlineauto.formats.mappings.values import is_missing, plain, whole_number

if TYPE_CHECKING:
    from typing import TypeAlias

    from onlineauto.workspace.workspace import Workspace

_MOST = (2 - 2**-23) * 2.0**127
"""The largest float32."""

Features: TypeAlias = "Mapping[str, Any]"
"""Features by namespace, as for `onlineauto.interop.from_dicts`."""

COMPARED: Final = 100
"""Number of the first events of a model whose actions are compared with each other."""

EQUAL_ACTIONS: Final = (
    "the actions have the same features, so they cannot be told apart: ids are no features, give "
    "{'article': id}"
)

Actions: TypeAlias = "Sequence[Features] | Mapping[Any, Features]"
"""The features of each action, in a list or by the action's id."""


def copy_context(context: Features) -> dict[str, Any]:
    """Return a copy of a context, which the caller may change afterwards."""
    if type(context) is not dict and not isinstance(context, Mapping):
        row = "; of a frame: frame[columns].iloc[0].to_dict()" if hasattr(context, "shape") else ""
        raise InputError(
            f"event: the context is a mapping such as {{'user': 'tom'}}, not {kind_of(context)}{row}"
        )
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


def lists_of_actions(actions: Any, n_events: int) -> tuple[list[Actions], int | None]:
    """Return the actions of each of many events, and the number of actions if one list has those of all."""
    listed: list[Any] = list_features(actions)
    if not isinstance(actions, Mapping) and listed and all(map(_may_be_by_id, listed)):
        raise InputError(
            "a list of mappings of mappings may have the actions of each event by id, or those of all "
            "events: give a list of lists, or one mapping of ids for all events"
        )
    if isinstance(actions, Mapping) or (listed and all(isinstance(each, Mapping | str) for each in listed)):
        return [actions if isinstance(actions, Mapping) else listed] * n_events, len(listed)
    if len(listed) != n_events:
        raise InputError(
            f"there are {n_events} contexts, and {len(listed)} lists of actions: give one for each, or a "
            "list of mappings for all"
        )
    return listed, None


def _may_be_by_id(action: Any) -> bool:
    """Return whether what may be the features of an action may also be actions by id."""
    is_full = isinstance(action, Mapping) and len(action) > 0
    return is_full and all(isinstance(each, Mapping) for each in action.values())


def learnt_columns(
    rows: Sequence[Features],
    lists: Iterable[Any],
    workspace: Workspace,
    *,
    of_context: Iterable[str],
    of_actions: Iterable[str],
    stacklevel: int,
) -> list[dict[str, Any]]:
    """Return the rows of a frame without the columns that a workspace has not learnt as the context.

    The columns of the actions are those in `lists` and `of_actions`, but not those known to be `of_context`.
    Warn of learnt columns that the frame lacks.
    """
    with workspace.lock:
        layout, encoded = workspace.layout.state(), workspace.search.of_actions
    learnt = {name.decode("utf-8", "replace") for name in (*layout["known"], *layout["left_out"])}
    different = {id(actions): actions for actions in lists}  # which may be one list, for all rows
    actions: Iterable[Any] = chain.from_iterable(map(list_features, different.values()))
    keys = {*of_actions} | {str(name) for action in actions if isinstance(action, Mapping) for name in action}
    keys -= {*of_context}
    # The namespaces of a struct may be those of its fields, so it is not compared.
    structs = {name for row in rows for name, value in row.items() if isinstance(value, Mapping)}
    names = {name for row in rows[:1] for name in row if (name or DEFAULT.decode()) in learnt} | structs
    names -= keys
    absent = learnt - keys - names - {name.decode("utf-8", "replace") for name in encoded}
    if rows and absent and not names:
        raise InputError(
            f"the frame has no column that was learnt as the context: {', '.join(sorted(absent))}; "
            f"there are {', '.join(rows[0])}"
        )
    if rows and absent and not structs:
        text = f"the frame lacks columns that were learnt: {', '.join(sorted(absent))}"
        warnings.warn(text, UserWarning, stacklevel=stacklevel)
    return [{name: value for name, value in row.items() if name in names} for row in rows]


def are_equal(actions: Sequence[Features]) -> bool:
    """Return whether there are several actions, all with the same features; False if some are unusual types.

    >>> are_equal([{}, {}]), are_equal([{"article": 1}, {"article": True}]), are_equal([{}])
    (True, False, False)
    """
    first = marshal_values((actions[0],)) if len(actions) > 1 else None
    return first is not None and all(marshal_values((action,)) == first for action in actions[1:])


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
    """Return an event of `AutoML.fit` as a mapping for `from_dicts`, and what its label lacks, or ""."""
    where = f"event {number}"
    if not isinstance(event, Mapping):
        type_name = type(event).__name__
        raise EventTypeError(f"{where}: an event is a mapping, a text or a Block, not {type_name}")
    if "actions" not in event:
        raise InputError(f"{where}: it has no actions, of which a decision takes one")
    refuse_unknown(event, (*EVENT_KEYS, "reward"), where, "an event")
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
