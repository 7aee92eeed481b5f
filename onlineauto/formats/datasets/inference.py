"""Infer the roles of a dataset's columns from their names, their types and the first rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.errors import InputError
from onlineauto.formats.datasets.arrow_arrays import (
    MOST_ELEMENTS,
    as_texts,
    column_at,
    is_list,
    is_number,
    is_text,
    numbers_of,
    plain_values,
    pyarrow,
    run_codes,
    texts_of,
    type_at,
    why_unsupported,
)
from onlineauto.formats.datasets.columns import DatasetColumns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


_NAMES: Final = {
    "probability": ("probability", "propensity", "prob", "p", "pscore", "action_prob", "propensity_score"),
    "cost": ("cost",),
    "reward": ("reward", "click", "clicked"),
    "chosen": ("chosen", "chosen_index", "action_index", "clicked_index", "selected_index"),
    "action": ("action", "action_id", "arm", "choice", "chosen_action", "item_id", "item", "treatment"),
    "event": ("event", "event_id", "decision_id", "impression_id", "request_id"),
    "label": ("label", "target", "y"),
    "weight": ("weight", "sample_weight", "importance_weight"),
}
"""Lower-case names of columns for each role; the first name that exists is used."""
_ID: Final = re.compile(r"(?:^|[_.])ids?$|[a-z]I[dD]$", re.ASCII)
_OUTCOME: Final = (
    "an outcome needs the index of the action that was taken, in a column of its own: chosen = …"
)
_FLAG: Final = "it says which action was taken, which is an outcome and no feature"
_NUMERIC: Final = ("probability", "cost", "reward", "label", "weight")


def infer_columns(schema: Any, first: Any | None, *, decides: bool | None) -> DatasetColumns:
    """Return the inferred roles of the columns of a dataset, by its first rows if they are known.

    `decides` is whether rows are decisions, or None to infer that, too.
    """
    roles = {role: name for role, names in _NAMES.items() if (name := _first_name(schema, names, role))}
    if "cost" in roles and "reward" in roles:
        del roles["reward"]
    if decides is None:
        decides = "probability" in roles
    if not decides:
        if "label" not in roles:
            raise _ambiguity(schema, "which one is the label")
        chosen: dict[str, Any] = {name: roles[name] for name in ("label", "weight") if name in roles}
        chosen |= {"tag": roles["event"]} if "event" in roles else {}
        return _with_features(schema, "labels", chosen, {})
    chosen = {name: roles[name] for name in ("cost", "reward", "probability", "weight") if name in roles}
    for name in schema.names:
        if is_list(kind := schema.field(name).type) and pyarrow().types.is_struct(kind.value_type):
            roles.setdefault("list", name)
    if "list" in roles:
        chosen |= {name: roles[name] for name in ("list", "chosen") if name in roles}
        return _with_lists(schema, chosen, roles.get("event"))
    flag = {name: f"{name}: {_FLAG}" for role, name in roles.items() if role == "chosen"}
    repeats = "event" in roles and first is not None and _repeats(first, roles, chosen)
    if "action" not in roles and first is not None and not repeats:
        roles |= _likely_action(schema, first, roles)
    if "action" in roles and not repeats:
        chosen |= {"action": roles["action"]} | ({"tag": roles["event"]} if "event" in roles else {})
        return _with_features(schema, "events", chosen, flag)
    if "event" in roles and (repeats or first is None):
        chosen["event"] = roles["event"]
        columns, left_out = features_of(schema, {*chosen.values(), *flag})
        context, actions = _split(first, roles["event"], columns)
        if not actions:
            raise _ambiguity(schema, "which columns describe the actions")
        chosen |= {"categories": _ids(schema, columns), "left_out": (*flag.values(), *left_out)}
        return DatasetColumns(rows="actions", context=context, actions=actions, **chosen)
    raise _ambiguity(schema, "which column or columns describe the actions")


def _with_features(
    schema: Any, rows: str, chosen: Mapping[str, Any], unused: Mapping[str, str]
) -> DatasetColumns:
    """Return columns whose other columns are features of the context; `unused` has reasons by column."""
    context, left_out = features_of(schema, {*chosen.values(), *unused})
    left_out = (*unused.values(), *left_out)
    ids = _ids(schema, context)
    return DatasetColumns(rows=rows, context=context, categories=ids, left_out=left_out, **chosen)


def _first_name(schema: Any, names: Iterable[str], role: str) -> str | None:
    by_lower = {name.lower(): name for name in reversed(schema.names)}
    matches: list[str] = [by_lower[name] for name in names if name in by_lower]
    for name in matches:
        kind = type_at(schema, name)
        if is_number(kind) if role in _NUMERIC or role == "chosen" else is_number(kind) or is_text(kind):
            return name
    return None


def _ambiguity(schema: Any, role: str) -> InputError:
    return InputError(
        f"the columns do not say {role}; there are {', '.join(schema.names)}. Describe them in a file for "
        "--columns; `onlineauto columns --help` shows one"
    )


def _with_lists(schema: Any, taken: dict[str, Any], event: str | None) -> DatasetColumns:
    """Return columns whose actions are a list of structs.

    Without the index of the action that was taken, columns of outcomes have no use, and are no features.
    """
    outcomes = () if "chosen" in taken else ("cost", "reward", "probability")
    unused = [taken.pop(name) for name in outcomes if name in taken]
    if event is not None:
        taken["tag"] = event
    context, left_out = features_of(schema, {*taken.values(), *unused})
    left_out += tuple(f"{name}: {_OUTCOME}" for name in unused)
    structs = pyarrow().schema(list(schema.field(taken["list"]).type.value_type))
    names = (*_NAMES["cost"], *_NAMES["reward"], *_NAMES["chosen"], *_NAMES["label"])
    outcomes_inside = [name for name in structs.names if name.lower() in names]
    actions, more = features_of(structs, set(outcomes_inside))
    if not actions:
        raise _ambiguity(schema, f"which fields of {taken['list']!r} describe the actions")
    more += tuple(f"{name}: {_OUTCOME}" for name in outcomes_inside)
    taken["categories"] = tuple(dict.fromkeys(_ids(schema, context) + _ids(structs, actions)))
    more = tuple(f"{taken['list']}: {reason}" for reason in more)
    return DatasetColumns(rows="lists", context=context, actions=actions, left_out=left_out + more, **taken)


def _repeats(first: Any, roles: Mapping[str, str], outcomes: Mapping[str, str]) -> bool:
    """Return whether events have several rows; if rows have actions, not all of them are chosen ones.

    A chosen one is flagged by 1, the others of its event by 0, or only the chosen one has an outcome.
    """
    codes = run_codes(column_at(first, roles["event"]))
    if "chosen" in roles:
        flags = numbers_of(column_at(first, roles["chosen"]))
        flagged = codes[flags == 1]
        if np.isin(flags, (0, 1)).all() and len(np.unique(flagged)) == len(flagged) < len(codes):
            return bool((codes[1:] == codes[:-1]).any())
    costs = [column_at(first, outcomes[name]) for name in ("cost", "reward") if name in outcomes]
    of_one_row = "action" in roles and bool(costs) and not costs[0].null_count
    return bool((codes[1:] == codes[:-1]).any()) and not of_one_row


def _likely_action(schema: Any, first: Any, roles: Mapping[str, str]) -> dict[str, str]:
    """Return the only column with as many values as there are actions, by the logged probabilities.

    The mean of 1 / probability estimates the number of actions that can be chosen.
    """
    if "probability" not in roles:
        return {}
    number = _mean_inverse(column_at(first, roles["probability"]))
    columns = [name for name in schema.names if name not in roles.values()]
    types = {name: type_at(schema, name) for name in columns}
    names = [name for name in columns if is_text(types[name]) or pyarrow().types.is_integer(types[name])]
    near = [name for name in names if abs(_n_values(column_at(first, name)) - number) < 0.1 * number]
    return {"action": near[0]} if len(near) == 1 else {}


def _n_values(array: Any) -> int:
    return len(array.drop_null().unique())


def _mean_inverse(array: Any) -> float:
    p = numbers_of(array)
    return float(np.mean(1 / p[p > 0])) if (p > 0).any() else 0.0


def evidence_of(columns: DatasetColumns, first: Any) -> dict[str, str]:
    """Return what the first rows of a dataset say about each role of a column, as a short text."""
    evidence = {"categories": "numbers named like ids"}
    for role in ("event", "tag", "action", "list", "chosen", *_NUMERIC):
        if (column := getattr(columns, role)) is None:
            continue
        array = column_at(first, column)
        array = array.value_lengths() if role == "list" else array
        n, what = _n_values(array), "lengths" if role == "list" else "values"
        evidence[role] = f"{n:,} distinct {what[: -1 if n == 1 else None]} in {first.num_rows:,} rows"
        if is_number(array.type) and not np.isnan(numbers := numbers_of(array)).all():
            evidence[role] += f", from {np.nanmin(numbers):g} to {np.nanmax(numbers):g}"
        if n == first.num_rows and role == "tag" and columns.rows == "events":
            evidence[role] += ": one row is one decision"
        if role == "action" and columns.probability is not None:
            mean = _mean_inverse(column_at(first, columns.probability))
            evidence[role] += f"; 1 / {columns.probability} is {mean:.3g} on average"
    return evidence


def features_of(schema: Any, taken: set[str]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the columns with features, by namespace, and the columns left out."""
    groups: dict[str, tuple[str, ...]] = {}
    left_out: list[str] = []
    for name in schema.names:
        if name in taken:
            continue
        fields = list(leaves(schema, name))
        good = tuple(leaf for leaf in fields if not why_unsupported(type_at(schema, leaf)))
        left_out += [f"{leaf}: {_reason(type_at(schema, leaf))}" for leaf in fields if leaf not in good]
        if good:
            groups[name] = good
    return groups, tuple(left_out)


def _ids(schema: Any, groups: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the columns of whole numbers whose names say that the numbers are ids, not quantities."""
    names = [name for columns in groups.values() for name in columns]
    return tuple(
        name for name in names if _ID.search(name) and pyarrow().types.is_integer(type_at(schema, name))
    )


def _reason(kind: Any) -> str:
    return why_unsupported(kind).removeprefix("of ")


def leaves(schema: Any, name: str) -> Iterator[str]:
    """Yield the fields of a struct, and of structs in it, as ``column.field``."""
    kind = type_at(schema, name)
    if kind is None or not pyarrow().types.is_struct(kind):
        yield name
        return
    for field in kind:
        yield from leaves(schema, f"{name}.{field.name}")


def _split(
    first: Any | None, event: str, columns: dict[str, tuple[str, ...]]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Return the columns that are constant within each event, and the others."""
    if first is None or not first.num_rows:
        return {}, columns
    codes = run_codes(column_at(first, event))
    within = np.flatnonzero(codes[1:] == codes[:-1])
    if not len(within):
        return {}, columns
    context: dict[str, tuple[str, ...]] = {}
    actions: dict[str, tuple[str, ...]] = {}
    for namespace, names in columns.items():
        same = all(_is_same(column_at(first, name), within) for name in names)
        (context if same else actions)[namespace] = names
    if not actions:
        return actions, context
    return context, actions


def _is_same(array: Any, within: np.ndarray[Any, np.dtype[np.int64]]) -> bool:
    """Return whether a column has the same value on each row of `within` and on the next one."""
    if is_list(array.type):
        return bool(array.take(pyarrow().array(within)).equals(array.take(pyarrow().array(within + 1))))
    codes = run_codes(array)
    return bool((codes[within] == codes[within + 1]).all())


def all_values(batches: Iterable[Any], column: str, numbers: Collection[str] = ()) -> tuple[str, ...]:
    """Return all values of a column as texts, sorted: numbers by size, then texts.

    `numbers` are the texts of a column of several kinds that spell numbers.
    """
    values: set[str] = set()
    numeric = False
    for batch in batches:
        array = column_at(batch, column)
        numeric = not (is_text(array.type) or pyarrow().types.is_boolean(array.type))
        texts = texts_of(as_texts(array))
        present = pyarrow().array(np.unique(texts.code[texts.code >= 0]))
        decoded = plain_values(texts.values.take(present).unique(), strict=True)
        values.update(value for value in decoded if value is not None)
        if len(values) > MOST_ELEMENTS:
            raise InputError(
                f"{column} has more than {MOST_ELEMENTS:,} values, too many for actions: name them in choices"
            )
    if not values:
        raise InputError(f"there is no action: no value of {column} can be read")
    by_size = values if numeric else values.intersection(numbers)
    return (*sorted(by_size, key=float), *sorted(values.difference(by_size)))
