"""Named examples: the features of an event as the learner uses them, one by one and with their names.

`Audit` lists them, and `InverseHash` records the names of weights. This is slow Python; the learning loop
lists features in kernels, without names.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from math import comb, prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from onlineauto.engine.loop.wide_events import kept_interactions
from onlineauto.engine.records.task import Shape
from onlineauto.engine.report.predictions import spell_number
from onlineauto.explorers.options import choose_explorer
from onlineauto.features.block import UNLABELLED
from onlineauto.features.records import CONSTANT_HASH
from onlineauto.learners.gradient_kernels import CONTRACTION, GRADIENTS, GRAVITY, MAX_LABEL, MIN_LABEL, ORIGIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.records.task import Task
    from onlineauto.features.block import Block
    from onlineauto.workspace.workspace import Workspace

_FNV = 16777619
_WRAP = 2**64 - 1
_ONE = np.float32(1)


@dataclass(frozen=True, slots=True)
class Factor:
    """The features of a factor: their names, hashes and values."""

    names: Sequence[str | None]
    hash: NDArray[np.uint64]
    value: NDArray[np.float32]
    again: bool
    """True if the factor repeats the one before it, so that each combination is taken once."""


@dataclass(frozen=True, slots=True)
class WideProduct:
    """The products of an interaction."""

    cell: NDArray[np.int64]  # int64[n]: their cells in the table of weights.
    value: NDArray[np.float32]  # float32[n]: their values.
    run: int  # 1 + the number of the interaction.
    factors: Sequence[Factor]
    chosen: Sequence[NDArray[np.int32]]  # int32[n]: the index of each factor's feature in each product.

    def name_of(self, i: int) -> str:
        """Return the names crossed in a product; unknown names are omitted."""
        names = (factor.names[chosen[i]] for factor, chosen in zip(self.factors, self.chosen, strict=True))
        return "*".join(name for name in names if name is not None)


def wide_product(factors: Sequence[Factor], mask: int, run: int) -> WideProduct:
    """Return the products of two or more factors, in the order of `NamedExamples`.

    >>> one = Factor(["a", "b"], np.array([1, 2], np.uint64), np.array([1, 2], np.float32), False)
    >>> made = wide_product([one, Factor(one.names, one.hash, one.value, True)], 1023, 1)
    >>> [made.name_of(i) for i in range(3)], made.value.tolist()
    (['a*a', 'a*b', 'b*b'], [1.0, 2.0, 4.0])
    """
    first, *others = factors
    state, value, chosen = (
        first.hash * np.uint64(_FNV),
        first.value,
        [np.arange(len(first.hash), dtype=np.int32)],
    )
    for number, factor in enumerate(others, 1):
        left, right = np.divmod(
            np.arange(len(state) * len(factor.hash), dtype=np.int32), np.int32(len(factor.hash))
        )
        if factor.again:
            once = right >= chosen[-1][left]
            left, right = left[once], right[once]
        state = state[left] ^ factor.hash[right]
        if number < len(others):
            state = state * np.uint64(_FNV)
        value = value[left] * factor.value[right]
        chosen = [*(index[left] for index in chosen), right]
    return WideProduct((state & np.uint64(mask)).astype(np.int64), value, run, factors, chosen)


class Names(Protocol):
    """Finds the name of a feature by its namespace and its hash."""

    def name_of(self, namespace: bytes, hash_: int, *, seed: int) -> str | None:
        """Return the name of a feature of a namespace; `seed` is the hash of the namespace's name."""


class Nameless:
    """Names that are all unknown: VW stores none for the second pass."""

    def name_of(self, namespace: bytes, hash_: int, *, seed: int) -> str | None:  # noqa: ARG002
        """Return None."""
        return None


class Listed(NamedTuple):
    """A feature of an example."""

    name: str  # Name of the feature, or the names that are crossed with ``*`` between them.
    cell: int  # Its cell in the table of weights.
    value: np.float32
    run: int  # 1 + the number of its product in `Interactions`, 0 for a feature of no product.
    used: bool  # True if the feature is used itself, False if it is only a factor of interactions.


@dataclass(frozen=True, slots=True)
class NamedExample:
    """The features of a single line, or of one action of an event."""

    line: int  # Number of the line in the block.
    tagged: int  # Number of the line that has its tag: VW gives the first action the tag of the shared line.
    features: list[Listed]  # The features, in the order in which the learner adds them up.
    wide: list[WideProduct]  # The products of interactions with too many products to list.


class _Feature(NamedTuple):
    name: str | None
    hash: int
    value: np.float32


_Groups = dict[int, list[_Feature]]
"""Features by group key, in the order of first appearance."""


class _Partial(NamedTuple):
    """The product of the first few factors of an interaction."""

    name: str | None
    state: int
    value: np.float32
    place: int


class NamedExamples:
    """Lists the examples of events."""

    def __init__(self, workspace: Workspace, names: Names, *, most: int | None = None) -> None:
        self._workspace, self._names, self._most = workspace, names, most
        self._mask = workspace.learner.shape.cells - 1

    def examples_of(self, block: Block) -> Iterator[NamedExample]:
        """Yield the examples of the events of a block, before it is learnt."""
        layout = self._workspace.layout
        layout.update(block)
        block = layout.with_grams(block)
        task = self._workspace.learner.task
        for first, end in pairwise(block.event_start.tolist()):
            if task.shape == Shape.CB:
                actions = [
                    self._number_groups(self._line_groups(block, first), action)
                    for action in range(task.n_actions)
                ]
                used = self._used_interactions(actions)
                for groups in actions:
                    yield NamedExample(first, first, *self._list_features(groups, {}, {}, used))
                continue
            begin = first + bool(block.shared[first])
            shared = self._line_groups(block, first, constant=False) if begin > first else {}
            actions = [self._line_groups(block, line) for line in range(begin, end)]
            for groups in actions:
                for key, features in shared.items():
                    groups[key] = groups[key] + features if key in groups else features
            cached: dict[int, list[Listed]] = {}
            used = self._used_interactions(actions)
            for line, groups in enumerate(actions, begin):
                tagged = first if self._workspace.semantics.reports_as_vw and line == begin else line
                yield NamedExample(line, tagged, *self._list_features(groups, shared, cached, used))

    def _used_interactions(self, actions: Sequence[_Groups]) -> NDArray[np.bool_]:
        """Return which interactions an event with these actions uses; a wide event omits the widest."""
        interactions, limit = self._workspace.layout.interactions, self._workspace.layout.max_crossed
        factors = [keys.tolist() for keys in np.split(interactions.factor, interactions.start[1:-1])]
        sizes = np.zeros(len(interactions.start) - 1)
        for product, keys in enumerate(factors[: len(sizes)]):
            runs = (
                [[key] for key in keys] if interactions.permutations else [[*run] for _, run in groupby(keys)]
            )
            for groups in actions:
                counts = [(len(groups.get(run[0], ())), len(run)) for run in runs]
                size = prod(comb(n + times - 1, times) if n else 0 for n, times in counts)
                sizes[product] += min(size, 2**62)
        if not self._workspace.semantics.leaves_out_widest or sizes.sum() <= limit:
            return np.ones(len(sizes), bool)
        return kept_interactions(interactions, sizes, limit)

    def _line_groups(self, block: Block, line: int, *, constant: bool = True) -> _Groups:
        """Return the groups of the features of a line, with the constant's if there is one."""
        layout, groups = self._workspace.layout.kernel_layout, _Groups()
        for span in range(block.line_start[line], block.line_start[line + 1]):
            number = int(block.span_namespace[span])
            key = int(layout.key[number])
            if layout.ignore[key]:
                continue
            name, seed = block.namespaces.names[number], block.namespaces.hashes[number]
            span_slice = slice(block.span_start[span], block.span_start[span + 1])
            groups.setdefault(key, []).extend(
                _Feature(self._names.name_of(name, hash_, seed=seed), hash_, value)
                for hash_, value in zip(block.hash[span_slice].tolist(), block.value[span_slice], strict=True)
            )
        if constant and layout.constant_key >= 0:
            groups.setdefault(layout.constant_key, []).append(_Feature("Constant", int(CONSTANT_HASH), _ONE))
        return groups

    def _number_groups(self, groups: _Groups, action: int) -> _Groups:
        """Return the groups of an action of ``--cb N``, with its number in the low bits of each hash."""
        mask = int(self._workspace.learner.task.numbering.kept)
        return {
            key: [feature._replace(hash=(feature.hash & mask) + action) for feature in features]
            for key, features in groups.items()
        }

    def _list_features(
        self, groups: _Groups, shared: _Groups, cached: dict[int, list[Listed]], is_used: NDArray[np.bool_]
    ) -> tuple[list[Listed], list[WideProduct]]:
        """Return the features of groups and of the products in use, and the products too wide to list.

        Products of shared groups alone are computed once per event, and stored in `cached`.
        """
        layout, wide = self._workspace.layout, list[WideProduct]()
        linear, interactions = layout.kernel_layout, layout.interactions
        listed = [
            Listed(
                feature.name or "", feature.hash & self._mask, feature.value, 0, not linear.ignore_linear[key]
            )
            for key, features in groups.items()
            for feature in features
        ]
        start, factor = interactions.start.tolist(), interactions.factor.tolist()
        with np.errstate(all="ignore"):  # Kernels cross values that overflow, too.
            for product in range(len(start) - 1):
                keys = factor[start[product] : start[product + 1]]
                if not is_used[product] or not all(key in groups for key in keys):
                    continue
                if self._most is not None and prod(len(groups[key]) for key in keys) > self._most:
                    wide.append(self._wide([groups[key] for key in keys], keys, product))
                    continue
                if not all(groups[key] is shared.get(key) for key in keys):
                    listed += self._combinations([groups[key] for key in keys], keys, product)
                    continue
                if product not in cached:
                    cached[product] = list(self._combinations([groups[key] for key in keys], keys, product))
                listed += cached[product]
        return listed, wide

    def _wide(self, factors: list[list[_Feature]], keys: Sequence[int], product: int) -> WideProduct:
        permutes = self._workspace.layout.interactions.permutations
        factors_ = [
            Factor(
                [feature.name for feature in features],
                np.array([feature.hash for feature in features], np.uint64),
                np.array([feature.value for feature in features], np.float32),
                again=k > 0 and not permutes and keys[k] == keys[k - 1],
            )
            for k, features in enumerate(factors)
        ]
        return wide_product(factors_, self._mask, product + 1)

    def _combinations(
        self, factors: list[list[_Feature]], keys: Sequence[int], product: int
    ) -> Iterator[Listed]:
        """Yield each choice of one feature per factor; of equal factors, each combination once."""
        permutes = self._workspace.layout.interactions.permutations
        chosen = [_Partial(None, 0, _ONE, 0)]
        for k, features in enumerate(factors):
            repeats, last = k > 0 and not permutes and keys[k] == keys[k - 1], k == len(factors) - 1
            chosen = [
                _Partial(
                    _product_name(partial.name, feature.name),
                    partial.state ^ feature.hash if last else _FNV * (partial.state ^ feature.hash) & _WRAP,
                    partial.value * feature.value,
                    index,
                )
                for partial in chosen
                for index, feature in enumerate(features)
                if not repeats or index >= partial.place
            ]
        for name, state, value, _ in chosen:
            yield Listed(name or "", state & self._mask, value, product + 1, used=True)


def _product_name(one: str | None, other: str | None) -> str | None:
    """Return the name of a product of two features; unknown names are left out."""
    return f"{one}*{other}" if one is not None and other is not None else other if one is None else one


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
            return "".join(self._example(block, example, low, high) for example in listed)
        low, high = self._range(None)
        printed = [self._example(block, example, low, high) for example in listed]
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
                weight = _apply_l1(raw, gravity)[()]
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
        parts.sort(key=lambda part: part[0])
        tag = block.tag_of(example.tagged)
        first = spell_number(float(prediction)) + (f" {tag}" if tag else "")
        left_out = f"\tand {rest:,} more of the widest interactions" if rest else ""
        return f"{first}\n{''.join(text for _, text in parts)}{left_out}\n"

    def _wide(
        self, wide: WideProduct, gravity: np.float32, contraction: np.float32, lane: int
    ) -> tuple[np.float32, list[tuple[float, str]]]:
        """Return the contribution of an interaction's products to a prediction, and the largest products."""
        raw = self._model.weights[wide.cell, lane]
        weight = _apply_l1(raw, gravity)
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


def _apply_l1(weight: Any, gravity: np.float32) -> Any:
    """Return weights with the L1 penalty applied."""
    return np.where(np.abs(weight) > gravity, weight - np.sign(weight) * gravity, _ZERO)
