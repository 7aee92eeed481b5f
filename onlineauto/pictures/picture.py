"""``Picture``: a figure in the common style, which can be displayed and saved; pictures of one model."""

from __future__ import annotations

import io
import os
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.automl.config import namespace_text
from onlineauto.errors import InputError, OptionError, install_hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from onlineauto.automl.config import Interaction


_ENDINGS: Final = (".svg", ".png", ".pdf")
_DOTS_PER_INCH: Final = 150
_LINE = 14 / 72
"""Height of a line of small text, in inches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Colours of a picture."""

    paper: str  # Background.
    ink: str  # Text.
    quiet: str  # Secondary text.
    line: str  # Grid and frames.
    champion: str  # A champion.
    rising: str  # A challenger that became champion.
    waiting: str  # A challenger that was replaced.
    worse: str  # A challenger that was proved worse.
    series: tuple[str, ...]  # Colours for parallel items, which a colour-blind reader can distinguish.

    def settings(self) -> dict[Any, Any]:
        """Return the settings of matplotlib for these colours."""
        from matplotlib.rcsetup import cycler

        return {
            "axes.axisbelow": True,
            "axes.edgecolor": self.line,
            "axes.facecolor": self.paper,
            "axes.grid": True,
            "axes.labelcolor": self.quiet,
            "axes.labelsize": 9,
            "axes.linewidth": 0.8,
            "axes.prop_cycle": cycler(color=self.series),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 10,
            "axes.titlecolor": self.ink,
            "axes.formatter.use_mathtext": False,
            "figure.facecolor": self.paper,
            "font.family": "DejaVu Sans",
            "font.size": 9,
            "grid.color": self.line,
            "grid.linewidth": 0.6,
            "legend.fontsize": 8.5,
            "legend.frameon": False,
            "legend.labelcolor": self.ink,
            "lines.linewidth": 1.8,
            "savefig.facecolor": self.paper,
            "svg.hashsalt": "onlineauto",
            "text.color": self.ink,
            "text.parse_math": False,
            "xtick.color": self.line,
            "xtick.labelcolor": self.quiet,
            "ytick.color": self.line,
            "ytick.labelcolor": self.quiet,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
        }


LIGHT: Final = Look(
    paper="#ffffff",
    ink="#1f2328",
    quiet="#59636e",
    line="#d9dee3",
    champion="#1f6feb",
    rising="#8fbcf5",
    waiting="#c3cad1",
    worse="#e8a598",
    series=("#1f6feb", "#d9730d", "#1a8754", "#9a5bd1", "#c2337a", "#6b7682", "#b58900", "#0f8b8d"),
)
"""On white paper."""

DARK: Final = Look(
    paper="#0d1117",
    ink="#e6edf3",
    quiet="#9198a1",
    line="#2a313a",
    champion="#4493f8",
    rising="#2c5a97",
    waiting="#3d444d",
    worse="#8a4a40",
    series=("#4493f8", "#f0883e", "#3fb950", "#b787f0", "#f06fa7", "#9198a1", "#d4a72c", "#39c5cf"),
)
"""On dark paper."""


class Picture:
    """A figure in the common style.

    Parameters
    ----------
    width, height : float
        Size in inches.
    title : str
        Title of the picture.
    note : str
        A sentence below the title.
    dark : bool
        True for a dark background.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        The figure, which may be changed.
    look : Look
        The colours.
    """

    def __init__(
        self, width: float, height: float, *, title: str, note: str = "", dark: bool = False
    ) -> None:
        self.look: Look = DARK if dark else LIGHT
        with self.drawing():
            from matplotlib.figure import Figure

            self.figure: Figure = Figure(figsize=(width, height), layout="constrained")
            top = 1 - (0.5 + _LINE * note.count("\n") + (_LINE if note else 0)) / height
            self.figure.get_layout_engine().set(rect=(0, 0, 1, top), w_pad=0.08, h_pad=0.06)  # type: ignore[union-attr, call-arg]
            left = 0.1 / width
            self.figure.text(left, 1 - 0.12 / height, title, size=13, weight="bold", va="top")
            if note:
                self.figure.text(
                    left, 1 - 0.42 / height, note, size=9, color=self.look.quiet, va="top", linespacing=1.4
                )

    @contextmanager
    def drawing(self) -> Iterator[Look]:
        """Apply the colours and settings of this picture within the context."""
        import matplotlib as mpl

        with mpl.rc_context(self.look.settings()):
            yield self.look

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture in the format of the file's extension: .svg, .png or .pdf.

        Equal pictures have equal bytes.

        Raises
        ------
        OptionError
            The file has another extension.
        OSError
            The file cannot be written.
        """
        check_picture(path)
        with Path(path).open("wb") as file:
            self._write(file, Path(path).suffix[1:])

    def _write(self, file: Any, kind: str) -> None:
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        with self.drawing():
            self.figure.savefig(file, format=kind, dpi=_DOTS_PER_INCH, metadata=dated.get(kind))

    def _repr_svg_(self) -> str:
        """Return the picture as SVG for a notebook."""
        file = io.BytesIO()
        self._write(file, "svg")
        return file.getvalue().decode()


def check_picture(path: str | os.PathLike[str]) -> None:
    """Check that a picture can be drawn, before the computations for it.

    Raises
    ------
    OptionError
        If matplotlib is missing, or the file's extension is not .svg, .png or .pdf.
    """
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise OptionError(f"pictures need matplotlib: {install_hint('plot')}") from None
    if Path(path).suffix not in _ENDINGS:
        raise OptionError(f"{os.fspath(path)}: the name of a picture ends with .svg, .png or .pdf")


_MOST_ACTIONS: Final = 4
_MOST_PARTS: Final = 10
_MOST_LETTERS: Final = 34


def parts(explanation: Mapping[str, Any], *, title: str = "", dark: bool = False) -> Picture:
    """Draw which features and members moved the predicted reward or cost of each action, or a prediction.

    Parameters
    ----------
    explanation : mapping
        A result of `explain` of `AutoML`, `AutoMLRegressor` or `AutoMLClassifier`, or of
        `onlineauto.interop.explanation.explain`.
    title : str
        Title of the picture.
    dark : bool
        True for a dark background.

    Returns
    -------
    Picture
        Bars with the largest parts of the four best actions or labels. They add up to the prediction.
    """
    rows = explanation.get("actions") or explanation.get("predictions")
    if not rows:
        raise InputError("parts draws a result of explain; pictures.effects draws one of effects")
    what = next(name for name in ("reward", "cost", "probability", "prediction") if name in rows[0])
    best = sorted(rows, key=lambda row: row[what], reverse=what != "cost")[:_MOST_ACTIONS]
    bars = [_bars(row) for row in best]
    note = f"Predicted by the {explanation['predicts']}. The bars of an action add up to its {what}."
    heading = f"Why each action has its {what}"
    if "actions" not in explanation:
        note, heading = f"The bars add up to the {what}.", f"What the {what} is made of"
    height = 1.5 + 0.26 * max(map(len, bars))
    picture = Picture(3.6 * len(best) + 0.6, height, title=title or heading, note=note, dark=dark)
    with picture.drawing() as look:
        panels = picture.figure.subplots(1, len(best), sharex=True, squeeze=False)[0]
        for panel, row, named in zip(panels, best, bars, strict=True):
            values = [value for _, value in named]
            colours = [look.champion if (value > 0) == (what != "cost") else look.worse for value in values]
            panel.barh(range(len(values)), values, color=colours, height=0.7)
            name_rows(panel, [shorten(name) for name, _ in named])
            panel.axvline(0, color=look.quiet, linewidth=0.8)
            name = str(row.get("action_id", row.get("action", row.get("label", what))))
            panel.set_title(f"{shorten(name)}: {row[what]:.4g}")
    return picture


def _bars(row: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the level and the largest parts of an action, and the sum of all others."""
    named = sorted((*row["features"].items(), *row.get("rest", {}).items()), key=lambda each: -abs(each[1]))
    shown, others = named[:_MOST_PARTS], named[_MOST_PARTS:]
    level = [("what all actions share", row["level"])] if row.get("level") else []
    level += [("what all rows share", row["base"])] if row.get("base") else []
    return level + shown + ([(f"{len(others)} others", sum(value for _, value in others))] if others else [])


def name_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Write the labels of rows at their left, the first at the top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def shorten(name: str, most: int = _MOST_LETTERS) -> str:
    """Return a name, with its end replaced by an ellipsis if it is long."""
    return name if len(name) <= most else name[: most - 1] + "…"


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
            values = effect["values"]
            means = np.asarray(effect["predictions"]).reshape(len(values), -1)
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


_CELL: Final = 0.42
_MOST_DIGITS: Final = 40
"""Number of namespaces above which cells are too small for numbers."""


def crossings(
    interactions: Iterable[Interaction],
    *,
    namespaces: Iterable[bytes] = (),
    title: str = "What the champion crosses",
    dark: bool = False,
) -> Picture:
    """Draw the crossed pairs of namespaces, and how many longer interactions contain each pair.

    Parameters
    ----------
    interactions : iterable of tuple of bytes
        Names of the namespaces of each interaction.
    namespaces : iterable of bytes
        Namespaces to draw besides the crossed ones.
    title : str
        Title of the picture.
    dark : bool
        True for a dark background.

    Examples
    --------
    >>> picture = crossings([(b"user", b"page"), (b"page", b"user", b"hour")])
    >>> len(picture.figure.axes[0].patches)  # the pairs of three namespaces
    6
    """
    crossed = [tuple(sorted(names)) for names in interactions]
    names = sorted({*namespaces, *(name for each in crossed for name in each)})
    pairs = {names for names in crossed if len(names) == 2}
    longer = Counter(pair for each in crossed if len(each) > 2 for pair in set(combinations(each, 2)))
    labels = [namespace_text(name) for name in names]
    margin = 0.09 * max(map(len, labels), default=0)
    size = min(_CELL, 12 / max(len(names), 1)) * max(len(names), 1)
    note = f"{len(pairs)} pair{'s' * (len(pairs) != 1)}" + (
        f", {len(crossed) - len(pairs)} of three or more" if longer else ""
    )
    if longer:
        note += "\nnumber: longer interactions that have both"
    picture = Picture(
        max(size + margin + 1.2, 4.6),
        size + 0.5 * margin + 1.8 + 0.2 * bool(longer),
        title=title,
        note=note,
        dark=dark,
    )
    with picture.drawing() as look:
        from matplotlib.patches import Patch, Rectangle

        axes = picture.figure.subplots()
        for (column, one), (row, other) in combinations_with_replacement(list(enumerate(names)), 2):
            pair, many = (one, other), longer[one, other]
            colour = look.champion if pair in pairs else look.rising if many else "none"
            axes.add_patch(
                Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, facecolor=colour, edgecolor=look.line)
            )
            if many and len(names) <= _MOST_DIGITS:
                ink = look.paper if pair in pairs else look.ink
                axes.text(column, row, str(many), ha="center", va="center", size=8, color=ink)
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.set_aspect("equal", anchor="W")
        upright = 0 if max(map(len, labels), default=0) <= 3 else 90
        axes.set_xticks(range(len(names)), labels, rotation=upright)
        name_rows(axes, labels)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[["left", "bottom"]].set_visible(False)
        keys = [(look.champion, "crossed as a pair"), (look.rising, "only in longer interactions")]
        picture.figure.legend(
            handles=[Patch(color=colour, label=text) for colour, text in keys[: 1 + bool(longer)]],
            loc="outside lower left",
        )
    return picture
