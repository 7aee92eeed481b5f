"""Check that the columns of a file exist, and that their types fit their roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from onlineauto.formats.datasets.arrow_arrays import (
    is_list,
    is_number,
    is_text,
    pyarrow,
    type_at,
    why_unsupported,
)
from onlineauto.formats.datasets.features import ColumnName
from onlineauto.formats.mappings.identities import identity, numbers_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.formats.datasets.columns import DatasetColumns

_NUMERIC: Final = ("label", "cost", "reward", "probability", "weight", "chosen")
_MOST_NAMED: Final = 20


def problem_of_schema(columns: DatasetColumns, schema: Any) -> str:
    """Return the reason why a file with this schema lacks one of the columns, or ""."""
    for name, purpose in columns.required().items():
        kind = type_at(schema, name)
        if kind is None:
            return f"there is no column {name!r} ({purpose}); there are {_list_names(schema.names)}"
        if problem := _problem(name, kind, purpose):
            return problem
    if columns.list is None:
        return ""
    structs = pyarrow().schema(list(type_at(schema, columns.list).value_type))
    for name in (field for group in columns.actions.values() for field in group):
        kind = type_at(structs, name)
        if kind is None:
            there = _list_names(structs.names)
            return f"the structs in {columns.list!r} have no field {name!r}; there are {there}"
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
    structs = schema
    if columns.list is not None:
        structs = pyarrow().schema(list(type_at(schema, columns.list).value_type))
    for groups, fields in ((columns.context, schema), (columns.actions, structs)):
        for namespace, names in groups.items():
            for name in names:
                kind, column = type_at(fields, name), ColumnName.of(fields, namespace, name).identity
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
        structs = pyarrow().schema(list(type_at(schema, columns.list).value_type))
        names = [field for group in columns.actions.values() for field in group]
        result |= {f"{columns.list}: {name}": _family(type_at(structs, name)) for name in names}
    return {name: family for name, family in result.items() if family}


def _family(kind: Any) -> str:
    if is_list(kind):
        return f"lists of {_family(kind.value_type)}"
    if pyarrow().types.is_null(kind):
        return ""
    return "texts" if is_text(kind) else "numbers"


def _list_names(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
