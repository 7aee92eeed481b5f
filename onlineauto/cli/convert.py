"""The verb ``convert``: writes text as a file of blocks, and a file of blocks as text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.engine.conversion import convert, has_blocks
from onlineauto.engine.options import OutputOptions
from onlineauto.errors import OptionError
from onlineauto.formats.diagnostics import Diagnostics
from onlineauto.formats.options import InputOptions

if TYPE_CHECKING:
    from onlineauto.engine.source import Sources
    from onlineauto.options import Configuration

__all__ = ["run"]


def run(configuration: Configuration) -> int:
    """Convert all files but the last into that.

    Returns
    -------
    int
        0

    Raises
    ------
    OptionError
        No output is named, or one that is there and would be lost.
    InputError
        The input cannot be read or used.
    OSError
        The output cannot be written.
    """
    *inputs, output = configuration[InputOptions].data or ("",)
    if not inputs or output == "-":
        raise OptionError(
            "convert takes the files to read and, last, the file to write: onlineauto convert events.txt "
            "events.blocks"
        )
    to_text = has_blocks(inputs[0])
    if Path(output).exists() and (to_text or not has_blocks(output)):
        raise OptionError(f"{output} is there and would be lost: remove it, or name another file")
    quiet = configuration[OutputOptions].quiet
    diagnostics = Diagnostics(listener=None if quiet else _say)
    source: Sources = inputs[0] if len(inputs) == 1 else [_source(path) for path in inputs]
    n = convert(source, output, diagnostics=diagnostics, configuration=configuration)
    if not quiet:
        if diagnostics.total:
            _say(f"onlineauto: warning: {diagnostics.total} problems in the input")
        kind = "text" if to_text else "blocks"
        _say(f"{n} events, as {kind} of {Path(output).stat().st_size} bytes, are in {output}")
    return 0


def _source(path: str) -> Path:
    if path == "-":
        raise OptionError("standard input is converted alone, without other files")
    return Path(path)


def _say(line: object) -> None:
    print(line, file=sys.stderr)
