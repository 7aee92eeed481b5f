"""Source: what can be read, and the reader that the options ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, cast

from onlineauto.engine.options import RunOptions
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.first_lines import FirstLines
from onlineauto.formats.options import InputOptions
from onlineauto.formats.text import TextReader

if TYPE_CHECKING:
    from onlineauto.formats.diagnostics import Diagnostics
    from onlineauto.formats.source import Source
    from onlineauto.options import Configuration

__all__ = ["KINDS", "kind_of", "open_text"]

KINDS = ("cb_explore_adf", "cb_adf", "cb_explore", "cb")
"""Kinds of contextual bandits, each named after its flag."""


def kind_of(configuration: Configuration) -> str:
    """What an event is and what is predicted for it: one of `KINDS`, or ``"simple"``."""
    return next((kind for kind in KINDS if configuration.get(kind)), "simple")


def open_text(
    source: Source, configuration: Configuration, *, diagnostics: Diagnostics | None = None
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
