"""Named examples: the features of an event as the learner uses them, one by one and with their names.

This is slow Python for audits. The learning loop lists features in kernels, without names.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from math import comb, prod
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from onlineauto.engine.loop.wide_events import kept_interactions
from onlineauto.engine.records.task import Shape
from onlineauto.features.records import CONSTANT_HASH
from onlineauto.workspace.inspection.wide_products import Factor, WideProduct, wide_product

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.workspace.workspace import Workspace

_FNV = 16777619
_WRAP = 2**64 - 1
_ONE = np.float32(1)


class Names(Protocol):
    """Finds the name of a feature by its namespace and its hash."""

    def name_of(self, namespace: bytes, hash_: int, *, seed: int) -> str | None:
        """Return the name of a feature of a namespace; `seed` is the hash of the namespace's name."""


class Nameless:
    """Names that are all unknown: VW stores none for the second pass."""

    def name_of(self, namespace: bytes, hash_: int, *, seed: int) -> str | None:  # noqa: ARG002 - as `Names` has it
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
        task = self._workspace.learner.task
        for first, end in pairwise(block.event_start.tolist()):
            if task.shape == Shape.CB:
                actions = [
                    self._number_groups(self._line_groups(block, first), each)
                    for each in range(task.n_actions)
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
                [each.name for each in features],
                np.array([each.hash for each in features], np.uint64),
                np.array([each.value for each in features], np.float32),
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
