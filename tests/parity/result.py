"""The result of one run, of the wheel or of ours, and the differences of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHOWN = 5
"""Differences of one kind that a report spells out; the rest are counted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Cells of a model that hold anything but zeros."""

    index: NDArray[np.int64]  # VW's cell numbers, ascending
    # w alone (``--sgd``, ``--invariant``, ``-t``), w and adapt, w and norm, or w, adapt and norm
    values: NDArray[np.float32]

    def as_dict(self) -> dict[int, tuple[float, ...]]:
        return {int(i): tuple(float(v) for v in row) for i, row in zip(self.index, self.values, strict=True)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """What one run printed and learnt."""

    predictions: tuple[str, ...]  # lines of the ``-p`` file
    weights: Weights  # the model
    # the model's scalars by VW's names (``min_label``, ``norm normalizer``, ``event_sum``, ...), as VW
    # prints them: six significant digits
    state: dict[str, str]
    stderr: tuple[str, ...]  # header, progress table and footer, line by line
    stdout: str  # VW's log
    code: int  # 0 if the run finished

    @property
    def stopped_early(self) -> bool:
        """Whether the held-out loss ended the run; the model that the wheel saved is then its best pass's."""
        return self.state.get("current_pass") not in (None, self._passes())

    def _passes(self) -> str:
        used = [line.rpartition(" ")[2] for line in self.stderr if line.startswith("passes used = ")]
        return used[0] if used else "1"


def _line_differences(kind: str, wheel: tuple[str, ...], ours: tuple[str, ...]) -> list[str]:
    found = [
        f"{kind} {number}: wheel {theirs!r}, ours {mine!r}"
        for number, (theirs, mine) in enumerate(zip(wheel, ours, strict=False), start=1)
        if theirs != mine
    ]
    if len(wheel) != len(ours):
        found.append(f"{kind}: wheel has {len(wheel)} lines, ours {len(ours)}")
    return shortened(kind, found)


def _weight_differences(wheel: Weights, ours: Weights) -> list[str]:
    if len(wheel.index) and len(ours.index) and wheel.values.shape[1] != ours.values.shape[1]:
        return [f"weights: wheel keeps {wheel.values.shape[1]} fields, ours {ours.values.shape[1]}"]
    theirs, mine = wheel.as_dict(), ours.as_dict()
    found = [
        f"weight {cell}: wheel {_hexadecimal(theirs.get(cell))}, ours {_hexadecimal(mine.get(cell))}"
        for cell in sorted(theirs.keys() | mine.keys())
        if _hexadecimal(theirs.get(cell)) != _hexadecimal(mine.get(cell))
    ]
    return shortened("weight", found)


def _hexadecimal(values: tuple[float, ...] | None) -> str:
    return "nothing" if values is None else " ".join(value.hex() for value in values)


def _state_differences(wheel: dict[str, str], ours: dict[str, str]) -> list[str]:
    return [
        f"state {name!r}: wheel {wheel.get(name)}, ours {value}"
        for name, value in ours.items()
        if wheel.get(name) != value
    ]


def shortened(kind: str, found: list[str]) -> list[str]:
    """First differences of a kind, and how many there are."""
    if len(found) <= SHOWN:
        return found
    return [*found[:SHOWN], f"{kind}: {len(found)} differences in all"]


def differences(wheel: Result, ours: Result, *, models: bool = True) -> list[str]:
    """Everything in which two runs differ, one line a difference; standard output is not compared."""
    found = [] if (wheel.code == 0) == (ours.code == 0) else [f"code: wheel {wheel.code}, ours {ours.code}"]
    found += _line_differences("stderr", wheel.stderr, ours.stderr)
    found += _line_differences("prediction", wheel.predictions, ours.predictions)
    if models:
        found += _weight_differences(wheel.weights, ours.weights)
        found += _state_differences(wheel.state, ours.state)
    return found
