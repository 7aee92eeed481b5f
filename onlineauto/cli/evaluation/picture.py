"""``draw``: the picture of ``onlineauto evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.cli.evaluation.table import shortened
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.evaluation.evaluation import PolicyValue

__all__ = ["check_picture", "draw"]

Point = tuple[int, float, float]


def check_picture(path: str) -> None:
    """Check that a picture can be drawn, before the log is read.

    Raises
    ------
    OptionError
        If a package is missing, or the name does not end with a known format.
    """
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise OptionError("--picture needs a package: pip install 'onlineauto[pictures]'") from None
    if Path(path).suffix not in (".svg", ".png", ".pdf"):
        raise OptionError(f"--picture {path}: its name has to end with .svg, .png or .pdf")


def draw(
    path: str, values: Sequence[PolicyValue], points: Mapping[str, Sequence[Point]], *, alpha: float
) -> None:
    """Draw each doubly robust estimate with its interval, and how the intervals narrowed.

    Parameters
    ----------
    path : str
        The file to write; its ending is the format.
    values : sequence of PolicyValue
        The estimates.
    points : mapping of str to sequence of (int, float, float)
        By policy: number of events, and lowest and highest cost after them.
    alpha : float
        Probability that an interval is ever wrong.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.5 + 0.5 * len(values) + 2), layout="constrained")
    ends, growth = figure.subplots(1, 2)
    colours = [f"C{number % 10}" for number in range(len(values))]
    for place, (each, colour) in enumerate(zip(values, colours, strict=True)):
        label = shortened(each.policy)
        ends.errorbar(
            each.dr.value,
            -place,
            xerr=[[max(each.dr.value - each.dr.low, 0.0)], [max(each.dr.high - each.dr.value, 0.0)]],
            fmt="o",
            color=colour,
            capsize=4,
        )
        known = [point for point in points.get(each.policy, []) if np.isfinite(point[1:]).all()]
        if known:
            events, low, high = zip(*known, strict=True)
            growth.fill_between(events, low, high, color=colour, alpha=0.25, linewidth=0, label=label)
    ends.set_yticks([-place for place in range(len(values))], [shortened(each.policy) for each in values])
    ends.set_xlabel(f"average cost, doubly robust, and where it is but with probability {alpha:g}")
    growth.set_xscale("log")
    growth.set_xlabel("labelled events")
    growth.set_ylabel("average cost")
    growth.legend(fontsize="small")
    figure.savefig(path)
