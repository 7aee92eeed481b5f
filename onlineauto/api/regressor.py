"""``AutoMLRegressor``: a regression that tunes itself while it learns."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from onlineauto.api.base import HASH_BITS
from onlineauto.api.numbers import Moments, as_float
from onlineauto.api.single_lines import SingleLines
from onlineauto.api.tables import rows_of
from onlineauto.engine.stream.odd_labels import is_far_out
from onlineauto.errors import InputError
from onlineauto.formats.mappings.values import plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from onlineauto.api.single_lines import Features
    from onlineauto.features.block import Block
    from onlineauto.workspace.option_types import Options

__all__ = ["AutoMLRegressor"]

_POWERS = {"squared": 2, "classic": 2, "expectile": 2, "quantile": 1}
"""The losses for which labels are standardised: by which power of the unit each of them grows."""
_OF_LABELS = ("link", "min_prediction", "max_prediction")
"""Options that mean the labels as they are."""


class AutoMLRegressor(SingleLines):
    """A linear regression of numbers, categories and what they do together, which tunes itself.

    It searches for the features to cross and the learning rate, with several live configs at the same time.
    Their mean, weighted by how well each has predicted, is the prediction until the ensemble is proved better
    (squared loss only). Numbers of any scale are welcome: `Numbers` says
    what becomes of them. With losses that have a unit, labels are standardised by what was seen of them so
    far, since the size of a step does not depend on their scale. Threads may share it.

    Examples
    --------
    >>> from onlineauto import AutoMLRegressor
    >>> model = AutoMLRegressor()
    >>> for hour in range(1000):
    ...     rooms = 1 + hour % 4
    ...     model.learn({"rooms": rooms, "town": "Ulm" if hour % 3 else "Bonn"}, 300.0 * rooms)
    >>> round(model.predict({"rooms": 3, "town": "Bonn"}))
    900

    Parameters
    ----------
    live_configs : int or None
        Number of configs that learn at once, the champion one of them. None does not search.
    loss : str
        What is made small, ``--loss_function``: ``"squared"``, ``"quantile"`` (``quantile_tau=0.9``),
        ``"expectile"``, ``"poisson"``, ``"logistic"``, ``"hinge"`` and others.
    link : str, optional
        Turns a score into a prediction, ``--link``: ``"logistic"``, ``"glf1"``, ``"poisson"``.
    seed : int
        Seed of everything random.
    begin_with : sequence of str
        Interactions with which the search begins, by the names of features: ``"hour*weather"``. By default it
        begins with none. Without a search, these are the interactions.
    hash_bits : int
        The weights are a table of 2^hash_bits rows.
    **options
        Options as on the command line.

    Raises
    ------
    OptionError
        An option is unknown, out of range, or contradicts another.
    """

    def __init__(  # type: ignore[misc]  # link is an option, with a default of its own
        self,
        *,
        live_configs: int | None = 4,
        loss: str = "squared",
        link: str | None = None,
        seed: int = 0,
        begin_with: Sequence[str] = (),
        hash_bits: int = HASH_BITS,
        **options: Unpack[Options],
    ) -> None:
        given: dict[str, Any] = {"automl": live_configs, "loss_function": loss, "link": link}
        super().__init__(given | options, seed=seed, begin_with=begin_with, hash_bits=hash_bits)
        labelled = link is None and not any(name in options for name in _OF_LABELS)
        self._power = _POWERS.get(loss, 0) if labelled else 0
        self._labels = Moments()

    def predict(self, features: Features) -> float:
        """Return the label that is expected for some features, as `learn` takes them.

        Raises
        ------
        InputError
            They are not as there.
        """
        with self._lock:
            mean, unit = self._scale()
            return mean + unit * float(self._workspace.predict({"context": self._encoded(features)})[0])

    def predict_each(self, rows: Any) -> NDArray[np.float64]:
        """Return the label that is expected for each of several events: float64[n_events].

        Parameters
        ----------
        rows : sequence of mappings, frame or matrix
            The features of each event, without the label.

        Raises
        ------
        InputError
            The features are not as `learn` takes them.
        """
        rows = list(rows_of(rows))
        if not rows:
            return np.empty(0)
        with self._lock:
            mean, unit = self._scale()
            return mean + unit * self._workspace.predict_block(self._asked(rows)).prediction.astype(float)

    @property
    def _squared(self) -> bool:
        """True if the loss is the square of the error, which needs no block."""
        return self._power == 2 and self._workspace.configuration.get("loss_function") != "expectile"

    def _scale(self) -> tuple[float, float]:
        """Return the label that is 0 for the workspace, and its unit."""
        if not self._power:
            return 0.0, 1.0
        return self._labels.mean, self._labels.deviation or 1.0

    def _checked(self, label: Any) -> float:
        own = plain(label)
        if not isinstance(own, float | int) or not math.isfinite(number := as_float(own)):
            raise InputError(f"the label {label!r} is not a finite number")
        return number

    def _standard(self, label: float) -> tuple[float, float]:
        """Return a label for the workspace, and its unit."""
        mean, unit = self._scale()
        if is_far_out(label - mean, largest=unit, n=int(self._labels.weight)):
            warnings.warn(
                f"the label {label:g} is a million times as far off as labels before; used as it is",
                UserWarning,
                stacklevel=4,
            )
        # The first label says nothing of the unit, so it is the mean, whatever it is.
        return ((label - mean) / unit if self._labels.weight or not self._power else 0.0), unit

    def _learn_one(self, event: dict[str, Any], label: float) -> None:
        if not self._squared:
            super()._learn_one(event, label)
            return
        standard, unit = self._standard(label)
        error = (standard - float(self._workspace.learn(event | {"label": standard})[0])) * unit
        self._labels.add(label, event["weight"])
        self._tally.add(event["weight"], loss=event["weight"] * error * error)

    def _learn_block(self, block: Block, labels: Sequence[float]) -> None:
        lines, places = block.lines, block.event_start[:-1]
        units, standard = [], []
        for label, weight in zip(labels, lines["weight"][places].tolist(), strict=True):
            of_it, unit = self._standard(label)
            standard.append(of_it)
            units.append(unit)
            self._labels.add(label, weight)
        lines["label"][places] = standard
        lines["initial"][places] /= units
        outcomes = self._workspace.learn_block(block)
        with np.errstate(over="ignore"):  # a label that is far out may have an infinite loss
            outcomes.rows["loss"] *= np.array(units) ** self._power
        self._tally.add_block(outcomes)

    def _kept(self) -> dict[str, Any]:
        return super()._kept() | {"power": self._power, "labels": msgspec.to_builtins(self._labels)}

    def _restore(self, kept: dict[str, Any]) -> None:
        super()._restore(kept)
        self._power = msgspec.convert(kept["power"], int)
        self._labels = msgspec.convert(kept["labels"], Moments)
