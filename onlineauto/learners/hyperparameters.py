"""Hyperparameters: the options that the search may change, and the record of a live config's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.learners.gradient_kernels import SETTINGS
from onlineauto.learners.rule import make_rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.features.records import Records
    from onlineauto.options import Configuration, Tunable


class Hyperparameters:
    """All options of a configuration that can be searched (declared with ``tunable=``)."""

    def __init__(self, configuration: Configuration) -> None:
        options = configuration.tunable()
        self.tunable: dict[str, Tunable] = {name: tunable for name, (tunable, _) in options.items()}
        self.defaults = {name: value for name, (_, value) in options.items()}
        self.defaults["learning_rate"] = float(make_rule(configuration).learning_rate)

    def write(self, record: Records, settings: Mapping[str, float | str]) -> None:
        """Write the values of `settings` into a record of `SETTINGS`, and the defaults of all others."""
        for name, tunable in self.tunable.items():
            tunable.write(record, settings.get(name, self.defaults[name]), self.defaults[name])
        record["plain"] = record["square_root"] and record["l1"] == 0.0 and record["l2"] == 0.0

    def records(self, n: int) -> Records:
        """Return `n` records of the defaults: SETTINGS[n]."""
        records = np.zeros(n, SETTINGS)
        for i in range(n):
            self.write(records[i], {})
        return records
