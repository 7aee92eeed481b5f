"""Inverse hash: the names of the weights, from the features in events (``--invert_hash``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from onlineauto.workspace.inspection.named_examples import NamedExample
    from onlineauto.workspace.workspace import Workspace


class InverseHash:
    """Collects the names of weights; if features share a weight, the first name is stored, like in VW."""

    def __init__(self, workspace: Workspace) -> None:
        self.names: dict[int, str] = {}
        self._workspace = workspace
        self._lanes = workspace.learner.shape.lanes

    def names_of_weights(
        self, examples: Iterable[NamedExample], *, challengers: bool = True
    ) -> dict[int, str]:
        """Return the names of weights of examples, by number, for all live configs or for the champion."""
        listed = list(examples)  # Listing may add interactions, which are read below.
        arrays, width = self._workspace.searching.live_configs.arrays, self._workspace.learner.width
        as_vw, result = self._workspace.semantics.reports_as_vw, dict[int, str]()
        lanes = [
            [
                (live * arrays.slot_step + part * arrays.part_step)
                for live in range(arrays.n if challengers else 1)
                if holds[live]
                for part in range(width)
            ]
            for holds in self._workspace.layout.interactions.holders
        ]
        for example in listed:
            for name, cell, _, run, used in example.features:
                if used or as_vw:
                    for lane in lanes[run]:
                        result.setdefault(cell * self._lanes + lane, name)
        return result

    def note(self, named: Mapping[int, str]) -> None:
        """Store the names of weights that do not have one yet."""
        for number, name in named.items():
            if number not in self.names:
                lane = number % self._lanes
                self.names[number] = f"{name}[{lane}]" if lane else name
