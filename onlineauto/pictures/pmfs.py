"""``pmfs``: the probabilities that explorers give to the same actions, side by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from onlineauto.explorers.policy import Policy
from onlineauto.pictures.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EXPLORERS: Final[Mapping[str, dict[str, Any]]] = {
    "greedy, epsilon 0.2": {"epsilon": 0.2},
    "softmax, lambda 5": {"softmax": True, "lambda": 5.0},
    "squarecb, gamma scale 10": {"squarecb": True, "gamma_scale": 10.0},
    "regcb": {"regcb": True},
    "regcb, optimistic": {"regcbopt": True},
    "synthcover": {"synthcover": True},
}
"""By title: options of an explorer, as keywords."""


def pmfs(
    scores: Sequence[float] = (0.2, 0.25, 0.4, 0.6, 0.9),
    explorers: Mapping[str, dict[str, Any]] = EXPLORERS,
    *,
    learnt: int = 1000,
    slack: float = 0.1,
    dark: bool = False,
) -> Picture:
    """Draw the probability of each action under several explorers, all for the same predicted costs.

    Parameters
    ----------
    scores : sequence of float
        Predicted cost of each action.
    explorers : mapping of str to dict
        By title: options of an explorer, as keywords.
    learnt : int
        Events learnt so far.
    slack : float
        How far below and above its prediction a cost is plausible, for explorers that go by it.
    dark : bool
        True for a dark background.

    Raises
    ------
    ValueError
        If an explorer asks several models.
    """
    columns = 3 if len(explorers) > 4 else 2
    rows = math.ceil(len(explorers) / columns)
    predicted = ", ".join(f"{score:g}" for score in scores)
    picture = Picture(
        3.1 * columns,
        0.9 + 2.1 * rows,
        title="From the same predictions to probabilities",
        note=f"predicted costs of {len(scores)} actions: {predicted} · after {learnt:,} events",
        dark=dark,
    )
    plausible = [(score - slack, score + slack) for score in scores]
    with picture.drawing() as look:
        grid = picture.figure.subplots(rows, columns, sharey=True, squeeze=False)
        for at, axes in enumerate(grid.flat):
            if at >= len(explorers):
                axes.set_visible(False)
                continue
            title, options = list(explorers.items())[at]
            policy = Policy(**options)
            given = plausible if policy.needs_plausible else None
            pmf = policy.pmf(scores, learnt=learnt, plausible=given)
            bars = axes.bar(range(len(pmf)), pmf, color=look.series[0], width=0.72)
            axes.bar_label(bars, [f"{p:.2f}" for p in pmf], size=7.5, color=look.quiet, padding=1)
            axes.set_title(title)
            axes.set_ylim(0, 1.15)
            axes.set_yticks([0, 0.5, 1])
            axes.set_xticks(range(len(pmf)), [str(action) for action in range(len(pmf))])
            axes.tick_params(length=0)
            axes.grid(visible=False, axis="x")
            axes.spines["left"].set_visible(False)
            if at // columns == rows - 1:
                axes.set_xlabel("action")
            if at % columns == 0:
                axes.set_ylabel("probability")
    return picture
