"""``named_blocks``: single events with the names of their features."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, cast

from onlineauto.engine.stream.dialect import NATIVE, dialect_of
from onlineauto.engine.stream.source import open_lines, open_source
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.blocks.file import BEGIN
from onlineauto.formats.options import TEXT, InputOptions, format_of
from onlineauto.formats.sources.source import ByteSource, name_of
from onlineauto.interop.names import LineNames, RememberedLines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.sources.source import Source
    from onlineauto.options import Configuration


def line_names(configuration: Configuration) -> LineNames:
    """Return an empty `LineNames` for lines that are read with these options."""
    text_format, features = format_of(configuration), configuration[FeatureOptions]
    return LineNames(
        as_vw=dialect_of(configuration) is not NATIVE,
        json=text_format is not TEXT,
        log=text_format.log,
        chain_hash=configuration[InputOptions].chain_hash,
        hash=features.hash,
        hash_seed=features.hash_seed,
    )


def named_blocks(
    source: Sources,
    configuration: Configuration,
    problems: Diagnostics,
    *,
    names: LineNames,
) -> Iterator[Block]:
    """Yield each event of a source, or of several, as a block, while `names` has the names of that event.

    Each line is read a second time, in Python. Block files have no names: their features are named by
    numbers.
    """
    if isinstance(source, list):
        for each in cast("list[Source]", source):
            problems.of_file = f"{name_of(each)}: "
            yield from named_blocks(each, configuration, problems, names=names)
        problems.of_file = ""
        return
    data = ByteSource(cast("Source", source))
    if data.begins_with(BEGIN):
        data.close()
        for block in open_source(cast("Source", source), configuration, diagnostics=problems):
            yield from _single(block)
        return
    with RememberedLines(data) as lines:
        for block in open_lines(cast("BinaryIO", lines), configuration, diagnostics=problems):
            for event in _single(block):
                names.forget()
                for line in range(event.event_start[0], event.event_start[1]):
                    names.read(lines.text(int(block.line_number[line])))
                yield event


def _single(block: Block) -> Iterator[Block]:
    for i in range(len(block)):
        yield block.head(i + 1).tail(i)
