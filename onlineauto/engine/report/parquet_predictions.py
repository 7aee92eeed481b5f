"""``ParquetPredictions``: the predictions of ``-p`` and ``-r`` as a file of Parquet.

==================  ===================================================================================
kind                columns beside ``line``, the row or line of the event, and ``tag``
==================  ===================================================================================
single-line         ``prediction``
``--cb_explore*``   ``actions`` and ``probabilities``, two lists, best first
``--cb_adf``, cb    ``action``, the best one; with ``--rank_all`` ``actions`` and ``scores``
==================  ===================================================================================

Actions are names if all events have the same actions and the source names them, and else indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.features.block import Block

ENDING: Final = ".parquet"
"""Ending of the names of files that are written as Parquet."""
_ROWS: Final = 1 << 16
"""Number of events in a row group."""


class ParquetPredictions:
    """Writes predictions to a file of Parquet, which is complete when it is closed.

    The parameters are those of `Predictions`.
    """

    def __init__(
        self,
        path: str,
        *,
        kind: str,
        rank_all: bool = False,
        raw: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"{path}: Parquet is written by pyarrow: pip install 'onlineauto[parquet]'", name=error.name
            ) from None
        if kind == "ccb_explore_adf":
            raise OptionError(f"{path}: predictions of slots are written as text, not as Parquet")
        self._arrow: Any = pa
        self._names = pa.array(names, pa.string()) if names else None
        self._raw, self._simple = raw, kind == "simple"
        self._lists = "probabilities" if "explore" in kind else "scores" if rank_all else ""
        self._batches: list[Any] = []
        self._waiting = 0
        self._schema = pa.schema([("line", pa.int64()), ("tag", pa.string()), *self._columns()])
        self._writer = pq.ParquetWriter(path, self._schema)

    def _columns(self) -> list[tuple[str, Any]]:
        pa = self._arrow
        if self._simple:
            return [("prediction", pa.float32())]
        kind = pa.int32() if self._names is None else pa.string()
        if not self._lists:
            return [("action", kind)]
        return [("actions", pa.list_(kind)), (self._lists, pa.list_(pa.float32()))]

    def _named(self, indices: Any) -> Any:
        """Return the names of actions, or their indices if there are no names."""
        return indices if self._names is None else self._names.take(indices)

    def write(self, block: Block, outcomes: Outcomes) -> None:
        """Write the predictions for a block."""
        if not len(outcomes):
            return
        pa = self._arrow
        columns = [pa.array(block.line_number[outcomes.line]), self._tags(block, outcomes)]
        if self._simple:
            columns.append(pa.array(outcomes.raw if self._raw else outcomes.prediction, pa.float32()))
        elif self._lists:
            start = pa.array(outcomes.action_start - outcomes.action_start[0], pa.int32())
            here = slice(int(outcomes.action_start[0]), int(outcomes.action_start[-1]))
            actions = self._named(pa.array(outcomes.action[here], pa.int32()))
            scores = pa.array(outcomes.score[here], pa.float32())
            columns += [pa.ListArray.from_arrays(start, values) for values in (actions, scores)]
        else:
            begin, end = outcomes.action_start[:-1], outcomes.action_start[1:]
            best = np.append(outcomes.action, 0)[begin]
            columns.append(self._named(pa.array(best, pa.int32(), mask=begin == end)))
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._waiting += len(outcomes)
        if self._waiting >= _ROWS:
            self._flush()

    def _tags(self, block: Block, outcomes: Outcomes) -> Any:
        """Return the tag of each event, null if it has none."""
        if not len(block.tag):
            return self._arrow.nulls(len(outcomes), self._arrow.string())
        starts = block.tag_start[outcomes.line].tolist()
        stops = block.tag_start[outcomes.line + 1].tolist()
        text = block.tag.tobytes()
        tags = [text[i:j].decode("utf-8", "replace") or None for i, j in zip(starts, stops, strict=True)]
        return self._arrow.array(tags, self._arrow.string())

    def _flush(self) -> None:
        if self._batches:
            self._writer.write_table(self._arrow.Table.from_batches(self._batches))
        self._batches, self._waiting = [], 0

    def close(self) -> None:
        """Write the remaining rows, and close the file."""
        self._flush()
        self._writer.close()
