"""``crossings``: the interactions of a champion, as a table of namespaces by namespaces."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Final

from onlineauto.automl.config import namespace_text
from onlineauto.pictures.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onlineauto.automl.config import Interaction

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
    longer = Counter(pair for each in crossed if len(each) > 2 for pair in _pairs_of(each))
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
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_aspect("equal", anchor="W")
        upright = 0 if max(map(len, labels), default=0) <= 3 else 90
        axes.set_xticks(range(len(names)), labels, rotation=upright)
        axes.set_yticks(range(len(names)), labels)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[["left", "bottom"]].set_visible(False)
        keys = [(look.champion, "crossed as a pair"), (look.rising, "only in longer interactions")]
        picture.figure.legend(
            handles=[Patch(color=colour, label=text) for colour, text in keys[: 1 + bool(longer)]],
            loc="outside lower left",
        )
    return picture


def _pairs_of(names: Sequence[bytes]) -> set[tuple[bytes, ...]]:
    """Return the distinct pairs within an interaction, each in ascending order."""
    return {(names[i], names[j]) for i in range(len(names)) for j in range(i + 1, len(names))}
