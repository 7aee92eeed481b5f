"""Lines to lists of features: kernels compared bit for bit with dictionaries and lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from onlineauto.engine.event.event_kernels import open_event
from onlineauto.engine.event.example_kernels import list_action
from onlineauto.engine.loop.buffers import make_buffers
from onlineauto.engine.records.loop import Actions, Buffers, Counted, LoopRun
from onlineauto.features.block import Block
from onlineauto.features.group_kernels import forget
from onlineauto.features.records import make_stream
from onlineauto.jit import kernel
from onlineauto.workspace.workspace import Workspace
from tests.naive.bandit import make_twin
from tests.naive.blocks import Event, Line, make_block
from tests.naive.features import Example, Featurizer
from tests.naive.interactions import Feature
from tests.property.strategies import bandit_events

pytestmark = pytest.mark.lane("sampled")

F = np.float32
BITS = 12

FLAGS: list[dict[str, Any]] = [
    {},
    {"noconstant": True},
    {"quadratic": ["ab"]},
    {"quadratic": ["ba", "aa", "cc"]},
    {"quadratic": ["::"]},
    {"cubic": ["aaa", "aab", "abc"]},
    {"cubic": [":::"], "permutations": True},
    {"cubic": ["aaa", "aba"], "leave_duplicate_interactions": True},
    {"interactions": ["aaaa", "aabb", "abca", "aabbc"]},
    {"interactions": ["ab:", "a:"], "ignore": ["b"]},
    {"quadratic": ["::"], "keep": ["a", "b"]},
    {"quadratic": ["ab", "::"], "ignore_linear": ["a", "c"]},
    {"quadratic": [r"a\x20", r"\x200"], "ignore": [r"\x20"]},
    {"quadratic": ["::"], "permutations": True, "leave_duplicate_interactions": True},
]
FULL_NAMES: list[dict[str, Any]] = [
    {"experimental_full_name_interactions": ["a|ab"]},
    {"experimental_full_name_interactions": ["ab|ab", "ab|az|a", "a|a|b"]},
    {"experimental_full_name_interactions": ["ab|ab|ab", "az|c"], "permutations": True},
    {"experimental_full_name_interactions": [":|:"], "quadratic": ["ab"]},
    {"experimental_full_name_interactions": ["a|b", "ab|c"], "quadratic": ["bc"], "ignore": ["c"]},
]


@dataclass(frozen=True)
class Listed:
    """The features of an action that kernels list."""

    cell: NDArray[np.uint32]
    value: NDArray[np.float32]
    n_own: int
    n_crossed: int
    squares: float

    def features(self) -> list[tuple[int, int]]:
        return [(int(c), int(x.view(np.uint32))) for c, x in zip(self.cell, self.value, strict=True)]


def as_bits(features: list[Feature]) -> list[tuple[int, int]]:
    return [(cell, int(F(x).view(np.uint32))) for cell, x in features]


@kernel
def _list(run: LoopRun, actions: Actions, action: int, buffers: Buffers) -> tuple[int, int, Counted]:
    """List an action in the buffers; return the number of runs, the end of the first one, and counts."""
    example, counted = list_action(run, actions, action, False, np.float32(0), buffers)
    return example.n_runs, example.runs[0].end, counted


def listed_by_kernels(flags: dict[str, Any], block: Block, *, exact: bool, **kind: Any) -> list[Listed]:
    """Return the features of every action of the first event, listed by the engine's kernels."""
    workspace = Workspace(**flags, **kind, vw_exact=exact, bit_precision=BITS, sgd=True)
    layout = workspace.layout
    layout.update(block)
    run = LoopRun(
        task=workspace.learner.task,
        rule=workspace.learner.rule,
        layout=layout.kernel_layout,
        interactions=layout.interactions,
        again=layout.again,
        scratch=layout.scratch(spans=len(block.spans)),
        stream=make_stream(block, np.zeros(len(block), bool)),
        model=workspace.learner.model,
        live=workspace.searching.live_configs.arrays,
        screen=workspace.searching.screening.screen,
    )
    buffers = make_buffers(actions=0, slots=1)
    actions, _ = open_event(run, 0)
    listed = []
    for action in range(actions.n):
        n_runs, n, counted = _list(run, actions, action, buffers)
        assert n_runs == 1
        cell, value = buffers.cell[:n].copy(), buffers.value[:n].copy()
        listed.append(Listed(cell, value, counted.own, counted.crossed, buffers.squares[0]))
    forget(run.scratch, 0, actions.n_shared)
    assert (run.scratch.places["group"] == -1).all()
    assert not (run.scratch.places["start"].any())
    assert not (run.scratch.places["end"].any())
    return listed


def twin_of(flags: dict[str, Any], event: Event, *, exact: bool) -> Featurizer:
    featurizer = make_twin({**flags, "vw_exact": exact, "bit_precision": BITS}).featurizer
    featurizer.see(event)
    return featurizer


def check(listed: list[Listed], expected: list[Example]) -> None:
    assert len(listed) == len(expected)
    for got, wanted in zip(listed, expected, strict=True):
        assert got.features() == as_bits(wanted.features)
        assert got.n_crossed == wanted.n_crossed
        assert got.n_own == wanted.n_own
        assert F(got.squares).view(np.uint32) == wanted.squares.view(np.uint32)


def named(flags: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in flags.items()) or "default"


CASES = [
    *(pytest.param(flags, True, id=f"exact {named(flags)}") for flags in FLAGS),
    *(pytest.param(flags, False, id=f"native {named(flags)}") for flags in FLAGS + FULL_NAMES),
]


@pytest.mark.parametrize(("flags", "exact"), CASES)
@settings(max_examples=25)
@given(events=bandit_events(max_size=1))
def test_actions_of_an_event(flags: dict[str, Any], exact: bool, events: list[Event]) -> None:
    (event,) = events
    twin = twin_of(flags, event, exact=exact)
    shared = event[0] if event[0].shared else None
    expected = [twin.action(line, shared) for line in event if not line.shared]
    check(listed_by_kernels(flags, make_block(events), exact=exact, cb_adf=True), expected)


@pytest.mark.parametrize(("flags", "exact"), CASES)
@settings(max_examples=10)
@given(events=bandit_events(max_size=1))
def test_numbered_actions(flags: dict[str, Any], exact: bool, events: list[Event]) -> None:
    event = (Line(spans=events[0][0].spans),)
    twin = twin_of(flags, event, exact=exact)
    for n_actions in (1, 3, 4):
        expected = [twin.numbered(event[0], number, n_actions) for number in range(n_actions)]
        check(listed_by_kernels(flags, make_block([event]), exact=exact, cb=n_actions), expected)


@settings(max_examples=50)
@given(events=bandit_events(max_size=1))
def test_sum_of_squares_is_that_of_the_listed_values(events: list[Event]) -> None:
    flags = {"quadratic": ["aa", "ab"], "cubic": ["aaa", "abb"], "interactions": ["aabb"]}
    for listed in listed_by_kernels(flags, make_block(events), exact=False, cb_adf=True):
        expected = float(np.sum(listed.value.astype(float) ** 2))
        assert listed.squares == pytest.approx(expected, rel=1e-4)


def lone(flags: dict[str, Any], *lines: Line, exact: bool = True) -> list[tuple[int, float]]:
    """Return cells and values of the first action."""
    listed = listed_by_kernels(flags, make_block([lines]), exact=exact, cb_adf=True)[0]
    return list(zip(listed.cell.tolist(), listed.value.tolist(), strict=True))


CONSTANT = (11650396 & 2**BITS - 1, 1.0)


def test_own_features_then_the_constant_then_shared_ones() -> None:
    shared = Line(spans=((b"s", ((1, 2.0),)), (b"a", ((2, 3.0),))), shared=True)
    own = Line(spans=((b"b", ((3, 5.0),)), (b"a", ((4, 7.0),))))
    assert lone({}, shared, own) == [(3, 5.0), (4, 7.0), (2, 3.0), CONSTANT, (1, 2.0)]


def test_names_with_one_first_byte_are_one_group_only_in_exact_mode() -> None:
    line = Line(spans=((b"ab", ((1, 2.0),)), (b"c", ((2, 1.0),)), (b"az", ((3, 5.0),))))
    flags = {"noconstant": True}
    assert lone(flags, line) == [(1, 2.0), (3, 5.0), (2, 1.0)]
    assert lone(flags, line, exact=False) == [(1, 2.0), (2, 1.0), (3, 5.0)]


def test_a_pair_with_itself_has_each_combination_once() -> None:
    line = Line(spans=((b"a", ((1, 2.0), (2, 3.0))),))
    flags = {"noconstant": True, "ignore_linear": ["a"], "quadratic": ["aa"]}
    assert [x for _, x in lone(flags, line)] == [4.0, 6.0, 9.0]
    assert [x for _, x in lone({**flags, "permutations": True}, line)] == [4.0, 6.0, 6.0, 9.0]


def test_cells_of_products() -> None:
    line = Line(spans=((b"a", ((5, 1.0),)), (b"b", ((6, 1.0),)), (b"c", ((7, 1.0),))))
    flags = {"noconstant": True, "ignore_linear": ["abc"], "quadratic": ["ab"], "cubic": ["abc"]}
    pair, triple = 16777619 * 5 ^ 6, 16777619 * (16777619 * 5 ^ 6) ^ 7
    assert [cell for cell, _ in lone(flags, line)] == [pair & 4095, triple & 4095]


def test_ignored_namespaces_have_no_products_and_ignored_linear_ones_have() -> None:
    line = Line(spans=((b"a", ((1, 2.0),)), (b"b", ((2, 3.0),))))
    flags = {"noconstant": True, "quadratic": ["ab"]}
    assert lone({**flags, "ignore": ["a"]}, line) == [(2, 3.0)]
    assert lone({**flags, "keep": ["b"]}, line) == [(2, 3.0)]
    assert [x for _, x in lone({**flags, "ignore_linear": ["a"]}, line)] == [3.0, 6.0]


def test_namespaces_that_are_not_ascii_stay_out_of_wildcards_in_exact_mode_only() -> None:
    line = Line(spans=(("é".encode(), ((1, 2.0),)), (b"b", ((2, 3.0),))))
    flags = {"noconstant": True, "quadratic": ["::"]}
    assert len(lone(flags, line)) == 3
    assert len(lone(flags, line, exact=False)) == 5
