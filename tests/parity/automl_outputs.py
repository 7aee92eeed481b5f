"""Outputs and state of a run with ``--automl``, of VW or of exact mode, and their differences."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from onlineauto.workspace.workspace import Workspace
from tests.parity.automl_cases import SearchCase
from tests.parity.automl_streams import content
from tests.parity.exact import run_and_keep
from tests.parity.result import Result, differences, shortened
from tests.parity.vw import VwRunner

_EXTRA = ("--extra_metrics", "metrics.json", "--verbose_metrics")
_NOTHING = re.compile(r":(?=[,}])")
"""The text that VW writes for a number that is infinite or not a number."""

_PREFIX = "_automl_config_manager_"
_STATES = {"New": "new", "Live": "live", "Inactive": "inactive", "Removed": "removed"}
_KINDS = {"Exclusion": "exclusion", "Interaction": "inclusion"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """The state of a search."""

    events: int  # events learnt
    counts: dict[bytes, int]  # how often each namespace was counted
    # kind, elements, lease and state of the configs under consideration
    candidates: tuple[tuple[str, tuple[tuple[bytes, ...], ...], int, str], ...]
    queue: tuple[tuple[float, int], ...]  # priorities and numbers of those that wait, the next one first
    slots: tuple[tuple[int, bool], ...]  # number of the config in each live config, and whether it gives way
    updates: tuple[int, ...]  # events on which each slot's estimators rest


class _Fields:
    """Lines ``name = value`` of a readable model that the search wrote."""

    def __init__(self, text: str) -> None:
        pairs = [line.split(" = ", 1) for line in text.splitlines() if line.startswith(_PREFIX)]
        self._values = {name.removeprefix(_PREFIX): value for name, value in pairs}

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def number(self, name: str) -> int:
        return int(self._values[name])

    def items(self, name: str) -> list[str]:
        """Names of the items of a list."""
        return [f"{name}[{item}]" for item in range(self.number(f"{name}.size()"))]

    def elements(self, name: str) -> tuple[tuple[bytes, ...], ...]:
        return tuple(
            tuple(bytes([self.number(letter)]) for letter in self.items(element))
            for element in self.items(name)
        )


def read_search_state(text: str) -> SearchState:
    """Read the state of the search off a ``--readable_model`` file."""
    found = _Fields(text)
    n_counts, n_valid = found.number("ns_counter.size()"), found.number("valid_config_size")
    estimators = found.items("estimators")
    return SearchState(
        events=found.number("count"),
        counts={
            bytes([found.number(f"ns_counter.key{each}")]): found.number(f"ns_counter[key{each}]")
            for each in range(n_counts)
        },
        candidates=tuple(
            (
                _KINDS[found[f"{name}_type"]],
                found.elements(f"{name}_exclusions"),
                found.number(f"{name}_lease"),
                _STATES[found[f"{name}_state"]],
            )
            for name in found.items("configs")[:n_valid]
        ),
        queue=tuple(
            (float(found[f"{name}.first"]), found.number(f"{name}.second"))
            for name in found.items("index_queue")
        ),
        slots=tuple(
            (found.number(f"{name}.first_index"), found[f"{name}.first_eligible_to_inactivate"] == "true")
            for name in estimators
        ),
        updates=tuple(found.number(f"{name}.first_update_count") for name in estimators),
    )


def search_state(workspace: Workspace) -> SearchState:
    """Return the state of a search of onlineauto."""
    search, estimates = workspace.search, workspace.estimates
    return SearchState(
        events=workspace.searching.n_learnt,
        counts={name: estimates.count(name) for name in search.namespaces},
        candidates=tuple(
            (each.config.kind.value, each.config.elements, each.lease, each.state.value)
            for each in search.candidates[: search.n_valid]
        ),
        queue=tuple(sorted(search.queue, reverse=True)),
        slots=tuple((slot.index, slot.gives_way) for slot in search.slots),
        updates=tuple(estimates.updates(slot) for slot in range(len(search.slots))),
    )


def state_differences(vw: SearchState | None, exact: SearchState | None) -> list[str]:
    """Parts of the state in which two runs differ, one line a part."""
    if vw is None or exact is None:
        return [] if vw is exact else ["search: only one run has a state"]
    found: list[str] = []
    for field in fields(SearchState):
        expected, actual = (_plain(getattr(state, field.name)) for state in (vw, exact))
        if expected != actual:
            found.append(f"search {field.name}: VW {expected}, exact mode {actual}")
    return found


def _plain(value: Any) -> Any:
    """Return a dictionary as a list of pairs, so that its order is compared."""
    return list(value.items()) if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outputs:
    """The output, weights and decisions of one run."""

    result: Result  # predictions, weights, text
    # the object of ``--extra_metrics``, every object in it a list of pairs, so that order counts
    metrics: list[tuple[str, Any]]
    search: SearchState | None  # state of the search at the end; None if the run failed

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
    """Read a metrics file, VW's invalid ones too; objects become lists of pairs."""
    pairs: list[tuple[str, Any]] = json.loads(_NOTHING.sub(":null", text), object_pairs_hook=list)
    return pairs


def _gather(result: Result, *, search: SearchState | None, directory: Path) -> Outputs:
    metrics = directory / "metrics.json"
    return Outputs(
        result=result, metrics=parsed_metrics(metrics.read_text()) if metrics.exists() else [], search=search
    )


def _input(case: SearchCase, directory: Path) -> Path:
    (directory / "metrics.json").unlink(missing_ok=True)
    file = directory / "stream.txt"
    file.write_bytes(content(case.stream, events=case.events))
    return file


def run_vw(case: SearchCase, *, vw: VwRunner, directory: Path) -> Outputs:
    """Run VW on a case in a separate directory."""
    result = vw.run([*case.argv, *_EXTRA], file=_input(case, directory))
    assert result.code == 0, result.stderr
    search = read_search_state((directory / "vw.model").read_text("utf-8", "backslashreplace"))
    return _gather(result, search=search, directory=directory)


_RUNS: dict[SearchCase, Outputs] = {}


def run_vw_once(case: SearchCase, *, vw: VwRunner, directory: Path) -> Outputs:
    """Run VW on a case, or return the result of an earlier run."""
    if case not in _RUNS:
        _RUNS[case] = run_vw(case, vw=vw, directory=directory)
    return _RUNS[case]


def run_exact(case: SearchCase, *, directory: Path) -> Outputs:
    """Run onlineauto on a case; see `run_vw`."""
    result, workspace = run_and_keep([*case.argv, *_EXTRA], file=_input(case, directory))
    assert result.code == 0, result.stderr
    return _gather(result, search=search_state(workspace), directory=directory)


TOLERANCE = 1e-6
"""How far two bounds may be apart: the precision to which VW finds them."""
BOUNDS = ("lb", "ub")
"""Metrics that are bounds."""
_LOG = "total_log_calls"
"""Counts VW's messages on model files too, which we do not write."""


def metric_differences(vw: Any, exact: Any, *, path: str = "") -> list[str]:
    """Differences of two metrics objects, lists of pairs as `parsed_metrics` gives them."""
    if isinstance(vw, list) and isinstance(exact, list):
        expected, actual = ([key for key, _ in each if key != _LOG] for each in (vw, exact))
        if expected != actual:
            return [f"metrics {path or '.'}: VW has {expected}, exact mode {actual}"]
        values = dict(exact)
        return [
            found
            for key, value in vw
            if key != _LOG
            for found in metric_differences(value, values[key], path=f"{path}.{key}")
        ]
    return [] if _same_metric(vw, exact, key=path.rpartition(".")[2]) else [_unlike(path, vw, exact)]


def _same_metric(vw: Any, exact: Any, *, key: str) -> bool:
    if key in BOUNDS and isinstance(vw, float) and isinstance(exact, float):
        return abs(vw - exact) <= TOLERANCE
    return repr(vw) == repr(exact)


def _unlike(path: str, vw: Any, exact: Any) -> str:
    return f"metrics {path}: VW {vw!r}, exact mode {exact!r}"


def differences_of_search(vw: Outputs, exact: Outputs) -> list[str]:
    """Everything in which two runs differ, one line a difference."""
    found = differences(vw.result, exact.result, models=not vw.result.stopped_early)
    return [
        *found,
        *shortened("metrics", metric_differences(vw.metrics, exact.metrics)),
        *state_differences(vw.search, exact.search),
    ]
