"""Sources of events, and their readers, selected by the options."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from onlineauto.engine.stream.dialect import NATIVE, dialect_of
from onlineauto.engine.stream.read_ahead import read_ahead, saves_time
from onlineauto.engine.stream.validity import find_odd_labels
from onlineauto.errors import EventTypeError, InputError, OptionError, short_repr
from onlineauto.features.block import Block
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.blocks.file import BEGIN, BlockReader
from onlineauto.formats.datasets.files import STREAMED
from onlineauto.formats.lines.event_source import EventRules, EventSource
from onlineauto.formats.lines.reader_state_kernels import ReaderRules
from onlineauto.formats.options import TEXT, InputOptions, format_of
from onlineauto.formats.sources.source import ByteSource, EventFile, FirstLines, Source, name_of

if TYPE_CHECKING:
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.lines.event_source import EventReader
    from onlineauto.formats.lines.line_reader import LineReader
    from onlineauto.options import Configuration

KINDS = ("ccb_explore_adf", "cb_explore_adf", "cb_adf", "cb_explore", "cb")
"""Kinds of contextual bandits, each named after its flag."""

Sources = Source | EventSource | Iterable["str | bytes | Block | os.PathLike[str] | BinaryIO"]
"""A source, or an iterable of items that are read one after the other. Items are texts of one event each,
blocks, and whole sources (path objects, binary files)."""

BlockSource = Callable[[Sources, "Configuration", "Diagnostics"], Iterator["Block"]]
"""Yields blocks of a source, read by the options, and counts problems with lines, like `read_blocks`."""


def with_datasets(source: Any, configuration: Configuration) -> Any:
    """Return a source; a path of Parquet, or a list of such paths, is wrapped in a `DatasetSource`."""
    if isinstance(source, EventSource):
        return source
    from onlineauto.formats.datasets.files import is_dataset

    if isinstance(source, list | tuple):
        paths = [path for path in source if isinstance(path, os.PathLike)]  # texts are events, not paths
        are_datasets = [is_dataset(path) for path in paths] if len(paths) == len(source) else []
    else:
        are_datasets = [is_dataset(source)]
    if not any(are_datasets):
        return source
    if not all(are_datasets):
        raise InputError("some of the files are Parquet and some are not: read them in two runs")
    from onlineauto.formats.datasets.dataset_source import DatasetSource

    return DatasetSource(source, configuration[InputOptions].columns)


def kind_of(configuration: Configuration) -> str:
    """Return the kind of event and prediction that the options select: one of `KINDS`, or ``"simple"``."""
    return next((kind for kind in KINDS if configuration.get(kind)), "simple")


def can_be_read_again(source: Sources) -> bool:
    """Return whether a second pass over a source yields the same events as the first one."""
    if isinstance(source, EventSource):
        return source.can_be_read_again
    if isinstance(source, list | tuple):
        return not any(
            hasattr(item, "read") or (isinstance(item, os.PathLike) and _is_pipe(item)) for item in source
        )
    if isinstance(source, str | os.PathLike):
        return source != "-" and not _is_pipe(source)
    return isinstance(source, bytes)


def _is_pipe(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a pipe or a device; a missing path counts as a file."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a path in any form
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def read_blocks(source: Sources, configuration: Configuration, problems: Diagnostics) -> Iterator[Block]:
    """Yield the blocks of a source, or of all items of an iterable, up to ``--examples`` events."""
    source = with_datasets(source, configuration)
    remaining = configuration[InputOptions].examples
    if isinstance(source, EventSource) and remaining >= 0:
        remaining = max(remaining - source.events_before, 0)
    blocks = _up_to(remaining, read_all(source, configuration, problems), configuration)
    if dialect_of(configuration) is not NATIVE:
        yield from blocks
        return
    yield from check_labels(blocks, configuration, problems)


def check_labels(
    blocks: Iterable[Block], configuration: Configuration, problems: Diagnostics
) -> Iterator[Block]:
    """Yield blocks, and add labels that name no action to the problems."""
    actions = _actions_of(configuration)
    for block in blocks:
        if actions is not None:
            find_odd_labels(block, actions, problems)
        yield block


def _actions_of(configuration: Configuration) -> int | None:
    """Return the number of actions, if each event is one line; else None."""
    counts = (configuration.get(name) for name in ("cb_explore", "cb"))
    return next((count for count in counts if isinstance(count, int)), None)


def _up_to(remaining: int, blocks: Iterator[Block], configuration: Configuration) -> Iterator[Block]:
    """Yield blocks up to `remaining` events; all if it is negative, or if the reader itself counts lines."""
    if remaining < 0 or dialect_of(configuration).counts_lines:
        yield from blocks
        return
    for block in blocks:
        part = block.head(min(remaining, len(block)))
        remaining -= len(part)
        yield part
        if remaining == 0:
            return


def read_all(source: Sources, configuration: Configuration, problems: Diagnostics) -> Iterator[Block]:
    """Yield the blocks of a source, or of all items of an iterable, to the end, without checking labels."""
    source = with_datasets(source, configuration)
    if isinstance(source, EventSource):
        events = source.open(event_rules(configuration), problems)
        yield from read_ahead(events)
        return
    if source is None or isinstance(source, str | os.PathLike | bytes) or hasattr(source, "read"):
        reader = open_source(cast("Source", source), configuration, diagnostics=problems)
        yield from read_ahead(reader) if saves_time(cast("Source", source)) else reader
        return
    _refuse_table(source)
    if not isinstance(source, Iterable):
        raise EventTypeError(
            f"{short_repr(source)} is not a source of events: give a path, a binary file, or an iterable of "
            "texts or blocks"
        )
    for kind, items in groupby(cast("Iterable[object]", source), _kind_of_item):
        if kind is Block:
            yield from cast("Iterator[Block]", items)
        elif kind is EventFile:
            separated = kind_of(configuration).endswith("adf") and format_of(configuration) is TEXT
            texts = EventFile(cast("Iterator[str | bytes]", items), multiline=separated)
            yield from open_lines(cast("BinaryIO", texts), configuration, diagnostics=problems)
        else:
            _refuse_count_of_lines(configuration, "of one file with --vw_exact, and there are several")
            for item in items:
                problems.of_file = f"{name_of(cast('Source', item))}: "
                yield from read_all(cast("Source", item), configuration, problems)
            problems.of_file = ""


def _refuse_table(source: object) -> None:
    """Reject a table, whose iteration would yield its keys or the names of its columns."""
    if isinstance(source, Mapping):
        raise EventTypeError(
            "a source of events cannot be a mapping; onlineauto.interop.from_dicts([…]) makes blocks"
        )
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        raise EventTypeError(
            "a source of events cannot be a frame; onlineauto.interop.from_frame(…) makes blocks of it, and "
            "AutoML, AutoMLRegressor and AutoMLClassifier fit it"
        )


def _kind_of_item(item: object) -> type:
    """Return the type as which an item is read: `Block`, a path (or file), or the text of an event."""
    if isinstance(item, Block):
        return Block
    return os.PathLike if isinstance(item, os.PathLike) or hasattr(item, "read") else EventFile


def _refuse_count_of_lines(configuration: Configuration, reason: str) -> None:
    """Reject ``--examples`` if it counts lines in this dialect."""
    if dialect_of(configuration).counts_lines and configuration[InputOptions].examples >= 0:
        raise OptionError(f"--examples counts the lines {reason}")


def rules_of(configuration: Configuration) -> dict[str, str | int | bool]:
    """Return the rules by which events are read, by option name; blocks with other rules are rejected.

    >>> from onlineauto.workspace.options import REGISTRY
    >>> rules_of(REGISTRY.parse("--cb_explore_adf"))["events"]
    'cb_adf'
    """
    kind, features = kind_of(configuration).replace("cb_explore", "cb"), configuration[FeatureOptions]
    rules: dict[str, str | int | bool] = {
        "events": kind,
        **dialect_of(configuration).rules,
        "hash": features.hash,
        "hash_seed": features.hash_seed,
    }
    if kind != "simple":
        rules["missing_probability"] = configuration[InputOptions].missing_probability
    return rules


def event_rules(configuration: Configuration) -> EventRules:
    """Return the rules by which a source with positions converts its rows to events."""
    features, inputs = configuration[FeatureOptions], configuration[InputOptions]
    return EventRules(
        kind=kind_of(configuration),
        hash=features.hash,
        hash_seed=features.hash_seed,
        strict=inputs.strict_parse,
        uniform=inputs.missing_probability == "uniform",
        native=dialect_of(configuration) is NATIVE,
        format=format_of(configuration).name,
        names=features.names,
        identities=frozenset(features.name_columns),
        chain_hash=inputs.chain_hash,
    )


def open_source(
    source: Source, configuration: Configuration, *, diagnostics: Diagnostics | None = None
) -> EventReader:
    """Open a source: a file of blocks, recognised by its first bytes, a path of Parquet, or text or JSON."""
    if isinstance(dataset := with_datasets(source, configuration), EventSource):
        return dataset.open(event_rules(configuration), diagnostics)
    opened = ByteSource(source)
    if diagnostics is not None:
        diagnostics.reading = opened.name
    if opened.begins_with(STREAMED[:4]) and opened.begins_with(STREAMED):  # do not wait for a fifth byte
        opened.close()
        raise InputError(
            f"{opened.name}: Parquet is read from a file, not from bytes or a stream: name the file"
        )
    if not opened.begins_with(BEGIN):
        return open_lines(opened, configuration, diagnostics=diagnostics)
    try:
        _refuse_count_of_lines(configuration, "of a text with --vw_exact, and this is a file of blocks")
        reader = BlockReader(opened, diagnostics=diagnostics)
        reader.check_rules(rules_of(configuration))
    except (InputError, OptionError):
        opened.close()
        raise
    return reader


def open_lines(
    source: Source | ByteSource, configuration: Configuration, *, diagnostics: Diagnostics | None = None
) -> LineReader:
    """Open a source of lines in the format that the options select."""
    if diagnostics is not None and not isinstance(source, ByteSource):
        diagnostics.reading = name_of(source)
    features, inputs = configuration[FeatureOptions], configuration[InputOptions]
    kind, dialect, text_format = kind_of(configuration), dialect_of(configuration), format_of(configuration)
    if dialect.counts_lines and inputs.examples >= 0:
        source = cast("BinaryIO", FirstLines(source, inputs.examples))
    rules = ReaderRules(
        multiline=kind.endswith("adf"),
        simple=kind == "simple",
        slots=kind == "ccb_explore_adf",
        quirks=dialect.quirks,
        hash_all=features.hash == "all",
        strict=inputs.strict_parse,
        uniform=inputs.missing_probability == "uniform",
        hash_seed=np.uint32(features.hash_seed),
        log=text_format.log,
        chain_hash=inputs.chain_hash,
    )
    read_by = rules_of(configuration)
    if text_format is TEXT:
        reader: LineReader = dialect.text(source, rules, diagnostics=diagnostics)
        reader.read_by = read_by
        return reader
    module, _, opener = text_format.opener.partition(":")
    open_reader: Callable[..., LineReader] = getattr(import_module(module), opener)
    return open_reader(
        source, rules, diagnostics=diagnostics, read_by=read_by, event_rules=event_rules(configuration)
    )
