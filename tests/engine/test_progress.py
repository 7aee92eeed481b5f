"""Progress tables and footers equal those of VW 9.11.9, and counters that are updated event by event."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.report.progress import (
    FLOAT_MAX,
    ProgressTable,
    best_constant,
    format_fixed,
    format_row,
    format_trimmed,
    summary,
)
from onlineauto.learners.options import LossOptions
from onlineauto.workspace.options import REGISTRY
from tests.engine import bandit, part, simple

# The predictions and losses of VW 9.11.9 for:
# 1 |a x:0.5 y / -1 2 'tagged |a x z / 0.5 1 0.25 t2|b y:3 / |a x / 2 |a q / -0.25 |a q / 1 |b x
SEVEN = simple(
    loss=[1.0, 4.988882542, 0.1020118, 0.0, 4.183646202, 0.42823872, 0.85805738],
    label=[1, -1, 0.5, None, 2, -0.25, 1],
    weight=[1, 2, 1, 1, 1, 1, 1],
    prediction=[0, 0.579379976, 0.180607155, -0.132952049, -0.045396328, 0.404399514, 0.07368613],
    features=[3, 3, 2, 2, 2, 2, 2],
)

# The same file with --passes 2 --holdout_period 2.
PASSES = [
    simple(
        loss=[1.0, 4.988882542, 0.003234575, 0.0, 3.253788471, 0.933599114, 0.314993382],
        prediction=[0.0, 0.579379976, 0.443126678, 0.582427263, 0.196173936, 0.71622932, 0.438757271],
        label=[1, -1, 0.5, None, 2, -0.25, 1],
        weight=[1, 2, 1, 1, 1, 1, 1],
        holdout=[1, 3, 5],
        features=[3, 3, 2, 2, 2, 2, 2],
    ),
    simple(
        loss=[0.012866748, 7.594304562, 0.099723771, 0.0, 1.533977032, 1.735678434, 0.019176532],
        prediction=[
            0.886568308,
            0.948628306,
            0.815790713,
            0.920493841,
            0.761461794,
            1.067451477,
            0.861520648,
        ],
        label=[1, -1, 0.5, None, 2, -0.25, 1],
        weight=[1, 2, 1, 1, 1, 1, 1],
        holdout=[1, 3, 5],
        features=[3, 3, 2, 2, 2, 2, 2],
    ),
]


def rows_of(flags: str, *blocks: Outcomes, kind: str = "simple") -> list[str]:
    progress = ProgressTable(REGISTRY.parse(flags), kind=kind)
    rows: list[str] = []
    for block in blocks:
        progress.update(block, emit=rows.append)
    return rows


def test_rows_at_doubling_weights() -> None:
    assert rows_of("", SEVEN) == [
        "1.000000 1.000000            1            1.0         1.0000         0.0000        3",
        "1.996294 2.494441            2            3.0        -1.0000         0.5794        3",
        "2.054908 2.142829            5            6.0         2.0000        -0.0454        2",
    ]


def test_rows_every_so_much_weight() -> None:
    assert rows_of("-P 2", SEVEN) == [
        "1.996294 1.996294            2            3.0        -1.0000         0.5794        3",
        "1.522724 0.102012            4            5.0        unknown        -0.1330        2",
        "1.783797 2.305942            6            7.0        -0.2500         0.4044        2",
    ]


@pytest.mark.parametrize("cut", range(8))
def test_rows_do_not_depend_on_blocks(cut: int) -> None:
    for flags in ("", "-P 1", "-P 1.3"):
        assert rows_of(flags, part(SEVEN, 0, cut), part(SEVEN, cut, 7)) == rows_of(flags, SEVEN)


def test_a_row_may_be_due_after_every_event_of_many_blocks() -> None:
    events = simple(loss=[0.25] * 300, label=[1] * 300)
    rows = rows_of("-P 1", events, events)
    assert [int(row[18:30]) for row in rows] == list(range(1, 601))


def test_rows_with_large_intervals_are_printed() -> None:
    rows = rows_of("-P 5000", simple(loss=[0.25] * 12_345, label=[1] * 12_345))
    assert [int(row[18:30]) for row in rows] == [5000, 10000]


def test_holdout() -> None:
    progress = ProgressTable(REGISTRY.parse("--passes 2 --holdout_period 2 -P 1"), kind="simple")
    rows: list[str] = []
    progress.update(PASSES[0], emit=rows.append)
    first = progress.end_pass()
    progress.update(PASSES[1], emit=rows.append)
    second = progress.end_pass()
    assert rows == [
        "1.000000 1.000000            1            1.0         1.0000         0.0000        3",
        "0.501617 0.003235            2            2.0         0.5000         0.4431        2",
        "0.501617 n.a.                3            3.0        unknown         0.5824        2",
        "1.419008 3.253788            4            4.0         2.0000         0.1962        2",
        "1.143004 0.314993            5            5.0         1.0000         0.4388        2",
        "1.974161 1.974161            6            6.0         1.0000         0.8866        3 h",
        "2.703357 3.797152            7            7.0         0.5000         0.8158        2 h",
        "2.703357 unknown             8            8.0        unknown         0.9205        2 h",
        "2.703357 unknown             9            9.0         2.0000         0.7615        2 h",
        "2.542077 1.735678           10           10.0         1.0000         0.8615        2 h",
    ]
    assert (first, second) == pytest.approx((1.974161, 3.109994), abs=1e-6)
    assert (progress.best_loss, progress.best_pass, progress.current_pass) == (first, 1, 2)
    assert (progress.example_number, progress.total_features) == (10, 22)
    assert progress.weighted_labels == 9


def test_the_loss_of_a_pass_is_a_float32() -> None:
    progress = ProgressTable(REGISTRY.parse("--passes 2"), kind="simple")
    progress.update(simple(loss=[0.1, 0.2, 0.4], label=[1, 1, 1], holdout=[0, 1, 2]))
    loss = progress.end_pass()
    assert loss == float(np.float32(loss))


def test_a_pass_without_holdout_is_the_best_until_one_has_some() -> None:
    progress = ProgressTable(REGISTRY.parse("--passes 3"), kind="simple")
    progress.update(simple(loss=[1], label=[1]))
    assert progress.end_pass() == FLOAT_MAX / 2 == progress.best_loss
    progress.update(simple(loss=[3], label=[1], holdout=[0]))
    assert progress.end_pass() == 3 == progress.best_loss
    assert progress.best_pass == 2


@pytest.mark.parametrize("flags", ["", "--passes 3 --holdout_off", "--holdout_after 5 --holdout_off"])
def test_rows_have_no_h_without_holdout(flags: str) -> None:
    progress = ProgressTable(REGISTRY.parse(f"{flags} -P 1"), kind="simple")
    progress.end_pass()
    rows: list[str] = []
    progress.update(SEVEN, emit=rows.append)
    assert not progress.holdout
    assert not [row for row in rows if row.endswith("h")]
    assert progress.best_pass == 0


def test_bandit_rows() -> None:
    events = bandit(
        loss=[-10 / 3, 0.05, 0, 1, 1000, 33.44173],
        known=[(0, -1, 0.1), (1, 0.5, 0.25), None, (0, 1, 1), (0, 100, 0.05), (1, 12.34, 0.123)],
        scores=[
            [(0, 1 / 3), (1, 1 / 3), (2, 1 / 3)],
            [(0, 0.97499996), (1, 0.025)],
            [],
            [(3, 1.0)],
            [(1234, 1234567.125)],
            [(2, -0.001)],
        ],
        shown_features=[12, 6, 0, 3, 4, 123456789],
    )
    assert rows_of("-P 1", events, kind="cb_explore_adf") == [
        "-3.33333 -3.33333            1            1.0       0:-1:0.1         0:0.33       12",
        "-1.64166 0.050000            2            2.0     1:0.5:0.25         0:0.97        6",
        "-1.64166 n.a.                3            3.0        unknown      no action        0",
        "-0.76111 1.000000            4            4.0          0:1:1            3:1        3",
        "249.4291 1000.000            5            5.0   0:1e+02:0.05 1234:123456...        4",
        "206.2316 33.44173            6            6.0      1:12:0.12           2:-0 12345678",
    ]


def test_unlabelled_events_have_no_loss_to_average() -> None:
    rows = rows_of("", simple(loss=[0, 0], label=[None, None]))
    assert rows == [
        "n.a.     n.a.                1            1.0        unknown         0.0000        1",
        "n.a.     n.a.                2            2.0        unknown         0.0000        1",
    ]


def test_counters_do_not_depend_on_printing_rows() -> None:
    silent, shown = (ProgressTable(REGISTRY.parse(""), kind="simple") for _ in range(2))
    silent.update(SEVEN)
    shown.update(SEVEN, emit=lambda _: None)
    for name in ("example_number", "total_features", "weighted_examples", "weighted_labels", "sum_loss"):
        assert getattr(silent, name) == getattr(shown, name), name


def test_sums_are_taken_in_order() -> None:
    random = np.random.default_rng(3)
    losses = (random.random(5000) * 10.0 ** random.integers(-6, 7, 5000)).astype(np.float32)
    expected = 0.0
    for loss in losses.tolist():
        expected += loss
    assert expected != math.fsum(losses.tolist())
    progress = ProgressTable(REGISTRY.parse(""), kind="simple")
    progress.update(simple(loss=losses.tolist(), label=[1] * 5000))
    assert progress.sum_loss == expected


def test_labels_seen() -> None:
    progress = ProgressTable(REGISTRY.parse(""), kind="simple")
    progress.update(simple(loss=[0, 0], label=[None, 3]))
    assert (progress.first_label, progress.second_label, progress.more_labels) == (3, FLOAT_MAX, False)
    progress.update(simple(loss=[0] * 4, label=[3, -1, 3, -1], holdout=[1]))
    assert (progress.first_label, progress.second_label, progress.more_labels) == (3, -1, False)
    progress.update(simple(loss=[0, 0], label=[3, 0]))
    assert progress.more_labels
    assert (progress.min_label, progress.max_label) == (-1, 3)


@pytest.mark.parametrize(
    ("flags", "bounds"),
    [
        ("", (-1, 2)),
        ("-t", (0, 0)),
        ("--min_prediction 0.5", (0.5, 0)),
        ("--max_prediction 1", (0, 1)),
        ("--loss_function logistic", (-50, 50)),
        ("--loss_function poisson", (-50, 50)),
        ("--loss_function logistic -t", (0, 0)),
    ],
)
def test_range_of_predictions(flags: str, bounds: tuple[float, float]) -> None:
    progress = ProgressTable(REGISTRY.parse(flags), kind="simple")
    progress.update(SEVEN)
    assert (progress.min_label, progress.max_label) == bounds


@pytest.mark.parametrize(
    ("text", "warned"), [("10", False), ("2.0", False), ("9.0", False), ("9.5", True), ("100.", True)]
)
def test_large_factor_causes_a_warning(text: str, warned: bool) -> None:
    warning = ProgressTable(REGISTRY.parse(f"-P {text}"), kind="simple").warning
    assert bool(warning) == warned
    assert not warned or f"--progress {text} is a factor" in warning


def test_nan_keeps_its_sign() -> None:
    assert format_fixed(math.nan, digits=6) == "nan"
    assert format_fixed(-math.nan, digits=6) == "-nan"
    assert format_trimmed(-math.inf, digits=6) == "-inf"
    assert format_trimmed(-0.0, digits=6) == "-0"


def test_long_cells_are_truncated() -> None:
    row = format_row(
        "12345678.9", "123456789", "1234567890123", "123456789012345", "x" * 15, "y" * 14, "9" * 9
    )
    assert row == "12345678 12345678 123456789012 12345678901234 xxxxxxxxxxx... yyyyyyyyyyyyyy 99999999"


class EventByEvent:
    """VW's counters, one event at a time."""

    def __init__(self, flags: str, *, holdout: bool) -> None:
        text = REGISTRY.parse(flags).get("progress")
        self.adds = text is not None and "." not in str(text)
        self.step = np.float32(2 if text is None else float(str(text)))
        self.mark = self.step if self.adds else np.float32(1)
        self.holdout = holdout
        self.number = self.current_pass = 0
        self.labelled = self.old_labelled = self.unlabelled = self.loss = self.recent = 0.0
        self.held_weight = self.held_loss = self.recent_weight = self.recent_loss = 0.0
        self.rows: list[tuple[int, str, str, str]] = []

    def take(self, events: Outcomes) -> None:
        for i in range(len(events)):
            weight, loss = float(events.weight[i]), float(events.loss[i])
            if events.holdout[i] and events.labelled[i]:
                self.held_weight += weight
                self.recent_weight += weight
                self.held_loss += loss
                self.recent_loss += loss
            else:
                if events.labelled[i]:
                    self.labelled += weight
                else:
                    self.unlabelled += weight
                self.loss += loss
                self.recent += loss
                self.number += 1
            if self.labelled + self.unlabelled >= float(self.mark):
                self.print_row()

    def print_row(self) -> None:
        if self.holdout and self.current_pass >= 1:
            average = self.ratio(self.held_loss, self.held_weight)
            since = self.ratio(self.recent_loss, self.recent_weight)
            self.recent_weight = self.recent_loss = 0.0
        else:
            average = f"{self.loss / self.labelled:.6f}" if self.labelled > 0 else "n.a."
            since = "n.a."
            if self.labelled != self.old_labelled:
                since = f"{self.recent / (self.labelled - self.old_labelled):.6f}"
        weight = self.labelled + self.unlabelled
        self.rows.append((self.number, average[:8], since[:8], f"{weight:.1f}"))
        self.recent, self.old_labelled = 0.0, self.labelled
        self.mark = np.float32(weight) + self.step if self.adds else np.float32(weight) * self.step

    @staticmethod
    def ratio(loss: float, weight: float) -> str:
        if loss == 0 and weight == 0:
            return "unknown"
        with np.errstate(all="ignore"):
            return f"{np.float64(loss) / np.float64(weight):.6f}"


events = st.tuples(
    st.floats(0, 100, width=32),
    st.sampled_from([1.0, 1.0, 0.5, 2.0, 3.25, -0.5, 1e8]),
    st.sampled_from([None, 1.0, -1.0]),
    st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(
    passes=st.lists(st.lists(events, max_size=40), min_size=1, max_size=3),
    flags=st.sampled_from(["", "-P 1", "-P 3", "-P 1.1", "-P 7.5"]),
    holdout=st.booleans(),
    cut=st.integers(0, 40),
)
def test_table_equals_counters_of_single_events(
    passes: list[list[tuple[float, float, float | None, bool]]], flags: str, holdout: bool, cut: int
) -> None:
    arguments = f"{flags} {'--holdout_after 1' if holdout else ''}"
    progress = ProgressTable(REGISTRY.parse(arguments), kind="simple")
    plain = EventByEvent(flags, holdout=holdout)
    rows: list[str] = []
    for one_pass in passes:
        block = simple(
            loss=[loss for loss, *_ in one_pass],
            weight=[weight for _, weight, *_ in one_pass],
            label=[label for _, _, label, _ in one_pass],
            holdout=[i for i, event in enumerate(one_pass) if event[3] and holdout],
        )
        plain.take(block)
        plain.current_pass += 1
        progress.update(part(block, 0, cut), emit=rows.append)
        progress.update(part(block, min(cut, len(block)), len(block)), emit=rows.append)
        progress.end_pass()
    seen = [(int(row[18:30]), row[:8].strip(), row[9:17].strip(), row[31:45].strip()) for row in rows]
    assert seen == plain.rows
    assert (progress.sum_loss, progress.holdout_loss) == (plain.loss, plain.held_loss)
    assert progress.weighted_examples == plain.labelled + plain.unlabelled


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
