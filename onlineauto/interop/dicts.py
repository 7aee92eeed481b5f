"""``from_dicts``: mappings as Blocks."""

from __future__ import annotations

from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.block import UNLABELLED, Block
from onlineauto.interop.name_hashes import NameHashes
from onlineauto.interop.named_event import NamedEvent, NamedLine, named_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["from_dicts", "named_block"]


def from_dicts(
    events: Iterable[Mapping[str, Any] | NamedEvent],
    *,
    events_per_block: int = 1024,
    hash: str = "strings",  # noqa: A002 - the option's name
    hash_seed: int = 0,
) -> Iterator[Block]:
    """Yield blocks of events given as mappings.

    An event with actions has these keys. Only ``actions`` is required:

    ``context``
        Features of the shared line.
    ``actions``
        A list with the features of each action.
    ``chosen``, ``cost``, ``probability``
        Index of the logged action in that list, from 0, its cost, and its propensity.
    ``tag``, ``weight``
        Tag of the first line; number of such events that this one stands for, above 1 if only a share was
        logged.
    ``slots``
        A list of mappings, one for each slot, in place of ``chosen``. Each may have ``context`` (features of
        the slot), ``chosen``, ``cost``, ``probability``, ``tag``, and ``only``, a list of the actions allowed
        in it.

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

    Raises
    ------
    InputError
        If an event is not as above; the message says which one, counted from 0. The events before it have
        been yielded.

    Examples
    --------
    >>> from onlineauto import Workspace
    >>> event = {"context": {"user": "tom"}, "actions": [{"article": "politics"}, {"article": "sports"}]}
    >>> logged = event | {"chosen": 0, "cost": -1, "probability": 0.5}
    >>> bandit = Workspace(cb_explore_adf=True, quadratic="ua").fit(from_dicts(100 * [logged]))
    >>> [block] = from_dicts([event])
    >>> bandit.predict_block(block).score.round(3)
    array([0.975, 0.025], dtype=float32)
    """
    names = NameHashes(hash=hash, hash_seed=hash_seed)
    numbered = enumerate(events)
    line_number = 1
    while True:
        taken: list[NamedEvent] = []
        failure: InputError | None = None
        try:
            for number, event in islice(numbered, events_per_block):
                where = f"event {number}"
                made = event if isinstance(event, NamedEvent) else named_event(event, where=where)
                if taken and made.multiline != taken[0].multiline:
                    raise InputError(f"{where}: some events have actions and some do not")
                if taken and made.slots != taken[0].slots:
                    raise InputError(f"{where}: some events have slots and some do not")
                taken.append(made)
        except InputError as error:
            failure = error
        if taken:
            yield named_block(taken, names, line_number=line_number)
        if failure is not None:
            raise failure
        if len(taken) < events_per_block:
            return
        line_number += sum(len(event.lines) + event.multiline for event in taken)


def named_block(events: Sequence[NamedEvent], names: NameHashes, *, line_number: int = 1) -> Block:
    """Return a block of events with names.

    Parameters
    ----------
    events : sequence of NamedEvent
        At least one event.
    names : NameHashes
        Hashes names, and numbers the namespaces of all blocks of a stream.
    line_number : int
        Number that the first line would have in a text.
    """
    lines = [line for event in events for line in event.lines]
    numbers: list[int] = []
    for event in events:
        numbers += range(line_number, line_number + len(event.lines))
        line_number += len(event.lines) + event.multiline
    costs = [cost for line in lines for cost in line.costs]
    tags = [line.tag.encode() for line in lines]
    return Block.of_columns(
        event_start=_starts(len(event.lines) for event in events),
        line_number=np.array(numbers, np.int64),
        shared=np.array([line.shared for line in lines], bool),
        slot=np.array([line.slot for line in lines], bool),
        label=np.array([UNLABELLED if line.label is None else line.label for line in lines], np.float32),
        weight=np.array([line.weight for line in lines], np.float32),
        initial=np.array([line.initial for line in lines], np.float32),
        cost_start=_starts(len(line.costs) for line in lines),
        cost_action=np.array([action for action, _, _ in costs], np.uint32),
        cost=np.array([UNLABELLED if cost is None else cost for _, cost, _ in costs], np.float32),
        probability=np.array([probability for _, _, probability in costs], np.float32),
        tag_start=_starts(map(len, tags)),
        tag=np.frombuffer(b"".join(tags), np.uint8),
        **_feature_columns(lines, names),
        namespaces=names.namespaces,
        rules=names.rules,
    )


def _feature_columns(lines: Sequence[NamedLine], names: NameHashes) -> dict[str, NDArray[Any]]:
    spans = [
        (names.namespace(namespace), [feature for feature in features if feature[1]])
        for line in lines
        for namespace, features in line.spans
    ]
    sizes = iter([len(features) for _, features in spans])
    kept = [sum(size > 0 for size in islice(sizes, len(line.spans))) for line in lines]
    filled = [(number, features) for number, features in spans if features]
    return {
        "line_start": _starts(kept),
        "span_namespace": np.array([number for number, _ in filled], np.int32),
        "span_start": _starts(len(features) for _, features in filled),
        "hash": np.array(
            [names.feature(name, number) for number, features in filled for name, _ in features], np.uint32
        ),
        "value": np.array([value for _, features in filled for _, value in features], np.float32),
    }


def _starts(sizes: Iterable[int]) -> NDArray[np.int64]:
    """Return the starts of consecutive ranges of these sizes, and the end of the last: int64[n + 1]."""
    return np.fromiter(accumulate(sizes, initial=0), np.int64)
