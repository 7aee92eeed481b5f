"""``Lags``: the last labels as numbers of an event, for series whose next label depends on them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from onlineauto.errors import InputError
from onlineauto.features.lags import lag_names
from onlineauto.features.options import MOST_LAGS
from onlineauto.formats.mappings.values import plain_tree

_WAITING = 1024
"""Maximum number of predicted events whose labels are awaited."""


class Lags(msgspec.Struct):
    """The last `n` labels, and the labels with which events were predicted whose own label is awaited.

    >>> lags = Lags(2)
    >>> for label in (3.0, 5.0, 4.0):
    ...     lags.add(label)
    >>> lags.complete({"hour": 7})
    {'hour': 7, 'lag 1': 4.0, 'lag 2': 5.0, 'change 1': -1.0}
    """

    n: Annotated[int, msgspec.Meta(ge=0, le=MOST_LAGS)] = 0
    latest: list[float] = []
    waiting: dict[str, list[float]] = {}

    def add(self, label: float) -> None:
        """Add a learnt label."""
        self.latest = [label, *self.latest][: self.n]

    def forget(self) -> None:
        """Forget all labels, as they turned out to be outliers."""
        self.latest, self.waiting = [], {}

    def complete(
        self, features: Mapping[Any, Any], *, learns: bool = False, awaits: bool = False
    ) -> Mapping[Any, Any]:
        """Return the features of an event with the last labels and their differences, the latest first.

        An event that `learns` has the labels with which its features were predicted last, if that prediction
        `awaits` its label. So labels that arrive in between have no effect.
        """
        if not isinstance(features, Mapping):
            return features  # what is no mapping has its error later
        if taken := set(lag_names(self.n)) & {str(name) for name in features}:
            raise InputError(f"the feature name {min(taken)!r} is reserved, since lags={self.n}: rename it")
        labels = self.latest
        if learns and self.waiting:
            labels = self.waiting.pop(_key_of(features), labels)
        elif awaits:
            key = _key_of(features)
            self.waiting.pop(key, None)
            self.waiting[key] = labels
            if len(self.waiting) > _WAITING:
                del self.waiting[next(iter(self.waiting))]
        changes = [later - earlier for later, earlier in pairwise(labels)]
        return dict(features) | dict(zip(lag_names(len(labels)), [*labels, *changes], strict=True))


def _key_of(features: Mapping[Any, Any]) -> str:
    """Return a text that identifies the features of an event, whatever their order."""
    text = repr(sorted(plain_tree(features, "features").items()))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
