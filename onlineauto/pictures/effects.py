"""``effects``: how a prediction depends on each feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.pictures.parts import shorten
from onlineauto.pictures.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_FEATURES: Final = 9
_MOST_LABELS: Final = 6
_COLUMNS: Final = 3


def effects(found: Mapping[str, Any], *, title: str = "", dark: bool = False) -> Picture:
    """Draw how a prediction depends on each feature.

    Parameters
    ----------
    found : mapping
        A result of `AutoMLRegressor.effects` or `AutoMLClassifier.effects`.
    title : str
        Title of the picture.
    dark : bool
        True for a dark background.

    Returns
    -------
    Picture
        One panel for each of the nine features with the largest effects: a line over the values of a number,
        and bars for words. All panels have the same scale. A classifier has one series for each label.
    """
    features = dict(list(found["features"].items())[:_MOST_FEATURES])
    labels = [str(label) for label in found.get("labels", [""])][:_MOST_LABELS]
    n_rows = -(-len(features) // _COLUMNS) or 1
    note = f"Mean {found['predicts']} over rows in which one feature has the value; others are as they are."
    picture = Picture(11, 1.3 + 2.3 * n_rows, title=title or "What each feature does", note=note, dark=dark)
    with picture.drawing() as look:
        panels = picture.figure.subplots(n_rows, _COLUMNS, sharey=True, squeeze=False).ravel()
        for panel, (name, effect) in zip(panels, features.items(), strict=False):
            values, means = (
                effect["values"],
                np.asarray(effect["predictions"]).reshape(len(effect["values"]), -1),
            )
            are_words = isinstance(values[0], str | bool)
            places = np.arange(len(values)) if are_words else np.asarray(values, float)
            for at, (label, colour) in enumerate(zip(labels, look.series, strict=False)):
                marker = "o" if are_words else "o-"
                panel.plot(places, means[:, at], marker, color=colour, markersize=4, label=label or None)
            if are_words:
                panel.set_xticks(places, [shorten(str(value), 9) for value in values])
                panel.margins(x=0.15)
            panel.set_title(shorten(str(name), 34))
        for panel in panels[len(features) :]:
            panel.set_visible(False)
        if labels != [""] and features:
            panels[0].legend()
    return picture
