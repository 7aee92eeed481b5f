"""State of the search: candidates, queue, live configs, counts; read off a model of the wheel's, or ours."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlineauto.workspace.workspace import Workspace

_PREFIX = "_automl_config_manager_"
_STATES = {"New": "new", "Live": "live", "Inactive": "inactive", "Removed": "removed"}
_KINDS = {"Exclusion": "exclusion", "Interaction": "inclusion"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """What the search remembers.

    Attributes
    ----------
    events : int
        Events learnt.
    counts : dict of bytes to int
        How often each namespace was counted.
    candidates : tuple of (str, tuple of tuple of bytes, int, str)
        Kind, elements, lease and state of the configs under consideration.
    queue : tuple of (float, int)
        Priorities and numbers of those that wait, the next one first.
    slots : tuple of (int, bool)
        Number of the config in each live config, and whether it gives way.
    updates : tuple of int
        Events on which each slot's estimators rest.
    """

    events: int
    counts: dict[bytes, int]
    candidates: tuple[tuple[str, tuple[tuple[bytes, ...], ...], int, str], ...]
    queue: tuple[tuple[float, int], ...]
    slots: tuple[tuple[int, bool], ...]
    updates: tuple[int, ...]


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
    """State of the search of ours."""
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


def state_differences(wheel: SearchState | None, ours: SearchState | None) -> list[str]:
    """Parts of the state in which two runs differ, one line a part."""
    if wheel is None or ours is None:
        return [] if wheel is ours else ["search: only one run has a state"]
    found: list[str] = []
    for field in fields(SearchState):
        theirs, mine = (_plain(getattr(state, field.name)) for state in (wheel, ours))
        if theirs != mine:
            found.append(f"search {field.name}: wheel {theirs}, ours {mine}")
    return found


def _plain(value: Any) -> Any:
    """Let a dictionary be compared in its order."""
    return list(value.items()) if isinstance(value, dict) else value
