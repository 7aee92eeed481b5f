"""The rule by which the names of a model were made, and its identities; events are compared with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.engine.stream.validity import other_names
from onlineauto.errors import InputError
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.mappings.identities import MOST_NUMBERS
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from onlineauto.features.block import Rules
    from onlineauto.options import Configuration


def follow_names(
    configuration: Configuration, numbers: set[str], rules: Rules, *, learns: bool
) -> Configuration:
    """Return the options of a model after events with names made by `rules`; add columns to `numbers`."""
    features = configuration[FeatureOptions]
    rule = rules.get("names", features.names)
    if features.names not in ("any", rule):
        raise other_names(features.names, str(rule))
    columns: Any = rules.get("name_columns", ()), rules.get("number_columns")
    new, missing = {*columns[0]} - {*features.name_columns}, {*features.name_columns} - {*columns[0]}
    if new & numbers:
        raise InputError(
            f"{_column(new & numbers)} has names here, and the model has learnt numbers of it: use another "
            "name for the column, or begin with another model"
        )
    if new and len(numbers) >= MOST_NUMBERS:
        raise InputError(
            f"{_column(new)} has names here, and the model has learnt numbers of {MOST_NUMBERS:,} columns or "
            "more, and does not know whether it is one of them: begin with another model"
        )
    if "name_columns" in rules and (missing if columns[1] is None else missing & {*columns[1]}):
        raise InputError(
            f"{_column(missing)} has names in the model, and may have numbers in these blocks: make them "
            "with name_columns=workspace.identities"
        )
    if not learns:
        return configuration
    if columns[1] is not None and len(numbers) < MOST_NUMBERS:
        numbers.update(columns[1])
    if not new and features.names == rule:
        return configuration
    supplied = {name: configuration.get(name) for name in configuration.supplied}
    both = sorted({*features.name_columns, *columns[0]})
    return REGISTRY.from_keywords(**supplied | {"names": rule, "name_columns": both})


def is_utf8(text: str) -> bool:
    """Return whether a text can be stored in a model file."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _column(identities: set[str]) -> str:
    namespace, _, column = min(identities).partition("^")
    return f"column {column!r}" if namespace == column else f"column {column!r} of namespace {namespace!r}"
