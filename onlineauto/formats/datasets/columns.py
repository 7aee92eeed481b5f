"""``DatasetColumns``: the roles of the columns of a dataset, read from and written to a TOML file.

`problem_of_schema` checks that the columns of a file exist, and that their types fit their roles.

=============  ======================================================================================
``rows``       what a row is
=============  ======================================================================================
``"labels"``   an event with a ``label``
``"events"``   a decision: the column ``action`` has the chosen action, ``choices`` lists all actions
``"actions"``  an action of a decision: consecutive rows with the same ``event`` are one decision
``"lists"``    a decision whose actions are a list of structs in the column ``list``; ``chosen`` is the
               index of the chosen action, from 0
=============  ======================================================================================
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import InputError, short_repr
from onlineauto.formats.datasets.arrow_arrays import (
    is_list,
    is_number,
    is_text,
    pyarrow,
    type_at,
    why_unsupported,
)
from onlineauto.formats.datasets.features import ColumnName
from onlineauto.formats.mappings.identities import identity, numbers_in, spelling
from onlineauto.options.registry import read_settings

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

ROWS: Final = ("labels", "events", "actions", "lists")
"""Kinds of rows."""
_NEEDS: Final = {
    "labels": (),
    "events": ("action",),
    "actions": ("event", "actions"),
    "lists": ("list", "actions"),
}
_OUTCOMES: Final = ("cost", "reward", "probability", "action_costs", "weight", "tag")
_LOGGED: Final = (*_OUTCOMES, "context")
_TAKES: Final = {
    "labels": ("label", "weight", "tag", "context"),
    "events": ("action", "choices", *_LOGGED),
    "actions": ("event", "actions", *_LOGGED),
    "lists": ("list", "actions", "chosen", *_LOGGED),
}

Groups = Mapping[str, Sequence[str]]
"""Columns by namespace."""
_NOT_SUPPLIED: Final[Groups] = {}
"""The default of `actions`, unlike an empty mapping, which says that actions have no features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetColumns:
    """The meaning of the columns of a dataset. A field of a struct is named ``column.field``."""

    rows: str  # Meaning of a row; see the top of this module.
    context: Groups = field(default_factory=dict)  # Features of the context, or of an event with a label.
    # Features of an action: columns, or fields of the structs in `list`.
    actions: Groups = field(default_factory=lambda: _NOT_SUPPLIED)
    # Columns. `reward` is a negative cost. The text in `tag` is written next to predictions.
    label: str | None = None
    action: str | None = None
    # All actions in order; by default all values of `action` in the dataset, sorted. A mapping has the
    # features of each action, like `choices` of `onlineauto.interop.from_frame`.
    choices: tuple[str, ...] | Mapping[str, Mapping[str, Any]] | None = None
    # Columns whose numbers are names, such as ids: 7 is the feature ``column=7``.
    categories: tuple[str, ...] = ()
    event: str | None = None
    list: str | None = None
    chosen: str | None = None
    cost: str | None = None
    reward: str | None = None
    probability: str | None = None
    # What each action costs, whichever is chosen: a column of lists in the order of `choices`, a column with
    # a number for each action, or a field of the structs in `list`. Only budgets use it.
    action_costs: str | None = None
    weight: str | None = None
    tag: str | None = None
    left_out: tuple[str, ...] = ()  # Columns that the inference did not use, each with the reason.

    def __post_init__(self) -> None:
        """Check that the columns are complete and consistent."""
        if self.rows not in ROWS:
            raise InputError(f"rows cannot be {self.rows!r}; it takes one of {', '.join(ROWS)}")
        for name in self.needs:
            value = getattr(self, name)
            if value is _NOT_SUPPLIED or not (value or name == "actions"):
                raise InputError(f'rows = "{self.rows}" needs {name}')
        for name in (role.name for role in fields(self)):
            if getattr(self, name) and name not in ("rows", "categories", "left_out", *_TAKES[self.rows]):
                raise InputError(f'{name} cannot be used with rows = "{self.rows}"')
        groups = (*self.context.values(), *self.actions.values())
        for name in self.categories:
            if not any(name in columns for columns in groups):
                raise InputError(f"categories has {name!r}, which is not a column of any namespace")
        if self.cost is not None and self.reward is not None:
            raise InputError("cost and reward exclude each other: use one of them")
        if self.cost_column is not None and self.rows == "lists" and self.chosen is None:
            raise InputError(
                f"{self.cost_column} is the cost of the chosen action: name the column of that action in "
                "chosen"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """The fields that the kind of rows needs."""
        return _NEEDS[self.rows]

    @property
    def cost_column(self) -> str | None:
        """The column of costs or rewards."""
        return self.cost if self.reward is None else self.reward

    @property
    def decides(self) -> bool:
        """True if rows are decisions, not events with a label."""
        return self.rows != "labels"

    def required(self) -> dict[str, str]:
        """Return the required columns, each with its purpose, without the fields of `list`.

        The action that was taken is needed for its cost and for the list of all actions.
        """
        single = ("label", "action", "event", "list", "chosen", *_OUTCOMES)
        result = {getattr(self, name): name for name in single if getattr(self, name) is not None}
        if self.action is not None and self.choices and self.cost_column is None:
            del result[self.action]
        if self.rows == "lists" and self.action_costs is not None:
            del result[self.action_costs]
        groups = [self.context] if self.rows == "lists" else [self.context, self.actions]
        for column in chain.from_iterable(columns for group in groups for columns in group.values()):
            result.setdefault(column, "features")
        return result

    def toml(self, *, name: str = "", evidence: Mapping[str, str] | None = None) -> str:
        """Return the text of a file that `read_columns` reads.

        Its first line has the `name` of the dataset. A role is followed by its `evidence` as a comment.
        """
        return "\n".join(self._lines(name, evidence or {})) + "\n"

    def _lines(self, dataset: str, evidence: Mapping[str, str]) -> Iterator[str]:
        if dataset:
            yield f"# The columns of {_on_one_line(dataset)}. Edit this file, and pass it with --columns."
        yield f'rows = "{self.rows}"  # {_MEANINGS[self.rows]}'
        for name in ("label", "event", "list", "chosen", "action", "choices", *_OUTCOMES, "categories"):
            value = getattr(self, name)
            if value and not isinstance(value, Mapping):
                comment = f"  # {_on_one_line(evidence[name])}" if name in evidence else ""
                yield f"{name} = {_value(value)}{comment}"
        for name, groups in (("context", self.context), ("actions", self.actions)):
            if groups or name in self.needs:
                yield f"\n[{name}]  # namespace = columns"
                for namespace, columns in groups.items():
                    yield f"{_key(namespace)} = [{', '.join(map(_quote, columns))}]"
        if isinstance(self.choices, Mapping):
            for choice, features in self.choices.items():
                yield f"\n[choices.{_key(choice)}]  # features of this action"
                yield from (f"{_key(name)} = {_value(value)}" for name, value in features.items())
        if self.left_out:
            yield "\n# left out:"
            yield from (f"#   {_on_one_line(reason)}" for reason in self.left_out)


_MEANINGS: Final = {
    "labels": "each row is an event with a label",
    "events": "each row is a decision, with the action that was taken",
    "actions": "each row is an action; rows with the same event are one decision",
    "lists": "each row is a decision, with its actions in a list",
}


def read_columns(path: str | os.PathLike[str]) -> DatasetColumns:
    """Return the columns that a TOML file describes."""
    try:
        table = tomllib.loads(read_settings(path))
    except OSError as error:
        raise InputError(f"{path}: the file of columns cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the file of columns is not TOML: {error}") from None
    try:
        return columns_of(table)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def columns_of(table: Mapping[str, Any]) -> DatasetColumns:
    """Return the columns that a mapping describes, which has the keys of the TOML file.

    >>> columns_of({"rows": "labels", "label": "y", "context": {"user": ["age"]}}).required()
    {'y': 'label', 'age': 'features'}
    """
    known = [role.name for role in fields(DatasetColumns) if role.name != "left_out"]
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in known:
            raise InputError(f"unknown key {name!r}; valid are {', '.join(known)}")
        if name in ("context", "actions"):
            values[name] = _groups(name, value)
        elif name == "choices" and isinstance(value, Mapping) and value:
            for choice, features in value.items():
                if not isinstance(features, Mapping):
                    raise InputError(f"choices.{choice} is a table of features, not {short_repr(features)}")
            values[name] = {str(spelling(choice)): dict(features) for choice, features in value.items()}
        elif name == "choices":
            if (
                not isinstance(value, list | tuple)
                or not value
                or len(set(map(spelling, value))) < len(value)
            ):
                raise InputError(
                    f"choices = {short_repr(value)}: list at least one action, and each action once"
                )
            values[name] = tuple(str(spelling(choice)) for choice in value)
        elif name == "categories":
            if not isinstance(value, list | tuple) or not all(isinstance(column, str) for column in value):
                raise InputError("categories is a list of columns")
            values[name] = tuple(value)
        elif isinstance(value, str):
            values[name] = value
        else:
            raise InputError(f"{name} is a text, not {value!r}")
    if "rows" not in values:
        raise InputError(f"rows is missing; it takes one of {', '.join(ROWS)}")
    return DatasetColumns(**values)


def _groups(name: str, value: object) -> dict[str, tuple[str, ...]]:
    """Return the columns of each namespace; in a list, each column is a separate namespace."""
    if isinstance(value, list | tuple) and all(isinstance(column, str) for column in value):
        value = {column: [column] for column in value}
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is a table of namespace = columns, or a list of columns")
    groups = {}
    for namespace, columns in value.items():
        listed = [columns] if isinstance(columns, str) else columns
        if not isinstance(listed, list | tuple) or not all(isinstance(column, str) for column in listed):
            raise InputError(f"{name}.{namespace} is a list of columns, not {columns!r}")
        groups[str(namespace)] = tuple(listed)
    return groups


def _key(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quote(name)


def _value(value: Any) -> str:
    """Return the value of a feature as a value of TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(name))} = {_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return _quote(value) if isinstance(value, str) else repr(value).lower()


def _quote(text: str) -> str:
    """Return a text as a string of TOML."""
    escaped = "".join(
        f"\\u{ord(char):04x}" if ord(char) < 32 or ord(char) == 127 else char
        for char in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped}"'


def _on_one_line(text: str) -> str:
    """Return a text without line breaks, for a comment."""
    return "".join(char if char.isprintable() else "?" for char in text)


_NUMERIC: Final = ("label", "cost", "reward", "probability", "action_costs", "weight", "chosen")
_MOST_NAMED: Final = 20


def problem_of_schema(columns: DatasetColumns, schema: Any) -> str:
    """Return the reason why a file with this schema lacks one of the columns, or ""."""
    for name, purpose in columns.required().items():
        kind = type_at(schema, name)
        if kind is None:
            return f"there is no column {name!r} ({purpose}); there are {_list_names(schema.names)}"
        purpose = "costs of choices" if (columns.rows, purpose) == ("events", "action_costs") else purpose
        if problem := _problem(name, kind, purpose):
            return problem
    if columns.list is None:
        return ""
    structs = _fields_of_actions(columns, schema)
    fields_used = [(name, "") for name in chain.from_iterable(columns.actions.values())]
    fields_used += [] if columns.action_costs is None else [(columns.action_costs, "action_costs")]
    for name, purpose in fields_used:
        kind = type_at(structs, name)
        if kind is None:
            field_names = _list_names(structs.names)
            return f"the structs in {columns.list!r} have no field {name!r}; there are {field_names}"
        if purpose and (problem := _problem(name, kind, purpose)):
            return f"{problem} in the structs of {columns.list!r}"
        if reason := why_unsupported(kind):
            return f"field {name!r} of {columns.list!r} is {reason}"
    return ""


def _problem(name: str, kind: Any, purpose: str) -> str:
    """Return the reason why a column's type does not fit its purpose, or ""; the null type always fits."""
    if pyarrow().types.is_null(kind) and purpose != "list":
        return ""
    if purpose == "list":
        fits = is_list(kind) and pyarrow().types.is_struct(kind.value_type)
        return "" if fits else f"column {name!r} (list) is of {kind}, not of lists of structs"
    if purpose == "costs of choices":
        fits = is_list(kind) and is_number(kind.value_type)
        return "" if fits else f"column {name!r} (action_costs) is of {kind}, not of lists of numbers"
    if purpose in _NUMERIC:
        return "" if is_number(kind) else f"column {name!r} ({purpose}) is of {kind}, not of numbers"
    if purpose in ("action", "event", "tag"):
        kind = kind.value_type if pyarrow().types.is_dictionary(kind) else kind
        fits = is_number(kind) or is_text(kind)
        return "" if fits else f"column {name!r} ({purpose}) is of {kind}, not of texts or numbers"
    reason = why_unsupported(kind)
    return f"column {name!r} is {reason}" if reason else ""


def kinds_of_names(columns: DatasetColumns, schema: Any, folders: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the identities and the columns with numbers, each as ``namespace^column``.

    Identities are the action, `categories`, columns with a dictionary, and the names of folders.
    """
    identities, numbers = set[str](), set[str]()
    actions = columns.actions, _fields_of_actions(columns, schema)
    for groups, available in ((columns.context, schema), actions):
        for namespace, names in groups.items():
            for name in names:
                kind, column = type_at(available, name), ColumnName.of(available, namespace, name).identity
                if name in columns.categories or name in folders or pyarrow().types.is_dictionary(kind):
                    identities.add(column)
                elif is_number(kind):
                    numbers.add(column)
    if isinstance(columns.choices, Mapping):
        numbers.update(*map(numbers_in, columns.choices.values()))
    if columns.rows == "events" and columns.action is not None:
        identities.add(identity(columns.action, columns.action))
    return identities, numbers


def families(columns: DatasetColumns, schema: Any) -> dict[str, str]:
    """Return the family of each column with features: texts, numbers, or lists of these."""
    result = {
        name: _family(type_at(schema, name))
        for name, purpose in columns.required().items()
        if purpose in ("features", "action", "event")
    }
    if columns.list is not None:
        structs, names = _fields_of_actions(columns, schema), chain.from_iterable(columns.actions.values())
        result |= {f"{columns.list}: {name}": _family(type_at(structs, name)) for name in names}
    return {name: family for name, family in result.items() if family}


def _fields_of_actions(columns: DatasetColumns, schema: Any) -> Any:
    """Return the schema of the structs in the list of actions, or `schema` if actions are no list."""
    return (
        schema if columns.list is None else pyarrow().schema(list(type_at(schema, columns.list).value_type))
    )


def _family(kind: Any) -> str:
    if is_list(kind):
        return f"lists of {_family(kind.value_type)}"
    if pyarrow().types.is_null(kind):
        return ""
    return "texts" if is_text(kind) else "numbers"


def _list_names(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
