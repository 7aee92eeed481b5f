"""The verb ``columns``: print the meaning of a dataset's columns, as a file for ``--columns``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.stream.source import event_rules, kind_of
from onlineauto.errors import OptionError
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.formats.datasets.inference import evidence_of
from onlineauto.formats.options import InputOptions

if TYPE_CHECKING:
    from onlineauto.options import Configuration


def run(configuration: Configuration) -> int:
    """Print the columns of a dataset as TOML, and return 0.

    With the flag of a bandit, rows are decisions; without one, the columns determine it.
    """
    inputs = configuration[InputOptions]
    if not inputs.data:
        raise OptionError("columns takes files of Parquet: onlineauto columns 'logs/*.parquet'")
    source = DatasetSource(inputs.data, inputs.columns)
    kind = kind_of(configuration)
    columns = source.columns(decides=None if kind == "simple" else True)
    source.open(
        event_rules(configuration)._replace(kind="cb_adf" if columns.decides else "simple", uniform=True)
    )
    first = source.first_rows()
    evidence = {} if first is None else evidence_of(columns, first)
    print(columns.toml(name=source.name, evidence=evidence), end="")
    return 0
