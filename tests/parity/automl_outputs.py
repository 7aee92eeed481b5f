"""Everything that a run with ``--automl`` leaves behind, of the wheel or of ours, in one shape."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.parity.automl_state import SearchState, read_search_state, search_state
from tests.parity.automl_streams import content
from tests.parity.ours import run_and_keep

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.automl_cases import SearchCase
    from tests.parity.result import Result
    from tests.parity.wheel import Wheel

_EXTRA = ("--extra_metrics", "metrics.json", "--verbose_metrics")
_NOTHING = re.compile(r":(?=[,}])")
"""What the wheel leaves of a number that is infinite or none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outputs:
    """What one run printed, learnt and decided.

    Attributes
    ----------
    result : Result
        Predictions, weights, text.
    metrics : list of (str, Any)
        The object of ``--extra_metrics``, every object in it a list of pairs, so that order counts.
    search : SearchState or None
        State of the search at the end; None if the run failed.
    """

    result: Result
    metrics: list[tuple[str, Any]]
    search: SearchState | None

    @property
    def switches(self) -> int:
        """Changes of champion."""
        return int(dict(dict(self.metrics)["automl"])["total_champ_switches"])

    @property
    def leases(self) -> int:
        """Leases that configs under consideration have had: each is twice as long as the one before."""
        assert self.search is not None
        least = min(lease for _, _, lease, _ in self.search.candidates)
        return sum(
            (lease // max(least, 1)).bit_length()
            for _, _, lease, state in self.search.candidates
            if state != "new"
        )


def parsed_metrics(text: str) -> list[tuple[str, Any]]:
    """Read a metrics file, the wheel's invalid ones too; objects become lists of pairs."""
    pairs: list[tuple[str, Any]] = json.loads(_NOTHING.sub(":null", text), object_pairs_hook=list)
    return pairs


def _gather(result: Result, *, search: SearchState | None, directory: Path) -> Outputs:
    metrics = directory / "metrics.json"
    return Outputs(
        result=result,
        metrics=parsed_metrics(metrics.read_text()) if metrics.exists() else [],
        search=search,
    )


def _input(case: SearchCase, directory: Path) -> Path:
    (directory / "metrics.json").unlink(missing_ok=True)
    file = directory / "stream.txt"
    file.write_bytes(content(case.stream, events=case.events))
    return file


def wheels(case: SearchCase, *, wheel: Wheel, directory: Path) -> Outputs:
    """Run the wheel on a case in a directory of its own."""
    result = wheel.run([*case.argv, *_EXTRA], file=_input(case, directory))
    assert result.code == 0, result.stderr
    search = read_search_state((directory / "wheel.model").read_text("utf-8", "backslashreplace"))
    return _gather(result, search=search, directory=directory)


_RUNS: dict[SearchCase, Outputs] = {}


def wheels_once(case: SearchCase, *, wheel: Wheel, directory: Path) -> Outputs:
    """Run the wheel on a case, or give what it did when it was run before."""
    if case not in _RUNS:
        _RUNS[case] = wheels(case, wheel=wheel, directory=directory)
    return _RUNS[case]


def ours(case: SearchCase, *, directory: Path) -> Outputs:
    """Run onlineauto on a case; see `wheels`."""
    result, workspace = run_and_keep([*case.argv, *_EXTRA], file=_input(case, directory))
    assert result.code == 0, result.stderr
    return _gather(result, search=search_state(workspace), directory=directory)
