"""Estimators for scikit-learn: `AutoMLRegressor` and `AutoMLClassifier`.

They need scikit-learn, ``pip install '.[sklearn]'``. Columns may be numbers or texts. `fit` learns
the rows up to `passes` times, in orders drawn by the seed. With several passes, a tenth of the rows is held
out and learnt at the end; a pass that does not clearly reduce their loss is undone, and is the last one.
`partial_fit` learns more rows, once, in their order.
A weight scales the step of a row, which is not the same as learning the row several times.

>>> from onlineauto.sklearn import AutoMLClassifier
>>> from sklearn.datasets import load_iris
>>> from sklearn.model_selection import cross_val_score
>>> bool(cross_val_score(AutoMLClassifier(passes=3), *load_iris(return_X_y=True)).mean() > 0.9)
True
"""

from __future__ import annotations

import pickle
from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

import onlineauto
from onlineauto.errors import InputError, short_repr
from onlineauto.formats.mappings.values import is_missing, is_sequence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self, TypeAlias

    from numpy.typing import NDArray

    _Options: TypeAlias = Mapping[str, Any] | None

__all__ = ["AutoMLClassifier", "AutoMLRegressor"]


class _Rows(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Rows of arrays and frames as events."""

    model_: onlineauto.AutoMLRegressor | onlineauto.AutoMLClassifier

    def _learn(self, X: NDArray[Any], labels: list[Any], sample_weight: Any, passes: int | None) -> Self:
        if passes is not None and passes < 1:
            raise ValueError(f"passes is {passes}: it must be at least 1")
        weights = [1.0] * len(labels)
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X).tolist()
        pairs, draw = list(zip(self._rows(X), labels, weights, strict=True)), Random(self.seed)
        if passes is not None:
            pairs = draw.sample(pairs, len(pairs))
        n_learnt = len(pairs) if passes in (None, 1) else len(pairs) - len(pairs) // 10
        learnt, held_out = pairs[:n_learnt], pairs[n_learnt:]
        self.model_.fit(learnt, progress=False)
        if not held_out:
            return self
        losses = self._losses(held_out)
        for _ in range(1, passes or 1):
            before = deepcopy(self.model_)
            self.model_.fit(draw.sample(learnt, n_learnt), progress=False)
            gains = losses - (losses := self._losses(held_out))
            if gains.mean() <= gains.std() / np.sqrt(len(gains)):
                self.model_ = before
                break
        self.model_.fit(held_out, progress=False)
        return self

    def _losses(self, pairs: Sequence[tuple[dict[str, Any], Any, float]]) -> NDArray[np.float64]:
        """Return the weighted loss of each row."""
        rows, labels, weights = zip(*pairs, strict=True)
        losses: NDArray[np.float64] = np.asarray(weights) * self._loss(list(rows), np.asarray(labels))
        return losses

    def _events(self, X: Any) -> list[dict[str, Any]]:
        check_is_fitted(self)
        return self._rows(self._validate(X, reset=False))

    def _rows(self, X: NDArray[Any]) -> list[dict[str, Any]]:
        if X.dtype.kind in "mM":
            raise InputError(
                "the rows have dates or times, which cannot be features: pass the relevant parts as numbers, "
                "such as the weekday and the hour"
            )
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
        return [dict(zip(names, row, strict=True)) for row in X.tolist()]

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        for row, label in enumerate(y) if is_sequence(y) else ():
            if is_missing(label) and not isinstance(label, float):  # scikit-learn itself rejects NaN
                raise InputError(
                    f"the label of row {row} is missing: {short_repr(label)}; drop rows without a label"
                )
        return validate_data(self, X, y, reset=reset, dtype=None, ensure_all_finite="allow-nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, with the model as bytes: joblib maps arrays read-only, and kernels write."""
        state: dict[str, Any] = super().__getstate__()
        return state | {"model_": pickle.dumps(self.model_)} if "model_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        model = {name: pickle.loads(state[name]) for name in ("model_",) if name in state}
        super().__setstate__(state | model)


class AutoMLRegressor(RegressorMixin, _Rows):  # type: ignore[misc]
    """`onlineauto.AutoMLRegressor` with scikit-learn's interface; `model_` is the regressor."""

    model_: onlineauto.AutoMLRegressor

    def __init__(
        self,
        *,
        live_configs: int | None = 4,
        loss: str = "squared",
        link: str | None = None,
        passes: int = 1,
        seed: int = 0,
        options: _Options = None,
    ) -> None:
        self.live_configs, self.loss, self.link = live_configs, loss, link
        self.passes, self.seed, self.options = passes, seed, options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn rows from scratch."""
        return self._fit(X, y, sample_weight, reset=True, passes=self.passes)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows."""
        return self._fit(X, y, sample_weight, reset=not hasattr(self, "model_"), passes=None)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, passes: int | None) -> Self:
        X, y = self._validate(X, y, reset=reset)
        if reset:
            arguments: dict[str, Any] = {
                "live_configs": self.live_configs,
                "loss": self.loss,
                "link": self.link,
            }
            self.model_ = onlineauto.AutoMLRegressor(**arguments, seed=self.seed, **(self.options or {}))
        return self._learn(X, y.tolist(), sample_weight, passes)

    def _loss(self, rows: list[dict[str, Any]], labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the squared error of each row."""
        errors: NDArray[np.float64] = np.square(self.model_.predict(rows) - labels)
        return errors

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the expected label of each row."""
        rows = self._events(X)
        return self.model_.predict(rows)


class AutoMLClassifier(ClassifierMixin, _Rows):  # type: ignore[misc]
    """`onlineauto.AutoMLClassifier` with scikit-learn's interface; `model_` is the classifier."""

    model_: onlineauto.AutoMLClassifier

    def __init__(
        self, *, live_configs: int | None = 4, passes: int = 1, seed: int = 0, options: _Options = None
    ) -> None:
        self.live_configs, self.passes, self.seed, self.options = live_configs, passes, seed, options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn rows from scratch."""
        return self._fit(X, y, sample_weight, reset=True, classes=None, passes=self.passes)

    def partial_fit(
        self, X: Any, y: Any, classes: Sequence[Any] | None = None, sample_weight: Any = None
    ) -> Self:
        """Learn more rows; the first call has to pass all classes that may appear."""
        reset = not hasattr(self, "model_")
        if reset and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return self._fit(X, y, sample_weight, reset=reset, classes=classes, passes=None)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any, passes: int | None
    ) -> Self:
        X, y = self._validate(X, y, reset=reset)
        check_classification_targets(y)
        if reset:
            self.classes_ = np.unique(y if classes is None else classes)
            arguments = {"live_configs": self.live_configs, "seed": self.seed} | dict(self.options or {})
            self.model_ = onlineauto.AutoMLClassifier(**arguments)
        codes = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        if (self.classes_[codes] != y).any():
            raise ValueError(f"y has labels that are not in the classes {self.classes_.tolist()}")
        return self._learn(X, codes.tolist(), sample_weight, passes)

    def _loss(self, rows: list[dict[str, Any]], labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the log loss of each row."""
        of_label = self._probabilities(rows)[np.arange(len(rows)), labels]
        losses: NDArray[np.float64] = -np.log(of_label.clip(min=1e-9))
        return losses

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class for each row, in the order of `classes_`."""
        return self._probabilities(self._events(X))

    def _probabilities(self, rows: list[dict[str, Any]]) -> NDArray[np.float64]:
        probabilities = np.zeros((len(rows), len(self.classes_)))
        probabilities[:, self.model_.labels] = self.model_.predict_proba(rows)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class for each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])
