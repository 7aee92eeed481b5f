"""Audit: the features and weights of each action, or single line (``--audit``), as VW prints them.

Each example takes two lines. The first has its prediction, before any link, and its tag. The second has its
features by falling |weight · value|, each as ``name:cell:value:weight@gradients`` after a tab. Of an
interaction with more than 10,000 crossed features the 1,000 largest are listed, and the rest is counted. With
``--vw_exact`` all are listed, and each example is printed as often as VW predicts it: the logged action once
more when it is learnt.

Source: VW ``gd.cc`` (``print_audit_features``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.task import Shape
from onlineauto.engine.report.predictions import spell_number
from onlineauto.explorers.choice import choose_explorer
from onlineauto.features.block import UNLABELLED
from onlineauto.learners.gradient_kernels import CONTRACTION, GRADIENTS, GRAVITY, MAX_LABEL, MIN_LABEL, ORIGIN
from onlineauto.workspace.inspection.named_examples import Listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.engine.records.task import Task
    from onlineauto.features.block import Block
    from onlineauto.workspace.inspection.named_examples import NamedExample
    from onlineauto.workspace.inspection.wide_products import WideProduct
    from onlineauto.workspace.workspace import Workspace

_ZERO = np.float32(0)
_MOST = 1000
"""Number of listed features of an interaction with too many features."""


def learnt_example(task: Task, block: Block) -> tuple[int, np.float32] | None:
    """Return the index and the label of the example that is learnt from a block's one event, or None."""
    first, end = block.event_start[0], block.event_start[1]
    if not task.training:
        return None
    if task.shape == Shape.SIMPLE:
        label, weight = block.label[first], block.weight[first]
        return (0, label) if label != UNLABELLED and weight > 0 else None
    for i in range(block.cost_start[first], block.cost_start[end]):
        if block.cost[i] == UNLABELLED:
            continue
        if task.n_actions:
            return int(block.cost_action[i]) - 1, block.cost[i]
        line = int(np.searchsorted(block.cost_start, i, side="right")) - 1
        return line - int(first) - int(block.shared[first]), block.cost[i]
    return None


class Audit:
    """Writes the features of an event, with the champion's weights, as text."""

    def __init__(self, workspace: Workspace) -> None:
        self._learner = workspace.learner
        self._model, self._rule = workspace.learner.model, workspace.learner.rule
        self._task, self._layout = workspace.learner.task, workspace.layout
        self._as_vw = workspace.semantics.reports_as_vw
        self._lanes = self._model.weights.shape[1]
        self._explores, self._repeats = workspace.kind == "cb_explore_adf", 1
        if self._as_vw:
            explorer = choose_explorer(workspace.configuration).name
            self._repeats += workspace.kind.startswith("cb_explore") and explorer != "greedy"

    def text(self, block: Block, examples: Iterable[NamedExample]) -> str:
        """Return the audit of the one event of a block, from its `examples`, before it is learnt."""
        listed = list(examples)
        label = learnt_example(self._task, block)
        if self._task.shape == Shape.SIMPLE:
            low, high = self._range(None if label is None else label[1])
            return "".join(self._example(block, each, low, high) for each in listed)
        low, high = self._range(None)
        printed = [self._example(block, each, low, high) for each in listed]
        if not self._as_vw or not self._task.training:
            return "".join(printed)
        if label is None:
            return "".join(printed * (1 + self._explores))
        low, high = self._range(label[1])
        learnt = self._example(block, listed[label[0]], low, high)
        return "".join(printed * self._repeats) + learnt

    def _range(self, label: np.float32 | None) -> tuple[np.float32, np.float32]:
        """Return the range of predictions, widened by a label that is about to be learnt."""
        low, high = (np.float32(self._model.shared[i]) for i in (MIN_LABEL, MAX_LABEL))
        if label is not None and self._rule.track_labels:
            low, high = min(low, label), max(high, label)
        return low, high

    def _example(self, block: Block, example: NamedExample, low: np.float32, high: np.float32) -> str:
        """Return the two lines of an example, its prediction clipped to [`low`, `high`]."""
        lane = self._learner.champion_lane()
        penalties = self._model.lanes[self._model.penalised[lane]]
        gravity, contraction = np.float32(penalties[GRAVITY]), np.float32(penalties[CONTRACTION])
        holders = self._layout.interactions.holders[:, 0]
        prediction = (
            block.initial[example.line]
            if self._task.shape == Shape.SIMPLE
            else np.float32(self._model.shared[ORIGIN])
        )
        parts: list[tuple[float, str]] = []
        with np.errstate(all="ignore"):
            for feature in example.features:
                if not holders[feature.run] or not (feature.used or self._as_vw):
                    continue
                raw = self._model.weights[feature.cell, lane]
                weight = _apply_l1(raw, gravity)
                if feature.used:
                    prediction = np.float32(prediction + weight * feature.value)
                order = -abs(float(raw * feature.value))
                parts.append((order, self._feature(feature, weight * contraction, lane)))
            rest = 0
            for wide in example.wide:
                if holders[wide.run]:
                    added, largest = self._wide(wide, gravity, contraction, lane)
                    prediction, rest = np.float32(prediction + added), rest + len(wide.cell) - len(largest)
                    parts += largest
            prediction = np.float32(prediction * contraction)
        prediction = _ZERO if np.isnan(prediction) else min(max(prediction, low), high)
        parts.sort(key=lambda each: each[0])
        tag = block.tag_of(example.tagged)
        first = spell_number(float(prediction)) + (f" {tag}" if tag else "")
        left_out = f"\tand {rest:,} more of the widest interactions" if rest else ""
        return f"{first}\n{''.join(text for _, text in parts)}{left_out}\n"

    def _wide(
        self, wide: WideProduct, gravity: np.float32, contraction: np.float32, lane: int
    ) -> tuple[np.float32, list[tuple[float, str]]]:
        """Return the contribution of an interaction's products to a prediction, and the largest products."""
        raw = self._model.weights[wide.cell, lane]
        weight = np.where(np.abs(raw) > gravity, raw - np.sign(raw) * gravity, _ZERO)
        size = np.abs(raw * wide.value)
        largest = np.argpartition(-size, _MOST)[:_MOST] if len(size) > _MOST else np.arange(len(size))
        parts = []
        for i in largest.tolist():
            feature = Listed(wide.name_of(i), int(wide.cell[i]), wide.value[i], wide.run, used=True)
            parts.append((-float(size[i]), self._feature(feature, weight[i] * contraction, lane)))
        return np.float32((weight * wide.value).sum(dtype=float)), parts

    def _feature(self, feature: Listed, weight: np.float32, lane: int) -> str:
        text = f"\t{feature.name}:{feature.cell * self._lanes + lane}:{feature.value:g}:{weight:g}"
        if self._rule.adaptive and self._task.training:
            text += f"@{self._model.statistics[feature.cell, GRADIENTS, lane]:g}"
        return text


def _apply_l1(weight: np.float32, gravity: np.float32) -> np.float32:
    """Return a weight with the L1 penalty applied."""
    if not gravity < abs(weight):
        return _ZERO
    return weight - gravity if weight > 0 else weight + gravity
