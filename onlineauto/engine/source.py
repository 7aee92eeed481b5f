"""Source: what can be read, and the reader that the options ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, cast

from onlineauto.engine.options import RunOptions
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.event_file import EventFile
from onlineauto.formats.first_lines import FirstLines
from onlineauto.formats.json import JsonReader
from onlineauto.formats.options import InputOptions
from onlineauto.formats.text import TextReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.formats.line_reader import LineReader
    from onlineauto.formats.diagnostics import Diagnostics
    from onlineauto.formats.source import Source
    from onlineauto.options import Configuration

__all__ = ["KINDS", "events_file", "kind_of", "open_events"]

KINDS = ("cb_explore_adf", "cb_adf", "cb_explore", "cb")
"""Kinds of contextual bandits, each named after its flag."""


def kind_of(configuration: Configuration) -> str:
    """What an event is and what is predicted for it: one of `KINDS`, or ``"simple"``."""
    return next((kind for kind in KINDS if configuration.get(kind)), "simple")


def open_events(
    source: Source, configuration: Configuration, *, diagnostics: Diagnostics | None = None
) -> LineReader:
    """Open VW text or JSON as the options understand it.

    Raises
    ------
    InputError
        The source cannot be opened.
    """
    features, inputs = configuration[FeatureOptions], configuration[InputOptions]
    kind, exact = kind_of(configuration), configuration[RunOptions].vw_exact
    if exact and inputs.examples >= 0:
        source = cast("BinaryIO", FirstLines(source, inputs.examples))
    rules: dict[str, Any] = {
        "label": "simple" if kind == "simple" else "cb",
        "multiline": kind.endswith("adf"),
        "exact": exact,
        "hash_all": features.hash == "all",
        "hash_seed": features.hash_seed,
        "strict": inputs.strict_parse,
        "uniform": inputs.missing_probability == "uniform",
        "diagnostics": diagnostics,
    }
    if inputs.json or inputs.dsjson:
        return JsonReader(source, log=inputs.dsjson, chain_hash=inputs.chain_hash, **rules)
    return TextReader(source, **rules)


def events_file(texts: Iterator[str | bytes], configuration: Configuration) -> BinaryIO:
    """Make a file of the texts of events, each ended as its format wants it."""
    inputs = configuration[InputOptions]
    separated = kind_of(configuration).endswith("adf") and not (inputs.json or inputs.dsjson)
    return cast("BinaryIO", EventFile(texts, multiline=separated))
