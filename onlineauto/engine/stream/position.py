"""Position: how far a run over its input is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from onlineauto.engine.stream.counters import Count
    from onlineauto.features.block import Block

__all__ = ["Position", "behind", "cut"]


class Position(NamedTuple):
    """How far a run is: what it needs, beside the model, to go on over the same input.

    Attributes
    ----------
    passes : int
        Passes that it is through with.
    events : int
        Events of the pass at hand that it is through with, held-out ones included.
    held_out : mapping of str to number, or None
        What is known of their loss, if anything; see `onlineauto.engine.loop.holdout.Holdout`.
    """

    passes: int = 0
    events: int = 0
    held_out: Mapping[str, Count] | None = None


def behind(n: int, blocks: Iterable[Block]) -> Iterator[Block]:
    """Leave out the first `n` events.

    Raises
    ------
    InputError
        There are not so many.
    """
    left = n
    for block in blocks:
        skipped = min(left, len(block))
        left -= skipped
        if not skipped or skipped < len(block):
            yield block.tail(skipped)
    if left:
        raise InputError(
            f"the input has {n - left} events, and the run to go on with was through with {n}: is it another?"
        )


def cut(every: int, blocks: Iterable[Block]) -> Iterator[Block]:
    """Let a block end behind every so many events."""
    left = every
    for block in blocks:
        rest = block
        while len(rest) > left:
            yield rest.head(left)
            rest, left = rest.tail(left), every
        yield rest
        left = left - len(rest) or every
