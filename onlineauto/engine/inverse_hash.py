"""Inverse hash: the names of the weights, from the features met (``--invert_hash``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.engine.named_examples import NamedExample
    from onlineauto.engine.workspace import Workspace

__all__ = ["InverseHash"]


class InverseHash:
    """Collects names; of features that share a weight it keeps the first one's, as VW does.

    Parameters
    ----------
    workspace : Workspace
        Whose live slots say which weights a feature has.

    Attributes
    ----------
    names : dict of int to str
        Name of each weight, by its number: that of the cell times the lanes, plus the lane. Weights of a lane
        but the first end with its number in brackets.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.names: dict[int, str] = {}
        self._workspace = workspace
        self._lanes = workspace.weights.shape[2]

    def note(self, examples: Iterable[NamedExample], *, challengers: bool = True) -> None:
        """Take in the features of examples, as all live slots or the champion alone uses them."""
        listed = list(examples)  # which may bring interactions
        live, width = self._workspace.searching.slots.live, self._workspace.learner.width
        holders, names = self._workspace.layout.interactions.holders, self.names
        exact = self._workspace.exact
        lanes = [
            [
                (slot * live.slot_step + part * live.part_step)
                for slot in range(live.n if challengers else 1)
                if holds[slot]
                for part in range(width)
            ]
            for holds in holders
        ]
        suffixes = ["", *(f"[{lane}]" for lane in range(1, self._lanes))]
        for example in listed:
            for name, cell, _, run, used in example.features:
                if not (used or exact):
                    continue
                for lane in lanes[run]:
                    number = cell * self._lanes + lane
                    if number not in names:
                        names[number] = name + suffixes[lane]
