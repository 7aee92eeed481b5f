"""The footer and the best constant against what VW 9.11.9 printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from onlineauto.engine.report.progress import ProgressTable, best_constant, summary
from onlineauto.learners.options import LossOptions
from onlineauto.workspace.options import REGISTRY
from tests.engine import simple
from tests.engine.test_progress import PASSES, SEVEN

if TYPE_CHECKING:
    from onlineauto.engine.event.outcomes import Outcomes

TWO = simple(loss=[1, 2.25, 0.25], label=[1, -1, 1])
"""Three events, two labels."""


def lines_of(flags: str, *events: Outcomes) -> list[str]:
    configuration = REGISTRY.parse(flags)
    progress = ProgressTable(configuration, kind="simple")
    for block in events:
        progress.update(block)
    return list(summary(progress, configuration))


def test_more_than_two_labels() -> None:
    assert lines_of("", SEVEN) == [
        "",
        "finished run",
        "number of examples = 7",
        "weighted example sum = 8.000000",
        "weighted label sum = 2.250000",
        "average loss = 1.651548",
        "best constant = 0.321429",
        "total feature number = 16",
    ]


def test_two_labels_have_a_best_loss() -> None:
    assert lines_of("", TWO) == [
        "",
        "finished run",
        "number of examples = 3",
        "weighted example sum = 3.000000",
        "weighted label sum = 1.000000",
        "average loss = 1.166667",
        "best constant = 0.333333",
        "best constant's loss = 0.888889",
        "total feature number = 3",
    ]


def test_passes_and_holdout() -> None:
    configuration = REGISTRY.parse("--passes 2 --holdout_period 2")
    progress = ProgressTable(configuration, kind="simple")
    for block in PASSES:
        progress.update(block)
        progress.end_pass()
    assert list(summary(progress, configuration)) == [
        "",
        "finished run",
        "number of examples per pass = 5",
        "passes used = 2",
        "weighted example sum = 10.000000",
        "weighted label sum = 9.000000",
        "average loss = 1.974161 h",
        "best constant = 1.125000",
        "total feature number = 22",
    ]


@pytest.mark.parametrize("passes", [0, 1])
def test_one_pass_is_not_counted(passes: int) -> None:
    configuration = REGISTRY.parse("--holdout_after 7")
    progress = ProgressTable(configuration, kind="simple")
    progress.update(SEVEN)
    for _ in range(passes):
        progress.end_pass()
    lines = list(summary(progress, configuration))
    assert "number of examples = 7" in lines
    assert "average loss = undefined (no holdout)" in lines


@pytest.mark.parametrize(
    ("flags", "value", "loss"),
    [
        ("", 0.333333, 0.888889),
        ("--loss_function classic", 0.333333, 0.888889),
        ("--loss_function logistic", 0.693147, 0.636514),
        ("--loss_function logistic --logistic_min -3 --logistic_max 3", 0.693147, 0.713531),
        ("--loss_function hinge", 1, 0.666667),
        ("--loss_function quantile", 1, 0.333333),
        ("--loss_function quantile --quantile_tau 0.7", -1, 0.933333),
        ("-t", 0.333333, 0.777778),
        ("--max_prediction 0.1", 0.333333, 0.834444),
        ("--min_prediction 0.5 --max_prediction 2", 0.333333, 0.861111),
    ],
)
def test_best_constants(flags: str, value: float, loss: float) -> None:
    configuration = REGISTRY.parse(flags)
    progress = ProgressTable(configuration, kind="simple")
    progress.update(TWO)
    best = best_constant(progress, configuration[LossOptions])
    assert best is not None
    assert best == pytest.approx((value, loss), abs=1e-6)


@pytest.mark.parametrize("flags", ["--loss_function expectile --expectile_q 0.3", "--loss_function poisson"])
def test_losses_without_a_best_constant(flags: str) -> None:
    assert not [line for line in lines_of(flags, TWO) if line.startswith("best")]


@pytest.mark.parametrize("loss", ["logistic", "hinge", "quantile"])
def test_three_labels_have_one_for_squared_loss_only(loss: str) -> None:
    assert not [line for line in lines_of(f"--loss_function {loss}", SEVEN) if line.startswith("best")]


def test_one_label_alone_counts_as_two() -> None:
    lines = lines_of("", simple(loss=[9, 7], label=[3, 3]))
    assert "best constant = 3.000000" in lines
    assert "best constant's loss = 0.000000" in lines


@pytest.mark.parametrize("label", [0.0, None])
def test_nothing_but_zeros_has_none(label: float | None) -> None:
    lines = lines_of("", simple(loss=[0, 0], label=[label, label]))
    assert not [line for line in lines if line.startswith("best")]


@pytest.mark.parametrize(
    ("flags", "label", "value", "loss"),
    [
        ("--loss_function logistic", 1, 1, 0.313262),
        ("--loss_function logistic", -1, -1, 0.313262),
        ("--loss_function hinge", 1, 1, 0),
        ("--loss_function quantile", -1, -1, 0),
    ],
)
def test_one_label_and_other_losses(flags: str, label: float, value: float, loss: float) -> None:
    configuration = REGISTRY.parse(flags)
    progress = ProgressTable(configuration, kind="simple")
    progress.update(simple(loss=[0, 0], label=[label, label]))
    best = best_constant(progress, configuration[LossOptions])
    assert best == pytest.approx((value, loss), abs=1e-6)
