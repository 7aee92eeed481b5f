"""Predictions of a workspace, and lines of events, in any form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from onlineauto import Workspace
from onlineauto.engine.stream.source import Sources
from onlineauto.features.block import Block
from tests.formats.reading import SHAPES, text_reader
from tests.naive.lines import unpack

ADF: dict[str, Any] = {"cb_explore_adf": True, "quadratic": "::", "bit_precision": 12}


def predictions(source: Sources, **options: Any) -> list[float]:
    """Predictions made while learning from a source."""
    found: list[float] = []
    for _, outcomes in Workspace(**options).stream(source):
        found += outcomes.prediction.tolist() if "cb_explore_adf" not in options else outcomes.score.tolist()
    return found


def lines_of(blocks: Iterable[Block]) -> list[Any]:
    """Every line of every event, as plain values, without its number: what counts depends on the source."""
    return _without_numbers(unpack(list(blocks)))


def _without_numbers(events: list[list[Any]]) -> list[list[Any]]:
    return [[replace(line, number=0) for line in event] for event in events]


def lines_of_text(text: str, kind: str, **options: Any) -> list[Any]:
    """Return the lines of a text, which must be free of problems."""
    reader = text_reader(text.encode("utf-8", "surrogateescape"), **SHAPES[kind], **options)
    events = unpack(reader)
    assert not reader.diagnostics.kept
    return _without_numbers(events)
