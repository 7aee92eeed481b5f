"""Source: what can be read, and the reader that the options ask for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, BinaryIO, cast

from onlineauto.engine.options import RunOptions
from onlineauto.engine.read_ahead import pays, read_ahead
from onlineauto.errors import OptionError
from onlineauto.features.block import Block
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.event_file import EventFile
from onlineauto.formats.first_lines import FirstLines
from onlineauto.formats.options import InputOptions
from onlineauto.formats.source import Source
from onlineauto.formats.text import TextReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.formats.diagnostics import Diagnostics
    from onlineauto.formats.source import ByteSource
    from onlineauto.options import Configuration

__all__ = ["KINDS", "Sources", "can_be_read_again", "kind_of", "open_text", "read_blocks"]

KINDS = ("cb_explore_adf", "cb_adf", "cb_explore", "cb")
"""Kinds of contextual bandits, each named after its flag."""

Sources = Source | Iterable["str | bytes | Block | os.PathLike[str] | BinaryIO"]
"""A source, or an iterable of events: texts, one event each, blocks, and whole sources (paths that are no
text, binary files), one after the other."""


def kind_of(configuration: Configuration) -> str:
    """What an event is and what is predicted for it: one of `KINDS`, or ``"simple"``."""
    return next((kind for kind in KINDS if configuration.get(kind)), "simple")


def can_be_read_again(source: Sources) -> bool:
    """Whether a second pass over a source gives the same events as the first one."""
    if isinstance(source, list | tuple):
        return not any(hasattr(item, "read") for item in source)
    return isinstance(source, str | os.PathLike | bytes) and source != "-"


def read_blocks(source: Sources, configuration: Configuration, found: Diagnostics) -> Iterator[Block]:
    """Yield the blocks of a source, or of all that an iterable gives.

    Parameters
    ----------
    source : Sources
        What to read.
    configuration : Configuration
        How to read it.
    found : Diagnostics
        Counts and keeps what is wrong with lines.

    Raises
    ------
    InputError
        A source cannot be read.
    OptionError
        ``--examples`` under ``--vw_exact``, which counts the lines of one source, and there are several.
    """
    if _is_source(source):
        reader = open_text(cast("Source", source), configuration, diagnostics=found)
        ahead = configuration[RunOptions].threads > 1 and pays(cast("Source", source))
        yield from read_ahead(reader) if ahead else reader
        return
    for kind, items in groupby(cast("Iterable[object]", source), _kind_of_item):
        if kind is Block:
            yield from cast("Iterator[Block]", items)
        elif kind is EventFile:
            texts = cast("Iterator[str | bytes]", items)
            file = EventFile(texts, multiline=kind_of(configuration).endswith("adf"))
            yield from open_text(cast("BinaryIO", file), configuration, diagnostics=found)
        else:
            _refuse_count_of_lines(configuration)
            for item in items:
                yield from read_blocks(cast("Source", item), configuration, found)


def _is_source(source: object) -> bool:
    return source is None or isinstance(source, str | os.PathLike | bytes) or hasattr(source, "read")


def _kind_of_item(item: object) -> type:
    """What an item of an iterable is read as."""
    if isinstance(item, Block):
        return Block
    return os.PathLike if isinstance(item, os.PathLike) or hasattr(item, "read") else EventFile


def _refuse_count_of_lines(configuration: Configuration) -> None:
    if configuration[RunOptions].vw_exact and configuration[InputOptions].examples >= 0:
        raise OptionError("--examples counts the lines of one file with --vw_exact, and there are several")


def open_text(
    source: Source | ByteSource, configuration: Configuration, *, diagnostics: Diagnostics | None = None
) -> TextReader:
    """Open VW text as the options understand it.

    Raises
    ------
    InputError
        The source cannot be opened.
    """
    kind = kind_of(configuration)
    features, inputs = configuration[FeatureOptions], configuration[InputOptions]
    exact = configuration[RunOptions].vw_exact
    if exact and inputs.examples >= 0:
        source = cast("BinaryIO", FirstLines(source, inputs.examples))
    return TextReader(
        source,
        label="simple" if kind == "simple" else "cb",
        multiline=kind.endswith("adf"),
        exact=exact,
        hash_all=features.hash == "all",
        hash_seed=features.hash_seed,
        strict=inputs.strict_parse,
        uniform=inputs.missing_probability == "uniform",
        diagnostics=diagnostics,
    )
