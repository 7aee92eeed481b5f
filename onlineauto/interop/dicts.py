"""``from_dicts``: mappings as Blocks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError
from onlineauto.formats.mappings.identities import name_values, numbers_in_event
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import NamedEvent, named_block, named_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from onlineauto.features.block import Block


def from_dicts(
    events: Iterable[Mapping[str, Any] | NamedEvent],
    *,
    events_per_block: int = 1024,
    hash: str = "strings",  # noqa: A002 - the option's name
    hash_seed: int = 0,
    names: NameHashes | None = None,
    first: int = 0,
    name_columns: Iterable[str] = (),
) -> Iterator[Block]:
    """Yield blocks of events from mappings.

    An event with actions has these keys. Only ``actions`` is required:

    ``context``
        Features of the shared line.
    ``actions``
        A list with the features of each action.
    ``chosen``, ``cost``, ``probability``
        Index of the logged action in that list, from 0, its cost, and its propensity.
    ``tag``, ``weight``
        Tag of the first line; number of such events that this event represents, above 1 if only a share was
        logged.
    ``slots``
        A list of mappings, one for each slot, in place of ``chosen``. Each may have ``context`` (features of
        the slot), ``chosen``, ``cost``, ``probability``, ``tag``, and ``only``, a list of the slot's allowed
        actions.

    An event of a single line has ``context``, ``tag``, and either ``label``, ``weight`` and ``initial``
    (regression, classification), or ``action`` (as ``--cb N`` numbers them), ``cost`` and ``probability``.

    Features are a mapping by namespace. Each namespace holds a mapping of features, a list of names, or one
    value, which becomes a feature named after the namespace. A number is a value. True is 1. A string becomes
    part of the name, ``color=red``. None, NaN, False and 0 give no feature.

    Parameters
    ----------
    events : iterable of mappings
        Events, all of the same kind.
    events_per_block : int
        Number of events in each block.
    hash, hash_seed : str, int
        The options of the workspace that will use the blocks.
    names : NameHashes, optional
        The cache of names from other calls, in place of `hash` and `hash_seed`. For calls with one event
        each, sharing it saves most of the work.
    first : int
        Number of the first event, for messages.
    name_columns : iterable of str
        Columns whose numbers are names, as ``namespace^column``; `Workspace.identities` has those of a model.

    Raises
    ------
    InputError
        If an event is invalid; the message has its number, counted from `first`. The events before it are
        yielded.

    Examples
    --------
    >>> from onlineauto import Workspace
    >>> event = {"context": {"user": "tom"}, "actions": [{"article": "politics"}, {"article": "sports"}]}
    >>> logged = event | {"chosen": 0, "cost": -1, "probability": 0.5}
    >>> log = 100 * [logged, logged | {"chosen": 1, "cost": 0}]
    >>> bandit = Workspace(cb_explore_adf=True, quadratic="ua").fit(from_dicts(log))
    >>> [block] = from_dicts([event])
    >>> bandit.predict_block(block).score.round(3)
    array([0.975, 0.025], dtype=float32)
    """
    identities, numbers, n_numbers = frozenset(name_columns), set[str](), -1
    names = NameHashes(hash=hash, hash_seed=hash_seed) if names is None else names
    numbered = enumerate(events, first)
    while True:
        taken: list[NamedEvent] = []
        failure: InputError | None = None
        try:
            for number, event in islice(numbered, events_per_block):
                where = f"event {number}"
                if not isinstance(event, NamedEvent):
                    mapping = name_values(event, identities)
                    event = named_event(mapping, where=where)
                    numbers.update(numbers_in_event(mapping))
                if taken and event.multiline != taken[0].multiline:
                    raise InputError(f"{where}: some events have actions and some do not")
                if taken and event.slots != taken[0].slots:
                    raise InputError(f"{where}: some events have slots and some do not")
                taken.append(event)
        except InputError as error:
            failure = error
        if taken:
            if len(numbers) > n_numbers:
                names, n_numbers = names.of_columns(identities, numbers), len(numbers)
            yield named_block(taken, names, first=first)
        if failure is not None:
            raise failure
        if len(taken) < events_per_block:
            return
        first += len(taken)
