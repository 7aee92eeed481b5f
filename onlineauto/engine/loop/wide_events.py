"""Wide events: those whose interactions would make more crossed features than ``--max_crossed``.

The number of crossed features of an event is computed from the sizes of its namespaces, before any
interaction is computed. All live configs predict and learn a wide event without its widest interactions.
Interactions are admitted until ``--max_crossed`` is reached: first the champion's, then those that only
challengers have, the smallest of each first. So the champion's prediction does not depend on the challengers,
and each challenger is compared with the champion on the same events.

The ensemble neither predicts nor learns a wide event, and the interactions of a wide event are not screened.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.loop.size_kernels import (
    EventSize,
    count_products,
    largest_namespaces,
)
from onlineauto.engine.records.task import Shape
from onlineauto.errors import ParseError
from onlineauto.features.options import FeatureOptions
from onlineauto.features.records import Interactions, Scratch, largest
from onlineauto.formats.lines.diagnostics import ProblemCode, make_diagnostic
from onlineauto.formats.options import InputOptions
from onlineauto.jit import Sealed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.engine.records.loop import Context
    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.features.records import Stream
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.options import Configuration

_GUESSED = 1 << 20
"""Number of features of an action up to which an upper bound is used instead of a count."""
_LISTED = 1 << 27
"""Number of features of an action that fit into memory: 2 GB."""
_NO_SIZES = np.empty(0)


class Limit(NamedTuple):
    """The maximum number of crossed features of an event, and the action on a wide event."""

    crossed: int
    of_lines: bool  # the limit applies to each action, not to all actions of an event together
    stops: bool  # a stream stops at a wide event

    def stops_at(self, sizes: EventSizes, event: int) -> bool:
        """Return whether a stream stops at this event."""
        return self.stops and event in sizes.wide


class EventSizes(NamedTuple):
    """The sizes of the events of a stream, for the used and the screened interactions of a context."""

    features: int  # an upper bound on the listed features of an action
    wide: dict[int, int]  # crossed features of each wide event, by its index
    unscreened: frozenset[int]  # other events whose screened interactions have too many crossed features

    def next_odd(self, begin: int, end: int) -> int:
        """Return the first event of [begin, end) that is wide or not screened, `end` if none is."""
        return min((event for event in (*self.wide, *self.unscreened) if begin <= event < end), default=end)


class WideEvent(NamedTuple):
    """A wide event of a stream."""

    event: int  # its index in the block; for a slot, the index of its event
    crossed: int  # number of crossed features of all interactions together


def limit_of(configuration: Configuration, semantics: Semantics) -> Limit:
    """Return the maximum number of crossed features of an event; in exact mode what fits into memory."""
    if semantics.leaves_out_widest:
        stops = configuration[InputOptions].strict_parse
        return Limit(configuration[FeatureOptions].max_crossed, of_lines=False, stops=stops)
    return Limit(_LISTED, of_lines=True, stops=True)


def measure(context: Sealed[Context], layout: StreamLayout, stream: Stream, limit: Limit) -> EventSizes:
    """Return the sizes of the events of a stream; they are counted only if two cheap bounds are too high."""
    task, enough = context.value.task, max(len(context.value.buffers.cell), _GUESSED)
    actions = 1 if limit.of_lines else task.n_actions if task.shape == Shape.CB else largest(stream.events)
    # 2 are the constant and a slot's index feature
    features = layout.most_features((len(stream.features) - stream.room) // 2 + 2)
    if features > enough or features * actions > limit.crossed:
        features = features if task.slots else _most_features(context.value, stream)
    if features <= enough and features * actions <= limit.crossed:
        return EventSizes(features, {}, frozenset())
    counts = np.zeros((len(stream.holdout), 4))
    _count(context, stream, counts, 0, _NO_SIZES)
    crossed = counts[:, EventSize.LARGEST if limit.of_lines else EventSize.TOGETHER]
    events = np.flatnonzero(crossed > limit.crossed).tolist()
    wide = {event: int(min(crossed[event], 2.0**62)) for event in events}
    screened = counts[:, EventSize.SCREENED]
    unscreened = frozenset(np.flatnonzero(screened > limit.crossed).tolist()) - set(wide)
    listed = counts[:, EventSize.OWN] + np.minimum(counts[:, EventSize.LARGEST], limit.crossed)
    listed += np.where(screened > limit.crossed, 0.0, screened)
    return EventSizes(int(listed.max(initial=0.0)), wide, unscreened)


def without_widest(
    context: Sealed[Context], stream: Stream, event: int, sizes: EventSizes, limit: Limit
) -> Sealed[Context]:
    """Return the context for an event that is wide or not screened; see the module's docstring."""
    value = context.value
    screen = value.screen._replace(many=0)
    if event not in sizes.wide:
        return Sealed(value._replace(screen=screen), like=context)
    products = np.zeros(len(value.interactions.start) - 1)
    _count(context, stream, np.zeros((1, 4)), event, products)
    narrowed = _without_widest(value.interactions, products, limit.crossed)
    test = value.live.ensemble.test._replace(leads=np.zeros(1, np.int64))
    live = value.live._replace(ensemble=value.live.ensemble._replace(on=False, serves=False, test=test))
    return Sealed(
        value._replace(interactions=narrowed, again=narrowed, live=live, screen=screen), like=context
    )


def report(
    wide: Sequence[WideEvent], block: Block, found: Diagnostics, *, stopped: bool, limit: Limit
) -> list[ParseError]:
    """Count and locate the wide events of a block; if the last one `stopped` the stream, return its error.

    The error is in a list, from which the caller removes it before raising: a local variable would keep the
    traceback's frame alive.
    """
    for number, (event, crossed) in enumerate(wide, 1):
        line, fatal = int(block.line_number[block.event_start[event]]), stopped and number == len(wide)
        problem = make_diagnostic(
            ProblemCode.TOO_WIDE,
            file=block.objects or found.reading,
            line=line,
            column=1,
            text=b"%d" % crossed,
            unit="event",
            fatal=fatal,
        )
        if limit.of_lines:
            limit_text = f"{limit.crossed:,}, the most that --vw_exact keeps, since it leaves none out"
            message = f"the interactions of a line make {crossed:,} crossed features, more than {limit_text}"
            problem = replace(problem, message=message)
        if fatal:
            return [ParseError(str(problem), line=line, column=1)]
        found.count(ProblemCode.TOO_WIDE, 1)
        found.keep(problem)
    return []


def kept_interactions(
    interactions: Interactions, sizes: NDArray[np.float64], limit: int
) -> NDArray[np.bool_]:
    """Return which interactions an event retains, from the number of crossed features of each: bool[n]."""
    champion = interactions.holders[1:, 0]
    retained = np.zeros(len(sizes), bool)
    for group in (np.flatnonzero(champion), np.flatnonzero(~champion)):
        smallest = group[np.argsort(sizes[group], kind="stable")]
        retained[smallest[sizes[retained].sum() + np.cumsum(sizes[smallest]) <= limit]] = True
    return retained


def _without_widest(interactions: Interactions, sizes: NDArray[np.float64], limit: int) -> Interactions:
    """Return the interactions without the widest ones; `sizes` are the features of each."""
    retained = kept_interactions(interactions, sizes, limit)
    start, factor = interactions.start, interactions.factor
    factors = [factor[start[product] : start[product + 1]] for product in np.flatnonzero(retained)]
    return interactions._replace(
        start=np.cumsum([0, *map(len, factors)]).astype(np.int64),
        factor=np.concatenate([factor[:0], *factors]),
        holders=interactions.holders[np.append(True, retained)],
    )


def _count(
    context: Sealed[Context],
    stream: Stream,
    counts: NDArray[np.float64],
    begin: int,
    sizes: NDArray[np.float64],
) -> None:
    """Count the products of events in a copy of the scratch, because slots may be open in the original."""
    copies: Any = (array.copy() for array in context.value.scratch)
    scratch = Scratch(*copies)
    scratch.taken[:] = False
    count_products(Sealed(context.value._replace(scratch=scratch)).record, stream, counts, begin, sizes)


def _most_features(context: Context, stream: Stream) -> int:
    """Return an upper bound on the features of an action in a block without slots, including products."""
    sizes = np.zeros((3, len(context.layout.ignore)), np.int64)
    largest_namespaces(context.layout, stream, sizes)
    numbers = (sizes[1] + sizes[2]).astype(np.float64)
    if context.layout.constant_key >= 0:
        numbers[context.layout.constant_key] += 1.0
    crossed = max(
        _most_crossed(interactions, numbers) for interactions in (context.interactions, context.again)
    )
    return int(min(numbers.sum() + crossed + _most_crossed(context.screen.interactions, numbers), 2.0**62))


def _most_crossed(interactions: Interactions, numbers: NDArray[np.float64]) -> float:
    """Return an upper bound on the features of all products, from the maximum of each namespace."""
    begins = interactions.start[:-1]
    return float(np.multiply.reduceat(numbers[interactions.factor], begins).sum()) if len(begins) else 0.0
