"""``AutoMLRegressor``: a regression that tunes itself while it learns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, overload

import msgspec
import numpy as np

from onlineauto.api.base import HASH_BITS, LIVE_CONFIGS
from onlineauto.api.lags import Lags
from onlineauto.api.numbers import Moments, TypicalSize, as_float
from onlineauto.api.single_lines import SingleLines
from onlineauto.engine.records.loop import Outlier
from onlineauto.errors import InputError, OptionError, short_repr
from onlineauto.estimators.typical_size_kernels import BEYOND, RUINED
from onlineauto.features.block import UNLABELLED
from onlineauto.features.options import MOST_LAGS
from onlineauto.formats.mappings.event_kernels import LARGE
from onlineauto.formats.mappings.identities import named
from onlineauto.formats.mappings.values import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from onlineauto.api.single_lines import Features
    from onlineauto.api.tables import Rows
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.workspace.option_types import LearnerOptions

_POWERS = {"squared": 2, "classic": 2, "expectile": 2, "quantile": 1}
"""The losses for which labels are standardised, and the power of the unit with which each loss grows."""
_NO_RANGE = math.inf, -math.inf
_LABEL_OPTIONS = ("link", "min_prediction", "max_prediction")
"""Options whose values have the unit of the labels."""


class AutoMLRegressor(SingleLines):
    """A linear regression by numbers, categories and their interactions, which tunes itself.

    It searches for the features to cross and the learning rate, with several live configs at the same time.
    Their mean, weighted by how well each has predicted, is the prediction until the ensemble is proved better
    (squared loss only). Numbers may have any scale, see `NumberEncoder`. With losses that have a unit, labels
    are standardised by the labels so far, since the step size does not depend on their scale. Threads may
    share a regressor.

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
        Number of configs that learn at the same time, including the champion. None turns the search off.
    loss : str
        The loss to minimise: ``"squared"``, ``"quantile"`` (``quantile_tau=0.9``),
        ``"expectile"``, ``"poisson"``, ``"logistic"``, ``"hinge"`` and others.
    link : str, optional
        The function from a score to a prediction: ``"logistic"``, ``"glf1"``, ``"poisson"``.
    seed : int
        Seed of all random numbers.
    begin_with : sequence of str
        Initial interactions of the search, by the names of features: ``"hour*weather"``. By default there
        are none. Without a search, these are the interactions.
    hash_bits : int
        The weights are a table of 2^hash_bits rows.
    lags : int
        Number of last labels that are features of each event, with their differences, 0 to 20: for a series
        of events in order of time. An event that is learnt has the labels that were known at the latest
        prediction of the same features; the last 1,024 predicted events are remembered for this. All rows
        that are predicted together have the same last labels, so to evaluate a series, predict and learn
        its events in turn. The names ``lag 1`` and ``change 1`` and so on are reserved.
    **options
        Further options of a model, named as on the command line.

    Raises
    ------
    OptionError
        An option is unknown, out of range, or contradicts another.
    """

    def __init__(  # type: ignore[misc]  # loss and link are options, too
        self,
        *,
        live_configs: int | None = LIVE_CONFIGS,
        loss: str = "squared",
        link: str | None = None,
        seed: int = 0,
        begin_with: Sequence[str] = (),
        hash_bits: int = HASH_BITS,
        lags: int = 0,
        **options: Unpack[LearnerOptions],
    ) -> None:
        flags: dict[str, Any] = {"loss_function": loss, "link": link, **options}
        if loss not in (flags["loss_function"], "squared"):
            raise OptionError("loss and loss_function are the same option: leave loss_function out")
        loss = flags["loss_function"]
        super().__init__(
            flags, live_configs=live_configs, seed=seed, begin_with=begin_with, hash_bits=hash_bits
        )
        if isinstance(lags, bool) or lags not in range(MOST_LAGS + 1):
            raise OptionError(f"lags is a whole number from 0 to {MOST_LAGS}, not {lags!r}")
        self._lags = Lags(int(lags))
        labelled = link is None and not any(name in options for name in _LABEL_OPTIONS)
        self._power = _POWERS.get(loss, 0) if labelled else 0
        self._labels, self._range = Moments(), _NO_RANGE
        self._size, self._weight = TypicalSize(), TypicalSize()
        self._accept_labels()

    @overload
    def predict(self, features: Features) -> float: ...

    @overload
    def predict(self, features: Rows) -> NDArray[np.float64]: ...

    def predict(self, features: Features | Rows) -> Any:
        """Return the expected label of one event, or the labels of many.

        Parameters
        ----------
        features : mapping or Series, or sequence of mappings, frame or matrix
            The features of an event, as for `learn`; or those of each event.

        Returns
        -------
        float or float64[n_events]

        Raises
        ------
        InputError
            The features are not valid for `learn`.

        Examples
        --------
        >>> model = AutoMLRegressor().fit([({"rooms": 1}, 300.0), ({"rooms": 1}, 300.0)])
        >>> model.predict({"rooms": 1}), model.predict([{"rooms": 1}, {"rooms": 1}])
        (300.0, array([300., 300.]))
        """
        if (one := self._columns.event(features)) is not None:
            with self._lock:
                event = {"context": self._encode(self._complete(one))}
                return self._natural(float(self._workspace.predict(event)[0]))
        return self._predict_rows(self._columns.rows(features), awaits=True)

    def _predict_rows(self, rows: Sequence[Any], *, awaits: bool) -> NDArray[np.float64]:
        """Return the labels of many events; `awaits` says that their labels may be learnt later."""
        if not rows:
            return np.empty(0)
        with self._lock:
            (mean, unit), (low, high) = self._scale(), self._limits()
            rows = [self._with_lags(row, awaits=awaits) for row in rows]
            outcomes = self._workspace.predict_block(self._block_of(rows))
            return np.clip(mean + unit * outcomes.prediction.astype(float), low, high)

    def _respond(self, rows: Sequence[Any]) -> NDArray[np.float64]:
        return self._predict_rows(rows, awaits=False)[:, np.newaxis]

    @property
    def _together(self) -> int:
        return 1 if self._lags.n else super()._together

    def _complete(self, features: Features, *, learns: bool = False) -> Features:
        return self._with_lags(features, learns=learns, awaits=not learns)

    def _with_lags(self, features: Features, *, learns: bool = False, awaits: bool) -> Features:
        """Return features with lags, if there are any; `Lags.complete` compares features by their names."""
        if not self._lags.n:
            return features
        features = named(features, self._workspace.identities)
        return self._lags.complete(features, learns=learns, awaits=awaits)

    def _learn_lines(self, block: Block, problems: Diagnostics) -> None:
        if self._lags.n:
            raise InputError("lags needs rows of features by name: fit mappings, a frame or arrays, no text")
        super()._learn_lines(block, problems)

    @property
    def _standardises(self) -> bool:
        return self._power > 0

    def predict_each(self, rows: Any) -> NDArray[np.float64]:
        """Return the labels of many events: `predict` under its earlier name."""
        many: NDArray[np.float64] = self.predict(rows)
        return many

    @property
    def _has_squared_loss(self) -> bool:
        """True if the loss is the squared error, which needs no block."""
        return self._power == 2 and self._workspace.configuration.get("loss_function") != "expectile"

    def _scale(self) -> tuple[float, float]:
        """Return the label that the workspace sees as 0, and the unit of labels."""
        if not self._power:
            return 0.0, 1.0
        return self._labels.mean, self._labels.deviation or 1.0

    def _accept_labels(self) -> None:
        """Widen the limits of labels: standardised labels are large while their unit is very small."""
        if self._power:
            self._workspace.learner.accept_labels()

    def _limits(self) -> tuple[float, float]:
        """Return the lowest and the highest learnt label, to which predictions are clipped."""
        return self._range if self._power and self._labels.weight else (-math.inf, math.inf)

    def _natural(self, prediction: float) -> float:
        """Return a prediction of the workspace in the unit of labels, clipped to the learnt labels."""
        (mean, unit), (low, high) = self._scale(), self._limits()
        return min(max(mean + unit * prediction, low), high)

    def _check_label(self, label: Any, before: Collection[Any] = ()) -> float:  # noqa: ARG002
        builtin = plain(label)
        if not isinstance(builtin, float | int) or not math.isfinite(number := as_float(builtin)):
            raise InputError(f"the label {short_repr(label)} is not a finite number")
        if abs(number) >= LARGE:
            raise InputError(f"the label {short_repr(label)} is too large for a float32")
        return number

    def _outlier_kind(self, label: float, weight: float) -> int:
        """Return whether a label or weight is far beyond all before, as an outlier; 0 if neither is."""
        largest = max(map(abs, self._range)) if self._labels.weight else 0.0
        verdict = self._size.judge(label, before=largest)
        if verdict == RUINED:
            self._labels, self._range = Moments(), _NO_RANGE
            self._lags.forget()
            return Outlier.BEGINS_AGAIN
        if verdict == BEYOND:
            return Outlier.FAR_COST
        return Outlier.FAR_WEIGHT if self._weight.judge(weight, before=1.0) == BEYOND else Outlier.NONE

    def _begin_again(self) -> None:
        """Forget everything that was learnt from outlying labels."""
        self._workspace.learner.begin_again()
        self._workspace.searching.begin_again()
        self._tally.begin_again()

    def _standard(self, label: float) -> float:
        """Return a label, standardised for the workspace."""
        mean, unit = self._scale()
        # The first label has no unit yet, so it counts as the mean.
        return (label - mean) / unit if self._labels.weight or not self._power else 0.0

    def _count_label(self, label: float, weight: float) -> None:
        """Add a learnt label to the statistics."""
        self._labels.add(label, weight)
        self._lags.add(label)
        self._range = min(self._range[0], label), max(self._range[1], label)

    def _learn_one(self, event: dict[str, Any], label: float) -> int:
        if not self._has_squared_loss:
            return super()._learn_one(event, label)
        outlier_kind = self._outlier_kind(label, event["weight"])
        if outlier_kind == Outlier.BEGINS_AGAIN:
            self._begin_again()
        elif outlier_kind:
            return outlier_kind
        before, standard = self._outliers(), self._standard(label)
        raw = float(self._workspace.learn(event | {"label": standard})[0])
        outlier = self._outlier(before) or outlier_kind
        if Outlier.NONE < outlier < Outlier.BEGINS_AGAIN:
            return outlier
        error = label - self._natural(raw) if self._labels.weight else standard - raw
        self._count_label(label, event["weight"])
        self._tally.add(event["weight"], loss=event["weight"] * error * error)
        return outlier

    def _learn_block(self, block: Block, labels: Sequence[float]) -> NDArray[np.uint8]:
        lines, places = block.lines, block.event_start[:-1]
        begin, outliers = 0, np.zeros(len(block), np.uint8)
        scales: list[tuple[float, float, float, float]] = []
        for at, (label, weight) in enumerate(zip(labels, lines["weight"][places].tolist(), strict=True)):
            before = self._limits()
            outliers[at] = outlier = self._outlier_kind(label, weight)
            if outlier == Outlier.BEGINS_AGAIN:
                outliers[begin:at] = self._learn_standard(block, begin, outliers[begin:at], labels, scales)
                begin, scales, before = at, [], self._limits()
                self._begin_again()
            scales.append((*self._scale(), *before))
            is_far = 0 < outlier < Outlier.BEGINS_AGAIN
            lines["label"][places[at]] = UNLABELLED if is_far else self._standard(label)
            if is_far and outlier == Outlier.FAR_WEIGHT:
                lines["weight"][places[at]] = 0
            if not is_far:
                self._count_label(label, weight)
        outliers[begin:] = self._learn_standard(block, begin, outliers[begin:], labels, scales)
        return outliers

    def _learn_standard(
        self,
        block: Block,
        begin: int,
        outliers: NDArray[np.uint8],
        labels: Sequence[float],
        scales: list[tuple[float, float, float, float]],
    ) -> NDArray[np.uint8]:
        """Learn a block from event `begin` on, with labels standardised by `scales`; return the outliers."""
        part = block.tail(begin).head(len(scales))
        if not scales:
            return outliers
        places, (means, units, low, high) = part.event_start[:-1], np.array(scales).T
        part.lines["initial"][places] /= units
        outcomes = self._workspace.learn_block(part)
        outlier = np.where(outliers, outliers, outcomes.outlier)
        with np.errstate(over="ignore"):
            if self._has_squared_loss:
                off = (part.label[places] - outcomes.prediction.astype(float)) * units
                clipped = np.clip(means + units * outcomes.prediction, low, high)
                natural = np.array(labels[begin : begin + len(scales)], float) - clipped
                off = np.where(np.isfinite(low), natural, off)
                outcomes.rows["loss"] = np.where(outcomes.labelled, outcomes.weight * off * off, 0.0)
            else:
                outcomes.rows["loss"] *= units**self._power
        outcomes.rows["outlier"] = outlier
        self._tally.add_block(outcomes)
        return outlier

    def _extra_state(self) -> dict[str, Any]:
        return (
            super()._extra_state()
            | {
                "power": self._power,
                "labels": msgspec.to_builtins(self._labels),
                "range": list(self._range) if self._labels.weight else [],
                "sizes": msgspec.to_builtins([self._size, self._weight]),
            }
            | ({"lags": msgspec.to_builtins(self._lags)} if self._lags.n else {})
        )

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._power = msgspec.convert(state["power"], int)
        self._labels = msgspec.convert(state["labels"], Moments)
        self._lags = msgspec.convert(state.get("lags", {}), Lags)
        self._accept_labels()
        self._size, self._weight = msgspec.convert(state["sizes"], tuple[TypicalSize, TypicalSize])
        self._range = msgspec.convert(state["range"] or _NO_RANGE, tuple[float, float])
