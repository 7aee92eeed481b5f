"""Frames as events of a bandit: which column is what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError
from onlineauto.interop.frame_columns import opened
from onlineauto.interop.frames import from_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onlineauto.features.block import Block
    from onlineauto.interop.frames import Names

__all__ = ["decisions_of", "is_frame", "names_of_columns"]


def is_frame(source: object) -> bool:
    """Return whether a source is a frame of pandas, polars or arrow.

    >>> is_frame([{"context": {}}]), is_frame("train.txt")
    (False, False)
    """
    return hasattr(source, "shape") and (hasattr(source, "columns") or hasattr(source, "column_names"))


def names_of_columns(frame: Any) -> list[str]:
    """Return the names of the columns of a frame."""
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return [str(name) for name in names]


def decisions_of(
    frame: Any,
    *,
    context: Names | None,
    actions: str | Names | None,
    event: str | None,
    choices: Sequence[Any] | Mapping[Any, Mapping[str, Any]] | None,
    reward: str | None,
    cost: str | None,
    probability: str | None,
    weight: str | None,
    hash_seed: int,
    hash: str,  # noqa: A002 - the option's name
) -> Iterator[Block]:
    """Yield the blocks of a frame with logged decisions; see `AutoML.fit` for the columns.

    Raises
    ------
    InputError
        The columns do not say what was decided and what came of it.
    """
    columns = names_of_columns(frame)
    if actions is None or probability is None or (reward is None) == (cost is None):
        raise InputError(
            "a frame needs the names of its columns: fit(frame, actions=…, reward=…, probability=…), or cost "
            f"in place of reward; there are {', '.join(columns)}"
        )
    if not len(opened(frame)):
        raise InputError("nothing was learnt: the frame has no rows")
    if reward is not None:
        frame, cost = _negated(frame, reward), reward
    return from_frame(
        frame,
        context=context,
        actions=actions,
        event=event,
        choices=choices,
        cost=cost,
        probability=probability,
        weight=weight,
        hash=hash,
        hash_seed=hash_seed,
    )


def _negated(frame: Any, column: str) -> Any:
    """Return a frame with a column of rewards as costs."""
    table = opened(frame)
    import narwhals

    if column not in table.columns:
        return frame  # `from_frame` says which columns there are
    return table.with_columns(-narwhals.col(column)).to_native()
