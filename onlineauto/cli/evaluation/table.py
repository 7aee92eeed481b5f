"""``table``: the table of ``onlineauto evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.evaluation.evaluation import Bounded, PolicyValue

_WIDE = 40
_TITLES = ("policy", "doubly robust", "self-normalised", "inverse propensity", "sample size", "VW's loss")


def table(values: Sequence[PolicyValue], *, alpha: float) -> Iterator[str]:
    """Yield the lines of the table: estimates, intervals as numbers, and the doubly robust ones as bars."""
    yield (
        f"average cost over {values[0].events} events, with [{100 * (1 - alpha):g}% confidence sequence]: it "
        "holds after every event at once"
    )
    rows = [
        (
            _shortened(each.policy),
            _bounded(each.dr),
            _bounded(each.snips),
            _bounded(each.ips),
            f"{each.effective_sample_size:.0f}",
            f"{each.average_loss:.6f}",
        )
        for each in values
    ]
    widths = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
    for policy, *others in (_TITLES, *rows):
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([policy.ljust(widths[0]), *cells])
    yield ""
    yield from _bars(values)


def _bars(values: Sequence[PolicyValue]) -> Iterator[str]:
    """Yield the doubly robust estimates and their intervals as bars on one scale."""
    known = [each for each in values if np.isfinite(each.dr.low)]
    if not known:
        return
    low, high = min(each.dr.low for each in known), max(each.dr.high for each in known)
    width = max(len(_shortened(each.policy)) for each in known)

    def place(cost: float) -> int:
        return round((min(max(cost, low), high) - low) / (high - low or 1.0) * (_WIDE - 1))

    for each in known:
        bar = [" "] * _WIDE
        first, last = place(each.dr.low), place(each.dr.high)
        bar[first : last + 1] = "-" * (last + 1 - first)
        bar[first], bar[last] = "[", "]"
        bar[place(each.dr.value)] = "o"
        yield f"{_shortened(each.policy).ljust(width)}  {''.join(bar).rstrip()}"
    yield f"{''.ljust(width)}  {f'{low:.3f}'.ljust(_WIDE - 6)}{high:.3f}"


def _shortened(policy: str) -> str:
    """Return the name of a policy, cut off if it is long."""
    return policy if len(policy) <= _WIDE else policy[: _WIDE - 3] + "..."


def _bounded(estimate: Bounded) -> str:
    return f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"
