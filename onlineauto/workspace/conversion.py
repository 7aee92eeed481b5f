"""Reading without learning, and conversion between text and files of blocks, which are read faster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from onlineauto.engine.stream.source import kind_of, open_source, read_blocks, rules_of
from onlineauto.errors import InputError, OptionError
from onlineauto.features.event import events
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.blocks.file import BEGIN, write_blocks
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.sources.replaced_file import replacing
from onlineauto.formats.sources.source import ByteSource
from onlineauto.formats.text.writer import block_text
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Unpack

    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.features.event import Event
    from onlineauto.formats.sources.source import Source
    from onlineauto.options import Configuration
    from onlineauto.workspace.option_types import Options


class Reading:
    """The blocks of a source, from `read`. One thread can iterate them once."""

    def __init__(self, source: Source, **options: Unpack[Options]) -> None:
        self._reader = open_source(source, REGISTRY.from_keywords(**options))

    @property
    def diagnostics(self) -> Diagnostics:
        """Problems with lines so far."""
        return self._reader.diagnostics

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks."""
        return iter(self._reader)

    def events(self) -> Iterator[Event]:
        """Yield the events one by one, as Python values."""
        for block in self:
            yield from events(block)


def read(source: Source, **options: Unpack[Options]) -> Reading:
    r"""Return a reading of VW text, JSON or a file of blocks, to iterate by block or by event.

    Parameters
    ----------
    source : path, bytes, binary file or None
        ``"-"`` and None are standard input; gzip, zstd and files of blocks are recognised.
    **options
        Options as on the command line; ``cb_adf`` and the like determine the format of labels and events.

    Returns
    -------
    Reading
        Iterating it yields `Block`, its ``events()`` yields `Event`.

    Raises
    ------
    InputError
        The source cannot be read.
    OptionError
        An option is unknown or out of range.

    Examples
    --------
    >>> text = b"shared |u tom\n0:-1:0.5 |a politics\n|a sports\n"
    >>> [event] = read(text, cb_adf=True).events()
    >>> event.actions[0].costs
    ((0, -1.0, 0.5),)
    """
    return Reading(source, **options)


def convert(
    source: Sources,
    path: str | os.PathLike[str],
    *,
    diagnostics: Diagnostics | None = None,
    configuration: Configuration | None = None,
    **options: Unpack[Options],
) -> int:
    r"""Write the events of a source to a file, text as blocks and blocks as text; return their number.

    The file appears once it is complete and on the disk; an existing file is replaced.

    Parameters
    ----------
    source : path, bytes, binary file, None, or an iterable
        See `Workspace.stream`.
    path : path
        The file to write.
    diagnostics : Diagnostics, optional
        Counts and stores problems with lines.
    configuration : Configuration, optional
        Parsed options, instead of keywords.
    **options
        Options as on the command line. Those that affect how events are read must be the same when the blocks
        are used: the kind of bandit, ``hash``, ``hash_seed``, ``missing_probability``, ``vw_exact``.

    Returns
    -------
    int
        Number of events written.

    Raises
    ------
    InputError
        The source or all of its lines cannot be read, or text cannot express its events.
    OptionError
        An option is unknown or out of range, or blocks made with ``--hash all`` are to become text.
    OSError
        The file cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from onlineauto import Workspace, convert
    >>> text = b"shared |u tom\n0:-1:0.5 |a politics\n|a sports\n"
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory) / "events.blocks"
    ...     print(convert(text, path, cb_adf=True), Workspace(cb_adf=True).fit(path).label_range)
    1 (-1.0, 0.0)
    """
    if configuration is None:
        configuration = REGISTRY.from_keywords(**options)
    elif options:
        raise OptionError("options go either into the configuration or into keywords, not into both")
    diagnostics = Diagnostics() if diagnostics is None else diagnostics
    blocks = _require_events(read_blocks(source, configuration, diagnostics), diagnostics)
    if not _all_blocks(source):
        return write_blocks(path, blocks, rules=rules_of(configuration))
    if configuration[FeatureOptions].hash == "all":
        raise OptionError(
            "blocks made with --hash all cannot become text: no names can be found for their hashes"
        )
    kind = kind_of(configuration)
    n_events = 0
    with replacing(path) as file:
        for block in blocks:
            text = block_text(block, multiline=kind.endswith("adf"), slots=kind == "ccb_explore_adf")
            file.write(text)
            n_events += len(block)
    return n_events


def _require_events(blocks: Iterable[Block], diagnostics: Diagnostics) -> Iterator[Block]:
    """Yield the blocks; raise an error at the end if there were problems and not a single event."""
    n_events = 0
    for block in blocks:
        n_events += len(block)
        yield block
    if not n_events and diagnostics.total:
        raise InputError(f"no event could be read ({diagnostics.total} problems): nothing is written")


def has_blocks(source: object) -> bool:
    """Return whether a source is a file of blocks, or its bytes; False for a pipe, which is not read."""
    if not isinstance(source, str | bytes | os.PathLike) or source == "-":
        return False
    if not isinstance(source, bytes) and not os.path.isfile(source):  # noqa: PTH113 - a path may be text
        return False
    opened = ByteSource(source)
    try:
        return opened.begins_with(BEGIN)
    finally:
        opened.close()


def _all_blocks(source: Sources) -> bool:
    """Return whether the sources to convert are files of blocks."""
    if not isinstance(source, list | tuple):
        return has_blocks(source)
    kinds = {has_blocks(item) for item in source if not isinstance(item, str)}
    if len(kinds) > 1:
        raise OptionError("some of the files are blocks and some are not: convert them one by one")
    return True in kinds
