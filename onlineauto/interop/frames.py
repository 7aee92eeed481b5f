"""``from_frame``: frames of pandas, polars and arrow as Blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError
from onlineauto.formats.datasets.columns import kinds_of_names, problem_of_schema
from onlineauto.formats.datasets.event_table import InMemory
from onlineauto.formats.datasets.features import Encoder
from onlineauto.formats.datasets.frame import FrameColumns
from onlineauto.formats.datasets.inference import all_values
from onlineauto.formats.datasets.row_decoder import RowDecoder
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.interop.datasets import listed, named_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.interop.datasets import Names


def without_roles(columns: Iterable[str], roles: Iterable[Any], actions: str | Names | None) -> list[str]:
    """Return the columns of the context by default: those without another role; a role may be None."""
    taken = {*(str(role) for role in roles if role is not None), *listed(actions)}
    return [name for name in columns if name not in taken]


def from_frame(
    frame: Any,
    *,
    context: Names | None = None,
    actions: str | Names | None = None,
    event: str | None = None,
    choices: Sequence[Any] | Mapping[Any, Mapping[str, Any]] | None = None,
    cost: str | None = None,
    reward: str | None = None,
    probability: str | None = None,
    action_costs: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    problems: Diagnostics | None = None,
    strict: bool = True,
    events_per_block: int = 4096,
    hash: str = "strings",  # noqa: A002 - the option's name
    hash_seed: int = 0,
    name_columns: Iterable[str] = (),
) -> Iterator[Block]:
    """Yield blocks of events from the rows of a frame.

    There are three kinds of rows:

    * **events**: `actions` is the column of the logged action, and `choices` are all actions;
    * **actions**: consecutive rows with the same value in the column `event` are one event, and `actions` are
      the columns that describe an action; only the row of the logged action has a cost;
    * **single lines**, without `actions`: `label`.

    A column of numbers gives a feature with the column's name. A column of strings or categories gives a
    feature ``column=value``; so does the column of the action taken, whatever its type. True is 1. Null, NaN,
    False and 0 give no feature. A list or a struct is a namespace with the name of its column, as in
    `from_dicts`.

    Parameters
    ----------
    frame : DataFrame of pandas or polars, Table of pyarrow, or any object with Arrow's PyCapsule interface
    context : list of columns, or dict of namespace to columns
        Features of the context; each column of a list is a separate namespace. By default these are all
        columns without another role. If rows are actions, the first row of an event counts.
    actions, event : see above
        A column, a list of columns, or a dict of namespace to columns; a column.
    choices : list, or dict of choice to features, optional
        All valid actions in order, by default all values of the column, sorted. A dict has their features, as
        for `from_dicts`.
    cost, probability : column, optional
        Cost and propensity of the logged action. Rows that lack one of the two or the action have no label.
    reward : column, optional
        In place of `cost`, its negative.
    action_costs : column, optional
        What each action costs, for policies with a budget: a list in the order of `choices`, or, if rows are
        actions, a number. Null is unknown.
    label, weight : column, optional
        Label of single lines, null for a row without a label; number of such events that each row represents.
        If rows are actions, the first row's weight counts.
    problems : Diagnostics, optional
        Counts and locates events without a label.
    strict : bool
        False: rows that are invalid are left out and counted in `problems`, as in files.
    events_per_block : int
        Number of events in each block.
    hash, hash_seed : str, int
        The options of the workspace that will use the blocks.
    name_columns : iterable of str
        Columns whose numbers are names, as ``namespace^column``; `Workspace.identities` has those of a model.

    Raises
    ------
    PackageError
        If pyarrow is not installed: ``pip install '.[frames]'``.
    InputError
        If a column is missing or cannot be a feature, or a row is invalid.

    Examples
    --------
    >>> import polars
    >>> from onlineauto import Workspace
    >>> frame = polars.DataFrame(
    ...     {"user": ["tom", "ann"], "arm": ["a", "b"], "cost": [-1, 0], "p": [0.5, 0.5]}
    ... )
    >>> [block] = from_frame(frame, context=["user"], actions="arm", cost="cost", probability="p")
    >>> len(block), block.n_lines, block.namespaces.names
    (2, 6, [b'user', b'arm'])
    """
    columns = FrameColumns(frame)
    if (cost is reward is None) != (probability is None):
        raise InputError("cost and probability go together: where one is logged, the other is")
    named = {"event": event, "cost": cost, "reward": reward, "probability": probability}
    named |= {"action_costs": action_costs, "label": label, "weight": weight}
    roles = {role: str(column) for role, column in named.items() if column is not None}
    if context is None:
        context = without_roles(columns.names, roles.values(), actions)
    used = dict.fromkeys([*listed(context), *listed(actions), *roles.values()])
    described = named_columns(
        columns.schema(used), context=context, actions=actions, choices=choices, **roles
    )
    purposes = described.required()
    arrays = {name: columns.role(name, purposes.get(name, "features")) for name in used}
    batch = columns.batch(arrays)
    if problem := problem_of_schema(described, columns.schema(used)):
        raise InputError(problem)
    if described.rows == "events" and described.choices is None:
        if described.cost_column is None:
            raise InputError(
                f"without costs, list the actions in choices: column {actions} may lack some of them"
            )
        name = str(actions)
        described = replace(described, choices=all_values([batch], name, columns.spelled_numbers(name)))
    identities, numbers = kinds_of_names(described, batch.schema, ())
    identities |= set(name_columns)
    names = NameHashes(hash=hash, hash_seed=hash_seed)
    encoder = Encoder(names, hash_all=hash == "all", identities=identities)
    features = {*listed(context), *(() if event is None else listed(actions))}
    decoder = RowDecoder(
        described,
        encoder,
        choices=described.choices or (),
        uniform=False,
        report=InMemory(problems, strict),
        values={name: columns.values(name) for name in features if columns.array(name) is None},
    )
    table = decoder.table(batch, 0)
    names.of_columns(identities, (numbers | encoder.value_numbers) - identities)
    return table.blocks(events_per_block, encoder)
