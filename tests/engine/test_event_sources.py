"""Sources of all kinds are read from a position, report it, and resume there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlineauto import convert, read
from onlineauto.engine.stream.position import PositionedBlocks
from onlineauto.engine.stream.source import event_rules, read_blocks
from onlineauto.errors import InputError
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.formats.lines.event_source import EventSource
from onlineauto.workspace.options import REGISTRY
from tests.naive.lines import unpack

N = 100


def sources(folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the events in every form, with the options by which they are read."""
    lines = [f"{i % 3} |a word=w{i % 7} x:{i + 1}" for i in range(N)]
    text = folder / "e.txt"
    text.write_text("\n".join(lines) + "\n")
    convert(text, folder / "e.blocks")
    json = folder / "e.json"
    json.write_text(
        "".join(f'{{"_label":{i % 3},"a":{{"word=w{i % 7}":1,"x":{i + 1}}}}}\n' for i in range(N))
    )
    columns = {"y": [float(i % 3) for i in range(N)], "word": [f"w{i % 7}" for i in range(N)]}
    pq.write_table(pa.table({**columns, "x": range(1, N + 1)}), folder / "e.parquet", row_group_size=30)
    of = {"rows": "labels", "label": "y", "context": {"a": ["word", "x"]}}
    return {
        "text": (text, {}),
        "blocks file": (folder / "e.blocks", {}),
        "json": (json, {"json": True}),
        "texts": (lines, {}),
        "blocks": (list(read(text)), {}),
        "parquet": (DatasetSource(folder / "e.parquet", of), {}),
    }


def events_of(source: EventSource, options: dict[str, Any]) -> list[Any]:
    found = unpack(source.open(event_rules(REGISTRY.from_keywords(**options))))
    return [[(line.label, line.spans) for line in event] for event in found]


@pytest.mark.parametrize("form", ["text", "blocks file", "json", "texts", "blocks", "parquet"])
@pytest.mark.parametrize("done", [0, 1, 30, 99, 100])
def test_source_is_resumed_at_its_position(tmp_path: Path, form: str, done: int) -> None:
    found, options = sources(tmp_path)[form]
    configuration = REGISTRY.from_keywords(**options)
    source = PositionedBlocks(found, configuration, read_blocks)
    assert isinstance(source, EventSource)
    everything = events_of(source, options)
    assert len(everything) == N
    position = source.position(done)
    assert position["events"] == done
    source.seek(position)
    assert source.events_before == done
    assert events_of(source, options) == everything[done:]
    source.seek(None)
    assert events_of(source, options) == everything
    assert source.can_be_read_again


def test_position_behind_the_end_is_an_error(tmp_path: Path) -> None:
    found, options = sources(tmp_path)["text"]
    source = PositionedBlocks(found, REGISTRY.from_keywords(**options), read_blocks)
    source.seek({"events": N + 1})
    with pytest.raises(InputError, match=f"the input has {N} events"):
        events_of(source, options)
