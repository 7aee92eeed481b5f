"""``DatasetSource``: events of a dataset, read from a position."""

from __future__ import annotations

import os
from collections import deque
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.errors import InputError, OptionError
from onlineauto.formats.datasets.arrow_arrays import type_at
from onlineauto.formats.datasets.columns import DatasetColumns, columns_of, read_columns
from onlineauto.formats.datasets.dataset_reader import DatasetReader
from onlineauto.formats.datasets.files import DatasetFile, digest_of, files_of_dataset, files_of_paths
from onlineauto.formats.datasets.guard import UnreadableError, read_group
from onlineauto.formats.datasets.inference import all_values, infer_columns
from onlineauto.formats.lines.diagnostics import Diagnostics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.formats.lines.event_source import EventRules

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

    Parameters
    ----------
    source : path, sequence of paths, pyarrow.dataset.Dataset or pyarrow.RecordBatchReader
        A path is a file, a folder, a pattern such as ``logs/*.parquet``, or an address such as
        ``s3://bucket/logs``.
    columns : path, mapping or DatasetColumns, optional
        Meaning of the columns; inferred by default.

    Attributes
    ----------
    name : str
        Name in messages.
    events_before : int
        Number of events before the position at which it begins to be read.

    Raises
    ------
    InputError
        There is no such file, or the file of columns is malformed.
    ModuleNotFoundError
        pyarrow is not installed.
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

    def schema(self) -> Any:
        """Return the Arrow schema of the first file that can be read.

        Raises
        ------
        InputError
            No file can be read.
        """
        first, problem = self._first_file()
        if first is None:
            raise InputError(problem)
        first.close()
        return first.schema

    def columns(self, *, decides: bool | None = None) -> DatasetColumns:
        """Return the roles of the columns, inferred by default; `decides` is passed to `infer_columns`.

        Raises
        ------
        InputError
            No file can be read, or the roles cannot be inferred.
        """
        if self._columns is None or (self._columns.rows == "events" and self._columns.choices is None):
            self._columns = self._infer_columns(decides)
        return self._columns

    def _infer_columns(self, decides: bool | None) -> DatasetColumns:
        first, problem = self._first_file()
        if first is None:
            raise InputError(problem)
        try:
            columns = self._given
            if columns is None:
                batch = None if self._once else _first_batch(first)
                try:
                    columns = infer_columns(first.schema, batch, decides=decides)
                except InputError as error:
                    raise InputError(f"{self.name}: {error}") from None
        finally:
            first.close()
        if columns.rows == "events" and columns.choices is None and columns.action is not None:
            if self._once:
                raise InputError("a reader of batches can be read only once: name the actions in choices")
            values = all_values(self._batches(columns.action), columns.action)
            columns = replace(columns, choices=values)
        return columns

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
            try:
                opened = file.open()
            except UnreadableError:
                continue  # the reader reports this file
            try:
                if type_at(opened.schema, column) is not None:
                    for group in range(len(opened.groups)):
                        pieces = read_group(opened, group, [column])
                        yield from (piece.batch for piece in pieces if piece.batch is not None)
            finally:
                opened.close()

    # -- the protocol of event sources -----------------------------------------------------------------

    def seek(self, position: Mapping[str, Any] | None) -> None:
        """Set the position at which the next `open` begins; None is the beginning.

        Raises
        ------
        InputError
            The position is not one of a dataset, or the files have changed since it was reported.
        """
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
        """Return a reader of the events from the position on.

        Raises
        ------
        InputError
            The files cannot be read, or the columns do not fit them.
        OptionError
            The kind of learning does not support such events.
        """
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
        return DatasetReader(
            self.files,
            columns,
            rules,
            start=(self._file, self._row),
            note=self._note,
            problems=Diagnostics() if found is None else found,
        )

    def _note(self, file: int, rows: NDArray[np.int64], end: int) -> None:
        """Store the rows of the events of a block."""
        events = self.events_before
        if self._marks:
            events = self._marks[-1].events + len(self._marks[-1].rows)
        self._marks.append(_Mark(events, file, rows, end))

    def position(self, events: int) -> dict[str, Any]:
        """Return the position after `events` events of this pass.

        Raises
        ------
        ValueError
            The event was not read yet, or is not in one of the last blocks.
        """
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


def _first_batch(file: Any) -> Any:
    """Return the first rows of a file; None if there are none or they cannot be read."""
    for group in range(len(file.groups)):
        for piece in read_group(file, group, file.schema.names):
            if piece.batch is not None and piece.rows:
                return piece.batch
    return None
