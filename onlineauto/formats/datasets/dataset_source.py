"""``DatasetSource``: events of a dataset, which `DatasetReader` reads from a position into blocks."""

from __future__ import annotations

import os
from collections import deque
from contextlib import closing, contextmanager, suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from onlineauto.errors import InputError, OptionError, ParseError
from onlineauto.formats.datasets.arrow_arrays import (
    MOST_ELEMENTS,
    UnreadableError,
    column_at,
    flatten,
    is_list,
    pyarrow,
    read_group,
    type_at,
)
from onlineauto.formats.datasets.columns import (
    DatasetColumns,
    columns_of,
    families,
    kinds_of_names,
    problem_of_schema,
    read_columns,
)
from onlineauto.formats.datasets.features import Encoder
from onlineauto.formats.datasets.files import DatasetFile, digest_of, files_of_dataset, files_of_paths
from onlineauto.formats.datasets.inference import all_values, infer_columns
from onlineauto.formats.datasets.row_decoder import RowDecoder
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode, make_diagnostic, summary_of
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.sources.source import SingleCaller

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.formats.datasets.event_table import EventTable
    from onlineauto.formats.datasets.files import DatasetFile
    from onlineauto.formats.lines.event_source import EventRules
    from onlineauto.formats.mappings.identities import Identities

_OUTCOMES = ("action", "cost", "reward", "probability", "chosen")
"""Columns that say what was decided and what came of it."""
_MARKS = 16
"""Number of blocks whose positions are stored; a run always learns one of the last few blocks."""

_LINES: Final = 1 << 14
"""Approximate number of lines of a block."""
_OF_FILES: Final = (
    ProblemCode.NOT_PARQUET,
    ProblemCode.OTHER_COLUMNS,
    ProblemCode.ROW_GROUP,
    ProblemCode.COLUMN_LEFT_OUT,
)
"""Problems whose texts are messages, not quotations from the input."""


class DatasetReader:
    """Iterator over the blocks of a dataset; can be iterated once."""

    def __init__(
        self,
        files: Sequence[DatasetFile],
        columns: DatasetColumns,
        rules: EventRules,
        *,
        start: tuple[int, int],
        learnt: Mapping[str, str],
        note: Callable[[int, NDArray[np.int64], int], object],
        problems: Diagnostics,
    ) -> None:
        self._files, self._columns, self._start, self._note = files, columns, start, note
        self.diagnostics, self._strict = problems, rules.strict
        self.name = files[0].name if files else "<no file>"
        names = NameHashes(hash=rules.hash, hash_seed=rules.hash_seed)
        self.namespaces = names.namespaces
        self._at = self.name
        self.families = dict(learnt)
        self._turn = SingleCaller(self.name)
        identities, numbers = self._check_first()
        identities |= rules.identities
        self._encoder = Encoder(
            names.of_columns(identities, numbers - identities),
            hash_all=rules.hash == "all",
            identities=identities,
        )
        self._decoder = RowDecoder(
            columns,
            self._encoder,
            choices=columns.choices or (),
            uniform=rules.uniform,
            report=self._report,
        )

    def _check_first(self) -> tuple[set[str], set[str]]:
        """Compare the columns with the first file that can be opened; return its `kinds_of_names`."""
        for file in self._files:
            try:
                opened = file.open()
            except UnreadableError:
                continue
            try:
                if problem := problem_of_schema(self._columns, opened.schema):
                    raise InputError(f"{file.name}: {problem}")
                self.families = families(self._columns, opened.schema) | self.families
                return kinds_of_names(self._columns, opened.schema, file.values)
            finally:
                opened.close()
        raise InputError(f"{self.name}: no file of the dataset can be opened as Parquet")

    @property
    def identities(self) -> Identities:
        """Columns whose numbers are names, each as ``namespace^column``."""
        return self._encoder.identities

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks."""
        return self.blocks()

    def blocks(self) -> Generator[Block]:
        """Yield the blocks, from a generator that must be closed if it is not exhausted."""
        with self._turn:
            first, row = self._start
            if first == 0 and row == 0:
                self._report_columns()
            for index in range(first, len(self._files)):
                with self._open(index) as opened:
                    tables = () if opened is None else self._tables(opened, row if index == first else 0)
                    for table in tables:
                        yield from self._blocks(table, index)

    def batches(self) -> Generator[Any]:
        """Yield the Arrow batches of which blocks are made, from the first file on."""
        with self._turn:
            self._report_columns()
            for index in range(len(self._files)):
                with self._open(index) as opened:
                    for first, batch in () if opened is None else self._batches(opened):
                        yield self._without_long_lists(first, batch)

    def _without_long_lists(self, first: int, batch: Any) -> Any:
        """Return the rows of a batch whose lists have not too many elements; count the others."""
        bad = np.zeros(batch.num_rows, bool)
        for column in (name for group in self._columns.context.values() for name in group):
            if is_list((array := column_at(batch, column)).type):
                rows = np.flatnonzero(flatten(array)[2] & ~bad)
                self._report(ProblemCode.LIST_TOO_LONG, first + rows, [column] * min(len(rows), 100))
                bad[rows] = True
        return batch.filter(pyarrow().array(~bad)) if bad.any() else batch

    def _report_columns(self) -> None:
        for reason in self._columns.left_out:
            self._add_problem(ProblemCode.COLUMN_LEFT_OUT, 1, reason)

    @contextmanager
    def _open(self, index: int) -> Iterator[Any | None]:
        """Yield the open file, and close it at the end; yield None and report a file that is not readable."""
        file = self._files[index]
        self._at = self.diagnostics.reading = file.name
        try:
            opened = file.open()
        except UnreadableError as error:
            self._add_problem(ProblemCode.NOT_PARQUET, 1, str(error))
            yield None
            return
        try:
            problem = problem_of_schema(self._columns, opened.schema) or self._type_change(opened.schema)
            if problem:
                self._add_problem(ProblemCode.OTHER_COLUMNS, 1, problem)
            yield None if problem else opened
        finally:
            opened.close()

    def _type_change(self, schema: Any) -> str:
        """Return a message about a column whose type differs from the first file, or ""."""
        for name, family in families(self._columns, schema).items():
            if self.families.setdefault(name, family) != family:
                return f"column {name!r} has {family} here, and {self.families[name]} in files before"
        return ""

    def _tables(self, file: Any, start: int) -> Iterator[EventTable]:
        """Yield the events of a file from a row on; if rows are actions, an event has all its rows."""
        together = self._columns.rows == "actions"
        rest, end = None, 0  # the rows of the last event, which may have more, and the row after them
        for first, batch in self._batches(file, start):
            if rest is not None and first != end:  # the rows between could not be read
                yield self._decoder.table(rest, end - rest.num_rows)
                rest = None
            end = first + batch.num_rows
            if together and rest is not None:
                first -= rest.num_rows
                batch = _join(rest, batch)
            if together and batch.num_rows:
                complete = int(self._decoder.first_rows(batch)[-1])
                rest, batch = batch.slice(complete), batch.slice(0, complete)
                if rest.num_rows > MOST_ELEMENTS:  # still too many for an event, and no more are joined
                    rest = rest.slice(rest.num_rows - MOST_ELEMENTS - 1)
            if batch.num_rows:
                yield self._decoder.table(batch, first)
        if rest is not None:
            yield self._decoder.table(rest, end - rest.num_rows)

    def _batches(self, file: Any, start: int = 0) -> Iterator[tuple[int, Any]]:
        """Yield the batches that can be read, from a row on, each with its first row."""
        used, first = list(self._columns.required()), 0
        for group, n_rows in enumerate(file.groups):
            row, first = first, first + n_rows
            if 0 <= first <= start:
                continue
            for piece in read_group(file, group, used):
                if piece.batch is None:
                    which = f"{group + 1} of {len(file.groups)}: {piece.problem}"
                    self._add_problem(ProblemCode.ROW_GROUP, row + 1, which)
                elif (skip := max(start - row, 0)) < piece.rows or not skip:
                    yield row + skip, piece.batch.slice(skip)
                row += piece.rows

    def _blocks(self, table: EventTable, index: int) -> Iterator[Block]:
        """Yield the events of a table in blocks."""
        per_event = 1.0
        if table.element_start is not None and len(table):
            per_event = 1 + float(table.element_start[-1]) / len(table)
        size = max(int(_LINES / per_event), 1)
        for begin in range(0, len(table), size):
            end = min(begin + size, len(table))
            block = table.block(begin, end, self._encoder)
            if len(block):
                rows = table.row[begin:end][table.good[begin:end]]
                self._note(index, rows, int(table.end if end == len(table) else table.row[end]))
                yield block

    # -- problems --------------------------------------------------------------------------------------

    def _report(
        self,
        code: ProblemCode,
        rows: NDArray[np.int64],
        texts: Sequence[str],
        column: str = "",  # noqa: ARG002 - of the protocol
    ) -> None:
        """Count a problem of events that begin at these rows."""
        self.diagnostics.count(code, len(rows) - len(texts))
        for row, text in zip(rows.tolist(), texts, strict=False):
            self._add_problem(code, row + 1, text)

    def _add_problem(self, code: ProblemCode, row: int, text: str) -> None:
        """Count and store a problem."""
        data = text.encode("utf-8", "surrogateescape")
        fatal = self._strict and code not in (ProblemCode.COLUMN_LEFT_OUT, ProblemCode.TAKEN_AS_UNIFORM)
        problem = make_diagnostic(
            code, file=self._at, line=row, column=1, text=data, unit="event", fatal=fatal
        )
        if code in _OF_FILES:
            problem = replace(problem, message=f"{summary_of(code)}: {text}")
        self.diagnostics.count(code, 1)
        self.diagnostics.keep(problem)
        if fatal:
            raise ParseError(str(problem), line=row, column=1)


def _join(first: Any, second: Any) -> Any:
    """Return two batches as one."""
    pa = pyarrow()
    table = pa.Table.from_batches([first, second.cast(first.schema)]).unify_dictionaries().combine_chunks()
    return table.to_batches()[0]


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
            absent: dict[str, Any] = dict.fromkeys((lacking - {"action"}) | {"action_costs"})
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
        needed = self._columns.needs
        stored = {name: value for name, value in columns if value or name in needed}
        return {"columns": stored, "types": self._learnt}

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
        if not all(isinstance(count, int) and count >= 0 for count in counts):
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
