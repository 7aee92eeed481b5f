"""``DatasetSource``: events of a dataset, read from a position."""

from __future__ import annotations

import os
from collections import deque
from contextlib import closing, suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from onlineauto.errors import InputError, OptionError
from onlineauto.formats.datasets.arrow_arrays import type_at
from onlineauto.formats.datasets.columns import DatasetColumns, columns_of, read_columns
from onlineauto.formats.datasets.dataset_reader import DatasetReader
from onlineauto.formats.datasets.files import DatasetFile, digest_of, files_of_dataset, files_of_paths
from onlineauto.formats.datasets.guard import UnreadableError, read_group
from onlineauto.formats.datasets.inference import all_values, infer_columns
from onlineauto.formats.datasets.schema import problem_of_schema
from onlineauto.formats.lines.diagnostics import Diagnostics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.formats.lines.event_source import EventRules

_OUTCOMES = ("action", "cost", "reward", "probability", "chosen")
"""Columns that say what was decided and what came of it."""
_MARKS = 16
"""Number of blocks whose positions are stored; a run always learns one of the last few blocks."""


class _Mark(NamedTuple):
    """A block that was read, and the rows of its events."""

    events: int  # number of events before the block
    file: int
    rows: NDArray[np.int64]  # first row of each event
    end: int  # row after the last one


class DatasetSource:
    """The events of Parquet files or of an Arrow dataset, which can be read from any position.

    A position has the file, the row in the file, and the number of events before it. Reading resumes at the
    row group of the position.
    """

    def __init__(
        self,
        source: Any,
        columns: str | os.PathLike[str] | Mapping[str, Any] | DatasetColumns | None = None,
    ) -> None:
        self.files: Sequence[DatasetFile]
        if isinstance(source, str | os.PathLike):
            self.name, self.files = os.fspath(source), files_of_paths([source])
        elif isinstance(source, list | tuple):
            self.name, self.files = ", ".join(map(str, source)), files_of_paths(source)
        else:
            self.name, self.files = f"<{type(source).__name__}>", files_of_dataset(source)
        self._once = hasattr(source, "read_next_batch")
        if isinstance(columns, str | os.PathLike):
            columns = read_columns(columns)
        elif columns is not None and not isinstance(columns, DatasetColumns):
            columns = columns_of(columns)
        self._given, self._columns = columns, columns
        self.events_before = 0
        self._learnt: dict[str, str] = {}
        self._file = self._row = 0
        self._marks: deque[_Mark] = deque(maxlen=_MARKS)

    def __repr__(self) -> str:
        """Show the name."""
        return f"DatasetSource({self.name!r})"

    @property
    def can_be_read_again(self) -> bool:
        """True unless the rows come from a reader of batches."""
        return not self._once

    def with_columns(self, columns: DatasetColumns) -> DatasetSource:
        """Return a source of the same files with other columns."""
        source = copy(self)
        source._given = source._columns = columns  # noqa: SLF001 - of this class
        source._marks = deque(maxlen=_MARKS)  # noqa: SLF001
        return source

    def like(self, learnt: Mapping[str, Any], *, predicts: bool) -> DatasetSource:
        """Return a source of the same files for a model that has learnt the dataset with this `description`.

        Columns must have the same types. If the model only `predicts`, its columns and choices are the
        default, and columns of outcomes may be missing.
        """
        model, columns = columns_of(learnt.get("columns", {})), self._given
        if predicts:
            columns = columns or model
            if columns.rows == model.rows == "events" and columns.choices is None:
                columns = replace(columns, choices=model.choices)
            schema = self.schema()
            lacking = {
                name
                for name in (*_OUTCOMES, "label", "weight", "tag")
                if (column := getattr(columns, name)) is not None and type_at(schema, column) is None
            }
            lacking |= set(_OUTCOMES) if not lacking.isdisjoint(_OUTCOMES) else set()
            absent: dict[str, Any] = dict.fromkeys(lacking - {"action"})
            columns = replace(columns, **absent)
        source = self if columns is None else self.with_columns(columns)
        source._learnt = dict(learnt.get("types", {}))  # noqa: SLF001 - of this class
        return source

    @property
    def description(self) -> dict[str, Any]:
        """The columns and their families, for the model file; empty before the source is opened."""
        if self._columns is None or not self._learnt:
            return {}
        columns = msgspec.to_builtins(replace(self._columns, left_out=())).items()
        return {"columns": {name: value for name, value in columns if value}, "types": self._learnt}

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of the actions, if they are the same in all events."""
        return () if self._columns is None else tuple(self._columns.choices or ())

    def schema(self) -> Any:
        """Return the Arrow schema of the first file that can be read."""
        first, problem = self._first_file()
        if first is None:
            raise InputError(problem)
        first.close()
        return first.schema

    def columns(self, *, decides: bool | None = None) -> DatasetColumns:
        """Return the roles of the columns, inferred by default; `decides` is passed to `infer_columns`."""
        if self._columns is None or (self._columns.rows == "events" and self._columns.choices is None):
            self._columns = self._infer_columns(decides)
        return self._columns

    def _infer_columns(self, decides: bool | None) -> DatasetColumns:
        columns, schema = self._given, self.schema()
        if columns is None:
            try:
                columns = infer_columns(schema, self.first_rows(), decides=decides)
            except InputError as error:
                raise InputError(f"{self.name}: {error}") from None
        if columns.rows == "events" and columns.choices is None and columns.action is not None:
            if self._once:
                raise InputError("a reader of batches can be read only once: name the actions in choices")
            if problem := problem_of_schema(columns, schema):
                raise InputError(f"{self.name}: {problem}")
            values = all_values(self._batches(columns.action), columns.action)
            columns = replace(columns, choices=values)
        return columns

    def first_rows(self) -> Any | None:
        """Return the first rows that can be read; None if there are none, or they can be read only once."""
        first = None if self._once else self._first_file()[0]
        if first is None:
            return None
        with closing(first):
            groups = range(len(first.groups))
            pieces = (piece for group in groups for piece in read_group(first, group, first.schema.names))
            return next((piece.batch for piece in pieces if piece.batch is not None and piece.rows), None)

    def _first_file(self) -> tuple[Any, str]:
        """Return the first file that can be opened, and the problem of the files before it."""
        problem = f"{self.name}: there is no file"
        for file in self.files:
            try:
                return file.open(), ""
            except UnreadableError as error:
                problem = problem if "cannot" in problem else f"{file.name}: cannot be read: {error}"
        return None, problem

    def _batches(self, column: str) -> Iterator[Any]:
        """Yield a column of all files that can be read."""
        for file in self.files:
            with suppress(UnreadableError), closing(file.open()) as opened:  # the reader reports this file
                for group in range(len(opened.groups)):
                    pieces = read_group(opened, group, [column])
                    yield from (piece.batch for piece in pieces if piece.batch is not None)

    # -- the protocol of event sources -----------------------------------------------------------------

    def seek(self, position: Mapping[str, Any] | None) -> None:
        """Set the position at which the next `open` begins; None is the beginning."""
        self._marks.clear()
        if position is None:
            self.events_before = self._file = self._row = 0
            return
        try:
            counts = [position[name] for name in ("events", "file", "row", "files", "digest")]
        except KeyError:
            raise InputError(f"{self.name}: the checkpoint was not written by a run over a dataset") from None
        if not all(isinstance(each, int) and each >= 0 for each in counts):
            raise InputError(f"{self.name}: the position in the checkpoint is not one of a dataset")
        events, file, row, files, digest = counts
        if files != len(self.files) or digest != digest_of(self.files):
            changed = f"there were {files} files, and there are {len(self.files)}"
            if files == len(self.files):
                changed = "a file has another name or another size"
            raise InputError(
                f"{self.name}: the files have changed since the checkpoint: {changed}. Resume over the same "
                "files, or begin a new run from the model with -i"
            )
        self.events_before, self._file, self._row = events, file, row

    def open(self, rules: EventRules, found: Diagnostics | None = None) -> DatasetReader:
        """Return a reader of the events from the position on."""
        if not rules.native:
            raise OptionError("Parquet and Arrow datasets cannot be read with --vw_exact")
        if rules.kind not in ("simple", "cb_adf", "cb_explore_adf"):
            raise OptionError(
                "Parquet and Arrow datasets are for single lines, --cb_adf and --cb_explore_adf, not for "
                f"--{rules.kind}"
            )
        decides = rules.kind != "simple"
        columns = self.columns(decides=decides)
        if columns.decides != decides:
            flag = "--cb_explore_adf" if columns.decides else "single lines, without --cb_explore_adf"
            raise OptionError(f'{self.name}: rows = "{columns.rows}" is for {flag}')
        if columns.cost_column is not None and columns.probability is None and not rules.uniform:
            raise InputError(
                f"{self.name}: {columns.cost_column} has costs, and no column has the probabilities of the "
                "actions; --missing_probability uniform assumes that actions were chosen uniformly"
            )
        reader = DatasetReader(
            self.files,
            columns,
            rules,
            start=(self._file, self._row),
            learnt=self._learnt,
            note=self._note,
            problems=Diagnostics() if found is None else found,
        )
        self._learnt = reader.families
        return reader

    def _note(self, file: int, rows: NDArray[np.int64], end: int) -> None:
        """Store the rows of the events of a block."""
        events = self.events_before
        if self._marks:
            events = self._marks[-1].events + len(self._marks[-1].rows)
        self._marks.append(_Mark(events, file, rows, end))

    def position(self, events: int) -> dict[str, Any]:
        """Return the position after `events` events of this pass."""
        file, row = self._file, self._row
        if events != self.events_before:
            for mark in reversed(tuple(self._marks)):
                if mark.events < events <= mark.events + len(mark.rows):
                    done = events - mark.events
                    file, row = mark.file, int(mark.rows[done]) if done < len(mark.rows) else mark.end
                    break
            else:
                raise ValueError(f"there is no position of event {events}")
        return {
            "events": events,
            "file": file,
            "row": row,
            "files": len(self.files),
            "digest": digest_of(self.files),
        }
