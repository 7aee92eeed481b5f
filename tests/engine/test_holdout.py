"""Holdout: the events that are held out, and the end of passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.loop.holdout import Holdout
from onlineauto.engine.options.registry import RunOptions
from onlineauto.features.block import Block
from onlineauto.workspace.workspace import Workspace
from tests.naive.blocks import Line, make_block

LINE = Line(spans=((b"a", ((1, 1.0),)),), label=1.0)


def lines(n: int, *, first_line: int = 1) -> Block:
    return make_block([(LINE,)] * n, first_line=first_line)


def held_out(losses: list[float], *, labelled: bool = True, weight: float = 1.0) -> Outcomes:
    """Outcomes of held-out events."""
    n = len(losses)
    made = Workspace().predict_block(lines(n))
    made.rows["loss"], made.rows["labelled"] = losses, labelled
    return replace(made, weight=np.full(n, weight, np.float32), holdout=np.ones(n, bool))


def end_of_pass(holdout: Holdout, loss: float) -> bool:
    holdout.add(held_out([loss]))
    return holdout.end_pass()


@pytest.mark.parametrize(
    ("options", "active"),
    [
        (RunOptions(), False),
        (RunOptions(passes=2), True),
        (RunOptions(passes=2, holdout_off=True), False),
        (RunOptions(holdout_after=5), True),
        (RunOptions(holdout_after=5, holdout_off=True), False),
    ],
)
def test_holdout_is_active_with_passes_or_holdout_after(options: RunOptions, active: bool) -> None:
    holdout = Holdout(options)
    assert holdout.active == active
    assert holdout.mark(lines(30), by_line=False).any() == active


@given(st.lists(st.integers(0, 7), max_size=6), st.integers(1, 5))
def test_every_nth_event_wherever_blocks_end(sizes: list[int], period: int) -> None:
    holdout = Holdout(RunOptions(passes=2, holdout_period=period))
    marked = [bool(each) for size in sizes for each in holdout.mark(lines(size), by_line=False)]
    assert marked == [number % period == 0 for number in range(1, sum(sizes) + 1)]


@given(st.lists(st.integers(0, 7), max_size=6), st.integers(1, 12))
def test_events_after_holdout_after_are_held_out(sizes: list[int], after: int) -> None:
    holdout = Holdout(RunOptions(holdout_after=after))
    marked = [bool(each) for size in sizes for each in holdout.mark(lines(size), by_line=False)]
    assert marked == [number > after for number in range(1, sum(sizes) + 1)]


def test_period_counts_lines_if_by_line() -> None:
    holdout = Holdout(RunOptions(passes=2, holdout_period=3))
    assert holdout.mark(lines(4, first_line=8), by_line=True).tolist() == [False, True, False, False]
    assert holdout.mark(lines(2, first_line=12), by_line=True).tolist() == [True, False]


def test_each_pass_counts_from_the_start() -> None:
    holdout = Holdout(RunOptions(passes=2, holdout_period=3))
    first = holdout.mark(lines(4), by_line=False).tolist()
    holdout.end_pass()
    assert holdout.mark(lines(4), by_line=False).tolist() == first


def test_passes_stop_after_early_terminate_passes_without_improvement() -> None:
    holdout = Holdout(RunOptions(passes=9, early_terminate=2))
    assert [end_of_pass(holdout, loss) for loss in (3, 2, 2, 1, 1)] == [False] * 5
    assert end_of_pass(holdout, 1.5)


def test_average_is_weighted_and_only_of_held_out_labelled_events() -> None:
    holdout = Holdout(RunOptions(passes=9, early_terminate=1))
    assert not end_of_pass(holdout, 2.0)
    holdout.add(held_out([100.0], labelled=False))
    holdout.add(replace(held_out([100.0]), holdout=np.zeros(1, bool)))
    holdout.add(held_out([2.0, 4.0], weight=2.0))
    assert not holdout.end_pass()  # 6 over a weight of 4


def test_pass_without_held_out_events_is_no_improvement() -> None:
    holdout = Holdout(RunOptions(passes=9, early_terminate=1))
    assert not end_of_pass(holdout, 2.0)
    assert holdout.end_pass()


def test_inactive_holdout_never_stops_passes() -> None:
    holdout = Holdout(RunOptions(passes=9, holdout_off=True, early_terminate=1))
    assert [end_of_pass(holdout, loss) for loss in (1, 2, 3)] == [False] * 3


def test_held_out_lines_are_predicted_and_not_learnt() -> None:
    workspace = Workspace(bit_precision=9)
    outcomes = workspace.learn_block(lines(3), holdout=np.array([False, True, True]))
    after_one = workspace.weights.copy()
    assert outcomes.prediction[1] == outcomes.prediction[2]
    other = Workspace(bit_precision=9)
    other.learn_block(lines(1))
    np.testing.assert_array_equal(after_one, other.weights)


def test_passes_hold_out_and_stop_early() -> None:
    text = b"".join(b"%d |a x\n" % (number % 10 == 0) for number in range(1, 41))
    workspace = Workspace(passes=50, bit_precision=9)
    blocks = [outcomes for _, outcomes in workspace.stream(text)]
    assert workspace.learner.current_pass == 4  # the first one, and three that are no better
    assert len(blocks) == workspace.learner.current_pass
    assert all(np.flatnonzero(outcomes.holdout).tolist() == [9, 19, 29, 39] for outcomes in blocks)
