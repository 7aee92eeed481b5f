"""``use_cache``: the cache of ``-c``, a file of blocks next to the data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.engine.options.registry import ModelOptions, OutputOptions, RunOptions
from onlineauto.engine.stream.source import read_blocks, rules_of
from onlineauto.errors import InputError, install_hint
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.blocks.reader import BlockReader
from onlineauto.formats.datasets.files import is_dataset
from onlineauto.formats.options import InputOptions
from onlineauto.formats.sources.source import ByteSource
from onlineauto.workspace.conversion import has_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.options import Configuration
    from onlineauto.workspace.run import Run

NO_PACKAGE: Final = f"it needs a package: {install_hint('blocks')}"
"""The reason for a missing cache that is printed even with ``--quiet``."""
_NONE = "using no cache"


def cache_path(configuration: Configuration) -> str | None:
    """Return the name of the cache that the options request, or None."""
    options, data = configuration[RunOptions], configuration[InputOptions].data
    if not options.cache and options.cache_file is None:
        return None
    return options.cache_file or f"{data[0] if data else ''}.cache"


def use_cache(run: Run) -> tuple[str, str]:
    """Let a run read from a cache, or write one while it reads, if the options request a cache.

    The cache appears once the data are read to their end.
    """
    configuration = run.workspace.configuration
    options, data = configuration[RunOptions], configuration[InputOptions].data
    if (named := cache_path(configuration)) is None:
        return _NONE, ""
    path = Path(named)
    if problem := _problem(configuration, path):
        return _NONE, f"no cache, so each pass reads the text: {problem}"
    if not options.kill_cache and _is_current(path, data, configuration):
        run.read = lambda _, configuration, problems: _read(path, configuration, problems)
        return f"using cache_file = {path}", ""
    run.read = _Writing(path)
    return f"creating cache_file = {path}", ""


def _problem(configuration: Configuration, path: Path) -> str:
    """Return the reason why a cache is not possible, or ""."""
    options, inputs = configuration[RunOptions], configuration[InputOptions]
    if any(is_dataset(each) for each in inputs.data):
        return "the input is Parquet, which is read about as fast"
    if not inputs.data or not all(Path(each).is_file() for each in inputs.data):
        return "the input is not a file"
    if len(inputs.data) > 1 and options.cache_file is None:
        return "there are several files; --cache_file names one cache for all"
    if any(has_blocks(each) for each in inputs.data):
        return "the input is blocks already"
    if inputs.examples >= 0:
        return "--examples does not read all of the data"
    if configuration[OutputOptions].audit or configuration[ModelOptions].invert_hash is not None:
        return "it has no names of features, for which --audit and --invert_hash ask"
    try:
        import xxhash  # noqa: F401
    except ImportError:
        return NO_PACKAGE
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        return f"{path} cannot be written"
    if path.exists() and not options.kill_cache and not has_blocks(path):
        return f"{path} exists and is not a cache of onlineauto; -k replaces it"
    return ""


def _is_current(path: Path, data: tuple[str, ...], configuration: Configuration) -> bool:
    """Return whether a cache is newer than the data, and was written with the same reading options."""
    if not path.exists() or path.stat().st_mtime_ns < max(Path(each).stat().st_mtime_ns for each in data):
        return False
    source = ByteSource(path)
    try:
        reader, names = BlockReader(source), configuration[FeatureOptions].names
        reader.check_rules(rules_of(configuration))
        if names != reader.rules.get("names", "any") or names == "columns":  # identities may be new
            return False
    except InputError:
        return False
    finally:
        source.close()
    return True


def _read(path: Path, configuration: Configuration, problems: Diagnostics) -> Iterator[Block]:
    """Yield the blocks of a cache; if it is damaged, the error names the option that replaces it."""
    try:
        yield from read_blocks(path, configuration, problems)
    except InputError as error:
        raise InputError(f"{error}; -k writes a new cache") from None


class _Writing:
    """Reads the data and writes the cache in the first pass; reads the cache in later ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = False

    def __call__(
        self, source: Sources, configuration: Configuration, problems: Diagnostics
    ) -> Iterator[Block]:
        if self._written:
            yield from read_blocks(self._path, configuration, problems)
            return
        from onlineauto.formats.blocks.writer import block_writer

        names = configuration[FeatureOptions].names
        rules = rules_of(configuration) | ({} if names == "any" else {"names": names})
        with block_writer(self._path, rules=rules) as writer:
            for block in read_blocks(source, configuration, problems):
                writer.write(block)
                yield block
        self._written = True
