"""``read_named``: VW text as events with names."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, cast

from onlineauto.engine.stream.dialect import NATIVE, dialect_of
from onlineauto.engine.stream.source import kind_of, open_lines
from onlineauto.errors import OptionError
from onlineauto.features.event import events
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import NamedEvent, NamedLine
from onlineauto.formats.options import TEXT, format_of
from onlineauto.interop.names import RememberedLines, words_of
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from onlineauto.features.block import Block
    from onlineauto.features.event import Line
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.sources.source import Source
    from onlineauto.workspace.option_types import Options


def read_named(
    source: Source, *, diagnostics: Diagnostics | None = None, **options: Unpack[Options]
) -> Iterator[NamedEvent]:
    r"""Yield the events of a VW text, with the names of namespaces and features.

    Blocks have only the hashes of names, so each line is read a second time, in Python. Use this to convert
    and inspect events, not to learn. A feature without a name (``:3``, or ``day:monday``, whose value is a
    string) is named by the number with the same hash.

    Parameters
    ----------
    source : path, bytes, binary file or None
        ``"-"`` and None are standard input; gzip and zstd are detected.
    diagnostics : Diagnostics, optional
        Counts and stores the problems of lines.
    **options
        Options of the command line.

    Raises
    ------
    InputError
        If the source cannot be read.
    OptionError
        If an option is unknown or out of range; or is ``vw_exact`` or ``hash="all"``, with which some
        features have no names; or is ``json`` or ``dsjson``.

    Examples
    --------
    >>> [event] = read_named(b"shared |user tom age:0.5\n0:-1:0.5 |a politics\n|a sports\n", cb_adf=True)
    >>> [line.spans for line in event.lines]
    [(('user', (('tom', 1.0), ('age', 0.5))),), (('a', (('politics', 1.0),)),), (('a', (('sports', 1.0),)),)]
    """
    configuration = REGISTRY.from_keywords(**options)
    if dialect_of(configuration) is not NATIVE or configuration[FeatureOptions].hash == "all":
        raise OptionError("names cannot be read with vw_exact or hash='all'")
    if format_of(configuration) is not TEXT:
        raise OptionError("names can be read only from VW text")
    names = NameHashes(hash_seed=configuration[FeatureOptions].hash_seed)
    kind = kind_of(configuration)
    multiline, slots = kind.endswith("adf"), kind == "ccb_explore_adf"
    with RememberedLines(source) as lines:
        for block in open_lines(cast("BinaryIO", lines), configuration, diagnostics=diagnostics):
            bounds = block.event_start.tolist()
            for event, (first, last) in zip(events(block), pairwise(bounds), strict=True):
                texts = [lines.text(line.number) for line in event.lines]
                named = [
                    _named_line(line, block, i, _names_in(text, names))
                    for line, i, text in zip(event.lines, range(first, last), texts, strict=True)
                ]
                yield NamedEvent(lines=tuple(named), multiline=multiline, slots=slots)


def _names_in(text: str, names: NameHashes) -> dict[tuple[str, int], str]:
    """Return the names of a line's features, by namespace and hash."""
    result: dict[tuple[str, int], str] = {}
    for namespace, words in words_of(text):
        number = names.namespace(namespace)
        for word in words:
            if word.name:
                result.setdefault((namespace, names.feature(word.name, number)), word.name)
    return result


def _named_line(line: Line, block: Block, i: int, names: dict[tuple[str, int], str]) -> NamedLine:
    """Return line `i` of a block with the names of its features."""
    spans = []
    for span in range(block.line_start[i], block.line_start[i + 1]):
        number = block.span_namespace[span]
        namespace = block.namespaces.names[number].decode("utf-8", "surrogateescape")
        seed = block.namespaces.hashes[number]
        span_slice = slice(block.span_start[span], block.span_start[span + 1])
        features = tuple(
            (names.get((namespace, hash_)) or str((hash_ - seed) % 2**32), value)
            for hash_, value in zip(
                block.hash[span_slice].tolist(), block.value[span_slice].tolist(), strict=True
            )
        )
        spans.append((namespace, features))
    tag = block.tag[block.tag_start[i] : block.tag_start[i + 1]].tobytes()
    return NamedLine(
        spans=tuple(spans),
        shared=line.shared,
        slot=line.slot,
        tag=tag.decode("utf-8", "surrogateescape"),
        label=line.label,
        weight=line.weight,
        initial=line.initial,
        costs=line.costs,
    )
