"""``Predictions``: the files of ``-p`` and ``-r``, in VW's layout.

==================  ===================================================================================
kind                what a prediction looks like
==================  ===================================================================================
single-line         ``0.579380 tag``; a whole number without decimals: ``1``
``--cb_explore*``   ``0:0.975,1:0.025 tag``: actions and their probabilities, then an empty line
``--ccb_explore_*`` the same without a tag, a line for each slot, the chosen action first; then an empty line
``--cb_adf``        ``0 tag``: the best action, then an empty line; with ``--rank_all`` all actions with
                    their costs, as above
``--cb N``          like ``--cb_adf``: actions count from 0 here too, although labels count from 1
==================  ===================================================================================

Actions come best first; they are named if all events have the same actions and the source names them. Tags
are those of the event's first line. In names and tags, blanks, control bytes and, in names, the separators
``,`` and ``:`` become ``_``; with ``--vw_exact`` tags are written byte for byte, as by VW.

Source: VW ``global_data.cc`` (``print_result_by_ref``), ``action_score.cc``, ``cb_adf.cc``,
``cb_to_cb_adf.cc``.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.engine.report.progress import format_fixed, format_trimmed
from onlineauto.errors import InputError, OptionError, install_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.search.journal import Sink
    from onlineauto.features.block import Block

STDOUT: Final = ("stdout", "/dev/stdout")
_IN_TAGS: Final = re.compile(r"[\x00-\x20\x7f]")
_IN_NAMES: Final = re.compile(r"[\x00-\x20\x7f\s,:]")
_REMEMBERED: Final = 1 << 16
"""Maximum number of memorised texts of numbers; most runs repeat many numbers."""

ENDING: Final = ".parquet"
"""Ending of the names of files that are written as Parquet."""
_ROWS: Final = 1 << 16
"""Number of events in a row group."""


class ParquetPredictions:
    """Writes predictions like `Predictions`, to a file of Parquet, which is complete once closed."""

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
                f"{path}: Parquet is written by pyarrow: {install_hint('parquet')}", name=error.name
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
            entries = slice(int(outcomes.action_start[0]), int(outcomes.action_start[-1]))
            actions = self._named(pa.array(outcomes.action[entries], pa.int32()))
            scores = pa.array(outcomes.score[entries], pa.float32())
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


class Predictions:
    """Formats predictions and writes them to an open binary file, one block at a time.

    `raw` scores are those before clipping and link; `raw_tags` are written byte for byte.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        kind: str,
        rank_all: bool = False,
        raw: bool = False,
        names: Sequence[str] = (),
        raw_tags: bool = False,
    ) -> None:
        self._sink, self._raw_tags = sink, raw_tags
        self._names = [_IN_NAMES.sub("_", name).encode("utf-8").decode("latin-1") for name in names]
        self._lists = "explore" in kind or rank_all
        self._simple = kind == "simple"
        self._raw = raw
        self._numbers = _Spelled(spell_number if self._simple else partial(format_trimmed, digits=6))

    def write(self, block: Block, outcomes: Outcomes) -> None:
        """Write the predictions for a block and flush."""
        if len(outcomes):
            self._sink.write(self.spell(block, outcomes))
            self._sink.flush()

    def spell(self, block: Block, outcomes: Outcomes) -> bytes:
        """Return the bytes that `write` writes."""
        if self._simple:
            texts, end = self._numbers.all(outcomes.raw if self._raw else outcomes.prediction), "\n"
        else:
            texts = self._action_lists(outcomes) if self._lists else self._best_actions(outcomes)
            end = "\n\n"
        if outcomes.slots is not None:
            start = outcomes.slots.start.tolist()
            texts = ["".join(f"{text}\n" for text in texts[i:j]) for i, j in pairwise(start)]
            end = "\n"
        elif len(block.tag):
            texts = [text + tag for text, tag in zip(texts, self._tags(block, outcomes.line), strict=True)]
        texts.append("")
        return end.join(texts).encode("latin-1")

    def _action_lists(self, outcomes: Outcomes) -> list[str]:
        scores, actions = self._numbers.all(outcomes.score), map(self._name, outcomes.action.tolist())
        pairs = [f"{action}:{score}" for action, score in zip(actions, scores, strict=True)]
        start = outcomes.action_start.tolist()
        return [",".join(pairs[i:j]) for i, j in pairwise(start)]

    def _best_actions(self, outcomes: Outcomes) -> list[str]:
        """Return the first action of each event as text, "" for an event without actions."""
        start = outcomes.action_start
        has_actions = start[:-1] < start[1:]
        best = np.full(len(outcomes), -1, np.int64)
        best[has_actions] = outcomes.action[start[:-1][has_actions]]
        return [self._name(action) if action >= 0 else "" for action in best.tolist()]

    def _name(self, action: int) -> str:
        return self._names[action] if self._names else str(action)

    def _tags(self, block: Block, lines: NDArray[np.int64]) -> Iterator[str]:
        """Return each event's tag with a blank before it, or "" without a tag; bytes as Latin-1."""
        text = block.tag.tobytes().decode("latin-1")
        text = text if self._raw_tags else _IN_TAGS.sub("_", text)
        starts, stops = block.tag_start[lines].tolist(), block.tag_start[lines + 1].tolist()
        return (f" {text[i:j]}" if i < j else "" for i, j in zip(starts, stops, strict=True))


@contextmanager
def open_sink(path: str, *, at: int = 0) -> Iterator[Sink]:
    """Open a file to write after its first `at` bytes; ``stdout`` is standard output, which is not closed."""
    if path not in STDOUT:
        with _open(path, at) as file:
            yield file
    elif hasattr(sys.stdout, "buffer"):
        yield sys.stdout.buffer
    else:
        yield _TextSink()


def _open(path: str, offset: int) -> BinaryIO:
    size = Path(path).stat().st_size if offset and Path(path).exists() else 0
    if size < offset:
        raise InputError(f"{path} has {size} bytes, but the resumed run had written {offset} bytes to it")
    try:
        file = Path(path).open("r+b" if offset else "wb")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror}") from error
    if offset:
        file.seek(offset)
        file.truncate()
    return file


class _TextSink:
    """Standard output that accepts only text, for example after a redirection in Python."""

    def write(self, data: bytes, /) -> None:
        sys.stdout.write(os.fsdecode(data))

    def flush(self) -> None:
        sys.stdout.flush()


class _Spelled(dict[int, str]):
    """Texts of float32 numbers by their bits, so that 0 and -0 differ and NaN can be looked up."""

    def __init__(self, spell: Callable[[float], str]) -> None:
        super().__init__()
        self._spell = spell

    def __missing__(self, bits: int) -> str:
        if len(self) >= _REMEMBERED:
            self.clear()
        text = self[bits] = self._spell(float(np.uint32(bits).view(np.float32)))
        return text

    def all(self, values: NDArray[np.float32]) -> list[str]:
        """Return the text of each value."""
        return [self[bits] for bits in values.view(np.uint32).tolist()]


def spell_number(value: float) -> str:
    """Return a prediction of a single line as text; a whole number has no decimals."""
    return format_fixed(value, digits=0 if value.is_integer() else 6)
