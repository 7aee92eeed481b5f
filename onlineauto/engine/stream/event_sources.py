"""Paths of Parquet as sources of events with positions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError
from onlineauto.formats.lines.event_source import EventSource
from onlineauto.formats.options import InputOptions

if TYPE_CHECKING:
    from onlineauto.options import Configuration


def with_datasets(source: Any, configuration: Configuration) -> Any:
    """Return a source; a path of Parquet, or a list of such paths, is wrapped in a `DatasetSource`."""
    if isinstance(source, EventSource):
        return source
    from onlineauto.formats.datasets.files import is_dataset

    if isinstance(source, list | tuple):
        paths = [each for each in source if isinstance(each, os.PathLike)]  # texts are events, not paths
        are_datasets = [is_dataset(each) for each in paths] if len(paths) == len(source) else []
    else:
        are_datasets = [is_dataset(source)]
    if not any(are_datasets):
        return source
    if not all(are_datasets):
        raise InputError("some of the files are Parquet and some are not: read them in two runs")
    from onlineauto.formats.datasets.dataset_source import DatasetSource

    return DatasetSource(source, configuration[InputOptions].columns)
