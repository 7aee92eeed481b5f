"""``LabelRange``: count labels that are invalid under the logistic loss, to warn once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.learners.options import LossOptions

if TYPE_CHECKING:
    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.options import Configuration


class LabelRange:
    """Counts labels outside the range of the logistic loss, and detects labels of 0 and 1."""

    def __init__(self, configuration: Configuration) -> None:
        options = configuration[LossOptions]
        self._counts = options.loss_function == "logistic"
        self._low, self._high = options.logistic_min, options.logistic_max
        self._outside = 0
        self._labels: set[float] = set()

    def update(self, outcomes: Outcomes) -> None:
        """Count the labels of a block."""
        if not self._counts:
            return
        labels = outcomes.label[outcomes.labelled]
        self._outside += int(((labels < self._low) | (labels > self._high)).sum())
        if len(self._labels) < 3:
            self._labels |= {float(label) for label in np.unique(labels)[:3]}

    @property
    def warning(self) -> str | None:
        """A warning about the labels of all blocks, None if there is nothing to report."""
        if self._outside:
            count = f"{self._outside} label{'s' * (self._outside != 1)}"
            return (
                f"{count} outside [{self._low:g}, {self._high:g}], where the logistic loss means nothing; "
                "--logistic_min and --logistic_max set another range"
            )
        if self._labels == {0.0, 1.0} and self._low < 0:
            return (
                "labels are 0 and 1, and --loss_function logistic takes -1 for no: a 0 counts as undecided; "
                "--logistic_min 0 makes it no"
            )
        return None
