"""``DatasetReader``: reads the files of a dataset into blocks, and reports their problems."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.errors import InputError, ParseError
from onlineauto.formats.datasets.arrow_arrays import MOST_ELEMENTS, column_at, flatten, is_list, pyarrow
from onlineauto.formats.datasets.features import Encoder
from onlineauto.formats.datasets.guard import UnreadableError, read_group
from onlineauto.formats.datasets.row_decoder import RowDecoder
from onlineauto.formats.datasets.schema import families, kinds_of_names, problem_of_schema
from onlineauto.formats.lines.diagnostics import ProblemCode, make_diagnostic, summary_of
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.sources.source import SingleCaller

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.formats.datasets.columns import DatasetColumns
    from onlineauto.formats.datasets.event_table import EventTable
    from onlineauto.formats.datasets.files import DatasetFile
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.lines.event_source import EventRules
    from onlineauto.formats.mappings.identities import Identities

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
                yield from self._of_file(index, row if index == first else 0)

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
        for column in (each for group in self._columns.context.values() for each in group):
            if is_list((array := column_at(batch, column)).type):
                rows = np.flatnonzero(flatten(array)[2] & ~bad)
                self._report(ProblemCode.LIST_TOO_LONG, first + rows, [column] * min(len(rows), 100))
                bad[rows] = True
        return batch.filter(pyarrow().array(~bad)) if bad.any() else batch

    def _report_columns(self) -> None:
        for each in self._columns.left_out:
            self._add_problem(ProblemCode.COLUMN_LEFT_OUT, 1, each)

    def _of_file(self, index: int, start: int) -> Generator[Block]:
        with self._open(index) as opened:
            if opened is not None:
                for table in self._tables(opened, start):
                    yield from self._blocks(table, index)

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
