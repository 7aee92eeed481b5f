"""The result of one run, of VW or of exact mode, and the differences of two."""

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
    """The output and the weights of one run."""

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
        """Return whether the held-out loss ended the run; the model that VW saved is then its best pass's."""
        return self.state.get("current_pass") not in (None, self._passes())

    def _passes(self) -> str:
        used = [line.rpartition(" ")[2] for line in self.stderr if line.startswith("passes used = ")]
        return used[0] if used else "1"


def _line_differences(kind: str, vw: tuple[str, ...], exact: tuple[str, ...]) -> list[str]:
    found = [
        f"{kind} {number}: VW {expected!r}, exact mode {actual!r}"
        for number, (expected, actual) in enumerate(zip(vw, exact, strict=False), start=1)
        if expected != actual
    ]
    if len(vw) != len(exact):
        found.append(f"{kind}: VW has {len(vw)} lines, exact mode {len(exact)}")
    return shortened(kind, found)


def _weight_differences(vw: Weights, exact: Weights) -> list[str]:
    if len(vw.index) and len(exact.index) and vw.values.shape[1] != exact.values.shape[1]:
        return [f"weights: VW keeps {vw.values.shape[1]} fields, exact mode {exact.values.shape[1]}"]
    expected, actual = vw.as_dict(), exact.as_dict()
    found = [
        f"weight {cell}: VW {_hexadecimal(expected.get(cell))}, exact mode {_hexadecimal(actual.get(cell))}"
        for cell in sorted(expected.keys() | actual.keys())
        if _hexadecimal(expected.get(cell)) != _hexadecimal(actual.get(cell))
    ]
    return shortened("weight", found)


def _hexadecimal(values: tuple[float, ...] | None) -> str:
    return "nothing" if values is None else " ".join(value.hex() for value in values)


def _state_differences(vw: dict[str, str], exact: dict[str, str]) -> list[str]:
    return [
        f"state {name!r}: VW {vw.get(name)}, exact mode {value}"
        for name, value in exact.items()
        if vw.get(name) != value
    ]


def shortened(kind: str, found: list[str]) -> list[str]:
    """First differences of a kind, and how many there are."""
    if len(found) <= SHOWN:
        return found
    return [*found[:SHOWN], f"{kind}: {len(found)} differences in all"]


def differences(vw: Result, exact: Result, *, models: bool = True) -> list[str]:
    """Everything in which two runs differ, one line a difference; standard output is not compared."""
    found = [] if (vw.code == 0) == (exact.code == 0) else [f"code: VW {vw.code}, exact mode {exact.code}"]
    found += _line_differences("stderr", vw.stderr, exact.stderr)
    found += _line_differences("prediction", vw.predictions, exact.predictions)
    if models:
        found += _weight_differences(vw.weights, exact.weights)
        found += _state_differences(vw.state, exact.state)
    return found
