"""A column may have the costs of actions, by which `evaluate` asks for budgets."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlineauto import Evaluation, Workspace
from onlineauto.errors import InputError, OptionError, ParseError
from onlineauto.features.block import Block
from onlineauto.formats.datasets.columns import columns_of
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode
from onlineauto.formats.lines.event_source import EventRules
from onlineauto.interop import from_frame
from onlineauto.service.learning.paced_policy import PacedPolicy
from tests.cli.conftest import Command, run

__all__ = ["run"]

NAN, INF = float("nan"), float("inf")
LISTED = pa.list_(pa.float64())
OUTCOME = {"reward": "reward", "probability": "p"}
EVENTS = {"rows": "events", "action": "arm", "choices": ["a", "b"], "context": ["x"], **OUTCOME}
ACTIONS = {"rows": "actions", "event": "id", "actions": ["arm"], **OUTCOME}
LISTS = {"rows": "lists", "list": "items", "chosen": "k", "actions": ["arm"], "context": ["x"], **OUTCOME}
COSTS = [0.125, 0.5, 4.0]


def read(path: Path, table: pa.Table, columns: Any, **options: Any) -> tuple[list[Block], Diagnostics]:
    pq.write_table(table, path)
    problems = Diagnostics()
    reader = DatasetSource(path, columns).open(EventRules("cb_explore_adf", **options), problems)
    return list(reader.blocks()), problems


def costs_in(blocks: list[Block]) -> list[list[float | None]]:
    """Return the costs of the actions of each event, None for an unknown one."""
    found = []
    for block in blocks:
        assert block.action_costs is not None
        for begin, end in zip(block.event_start[:-1], block.event_start[1:], strict=True):
            costs = block.action_costs[begin:end]
            assert np.isnan(costs[block.shared[begin:end]]).all()
            of_actions = costs[~block.shared[begin:end]].tolist()
            found.append([None if cost != cost else cost for cost in of_actions])
    return found


def rows_of_events(costs: list[Any], kind: Any = LISTED) -> pa.Table:
    n = len(costs)
    table: dict[str, list[Any]] = {"arm": ["a", "b"] * n, "x": [1.0] * n, "reward": [1.0] * n, "p": [0.5] * n}
    return pa.table({name: values[:n] for name, values in table.items()} | {"costs": pa.array(costs, kind)})


def rows_of_actions(costs: list[list[Any]]) -> pa.Table:
    rows = [
        {"id": event, "arm": str(i), "reward": None if i else 1.0, "p": None if i else 0.5, "costs": cost}
        for event, each in enumerate(costs)
        for i, cost in enumerate(each)
    ]
    return pa.Table.from_pylist(rows)


def rows_of_lists(costs: list[list[Any]]) -> pa.Table:
    items = [[{"arm": str(i), "costs": cost} for i, cost in enumerate(each)] for each in costs]
    kind = pa.list_(pa.struct([("arm", pa.string()), ("costs", pa.float64())]))
    n = len(costs)
    table = {
        "items": pa.array(items, kind),
        "k": [0] * n,
        "x": [1.0] * n,
        "reward": [1.0] * n,
        "p": [0.5] * n,
    }
    return pa.table(table)


ROWS: dict[str, tuple[Callable[[Any], pa.Table], dict[str, Any]]] = {
    "events": (rows_of_events, EVENTS),
    "actions": (rows_of_actions, ACTIONS),
    "lists": (rows_of_lists, LISTS),
}


@pytest.mark.parametrize("rows", ROWS)
def test_costs_are_those_of_the_actions_of_each_event(tmp_path: Path, rows: str) -> None:
    make, columns = ROWS[rows]
    costs = [[0.5, 2.0], [0.0, None], [3.0, 0.25]]
    blocks, problems = read(tmp_path / "a.parquet", make(costs), columns | {"action_costs": "costs"})
    assert costs_in(blocks) == costs
    assert not problems.total
    blocks, _ = read(tmp_path / "a.parquet", make(costs), columns)
    assert {block.action_costs for block in blocks} == {None}


@pytest.mark.parametrize("rows", ROWS)
def test_wrong_costs_are_counted_located_and_their_rows_left_out(tmp_path: Path, rows: str) -> None:
    make, columns = ROWS[rows]
    costs = [[0.5, 2.0], [-0.5, -1.0], [1.0, 1.0], [0.5, NAN], [INF, 0.5], [0.5, 1e30], [7.0, 8.0]]
    blocks, problems = read(tmp_path / "a.parquet", make(costs), columns | {"action_costs": "costs"})
    assert costs_in(blocks) == [costs[0], costs[2], costs[6]]
    assert problems.counts == {ProblemCode.COST_NOT_FINITE: 4}
    size = 2 if rows == "actions" else 1
    assert [problem.line for problem in problems.kept] == [size * event + 1 for event in (1, 3, 4, 5)]
    text = "column 'costs' has the cost -0.5: use a number from 0 to 1e30, or null; event skipped"
    assert str(problems.kept[0]) == f"{tmp_path / 'a.parquet'}:{size + 1}:1: {text}"
    with pytest.raises(ParseError, match=r"has the cost -0\.5: use .*; reading stopped"):
        read(tmp_path / "a.parquet", make(costs), columns | {"action_costs": "costs"}, strict=True)


@pytest.mark.parametrize("kind", [LISTED, pa.large_list(pa.float32()), pa.list_(pa.int8())])
def test_lists_of_another_length_are_wrong_and_null_is_unknown(tmp_path: Path, kind: Any) -> None:
    table = rows_of_events([[1, 2], [1], None, [], [1, 2, 3], [3, 4], [None, None]], kind)
    blocks, problems = read(tmp_path / "a.parquet", table, EVENTS | {"action_costs": "costs"})
    assert costs_in(blocks) == [[1, 2], [None, None], [3, 4], [None, None]]
    assert [(problem.line, problem.message) for problem in problems.kept] == [
        (row, f"column 'costs' has {n} costs for 2 actions") for row, n in ((2, 1), (4, 0), (5, 3))
    ]


def test_a_column_of_nulls_declares_nothing(tmp_path: Path) -> None:
    for make, columns in ROWS.values():
        table = make([[None, None]] * 2) if make is not rows_of_events else make([None, None])
        if "costs" in table.column_names:
            table = table.set_column(table.column_names.index("costs"), "costs", pa.nulls(table.num_rows))
        blocks, problems = read(tmp_path / "a.parquet", table, columns | {"action_costs": "costs"})
        declared = [each for block in blocks if block.action_costs is not None for each in costs_in([block])]
        assert declared in ([], [[None, None]] * 2)
        assert (sum(map(len, blocks)), problems.total) == (2, 0)


def test_costs_of_several_blocks_are_those_of_their_events(tmp_path: Path) -> None:
    costs = [[float(row), row / 4] if row % 7 else [-1.0, 1.0] for row in range(20_000)]
    columns = EVENTS | {"action_costs": "costs"}
    blocks, problems = read(tmp_path / "a.parquet", rows_of_events(costs), columns)
    assert len(blocks) > 3
    assert costs_in(blocks) == [each for row, each in enumerate(costs) if row % 7]
    assert problems.total == len(range(0, 20_000, 7))


@pytest.mark.parametrize(
    ("rows", "name", "why"),
    [
        ("events", "x", r"column 'x' \(action_costs\) is of double, not of lists of numbers"),
        ("events", "no", r"there is no column 'no' \(action_costs\)"),
        ("actions", "arm", r"column 'arm' \(action_costs\) is of string, not of numbers"),
        ("lists", "arm", r"column 'arm' \(action_costs\) is of string, not of numbers in the structs of 'it"),
        ("lists", "no", "the structs in 'items' have no field 'no'; there are arm, costs"),
    ],
)
def test_a_column_that_cannot_have_costs_is_an_error(tmp_path: Path, rows: str, name: str, why: str) -> None:
    make, columns = ROWS[rows]
    with pytest.raises(InputError, match=why):
        read(tmp_path / "a.parquet", make([[0.5, 2.0]]), columns | {"action_costs": name})


def test_rows_with_labels_have_no_costs() -> None:
    with pytest.raises(InputError, match='action_costs cannot be used with rows = "labels"'):
        columns_of({"rows": "labels", "label": "y", "action_costs": "costs"})


def test_predictions_do_not_need_the_costs(tmp_path: Path) -> None:
    for make, columns in ROWS.values():
        pq.write_table(make([[0.5, 2.0]]), tmp_path / "a.parquet")
        source = DatasetSource(tmp_path / "a.parquet", columns | {"action_costs": "costs"}, predicts=True)
        Workspace(cb_explore_adf=True).fit(source)
        assert source.description["columns"]["action_costs"] == "costs"
        assert source.like(source.description).columns().action_costs is None
        assert columns_of(source.description["columns"]).action_costs == "costs"


# -- frames --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda table: table, pa.Table.to_pandas, polars.from_arrow])
def test_frames_have_costs(make: Callable[[pa.Table], Any]) -> None:
    named: dict[str, Any] = {"actions": "arm", "action_costs": "costs", **OUTCOME}
    frame = make(rows_of_events([[0.5, 2.0], None, [3.0, 4.0]]))
    [block] = from_frame(frame, choices=["a", "b"], **named)
    assert costs_in([block]) == [[0.5, 2.0], [None, None], [3.0, 4.0]]
    assert b"costs" not in block.namespaces.names
    frame = make(rows_of_events([[0.5, 2.0], [0.5], [3.0, -4.0]]))
    with pytest.raises(InputError, match="row 1: column 'costs' has 1 costs for 2 actions"):
        from_frame(frame, choices=["a", "b"], **named)
    problems = Diagnostics()
    [block] = from_frame(frame, choices=["a", "b"], **named, strict=False, problems=problems)
    assert costs_in([block]) == [[0.5, 2.0]]
    assert [str(problem).partition(": ")[0] for problem in problems.kept] == ["row 1", "row 2"]
    named = {"actions": ["arm"], "event": "id", "action_costs": "costs", **OUTCOME}
    [block] = from_frame(make(rows_of_actions([[0.5, None], [1.0, 2.0]])), **named)
    assert costs_in([block]) == [[0.5, None], [1.0, 2.0]]


# -- budgets -------------------------------------------------------------------------------------------


def decisions(n: int) -> list[dict[str, Any]]:
    """Return logged decisions between three actions, of which the dearer ones earn more."""
    draw = random.Random(3)
    rows = []
    for _ in range(n):
        chosen = draw.randrange(3)
        reward = (0.5, 0.75, 1.0)[chosen] if draw.random() < 0.8 else 0.0
        user, costs = draw.choice(["tom", "ann"]), [cost * draw.choice([1, 2]) for cost in COSTS]
        rows.append({"user": user, "arm": "abc"[chosen], "reward": reward, "p": 1 / 3, "costs": costs})
    return rows


def line_of(row: dict[str, Any]) -> str:
    chosen = "abc".index(row["arm"])
    label = {"_label_cost": -row["reward"], "_label_probability": row["p"], "_label_Action": chosen + 1}
    actions = [{"arm": {"arm": name}} for name in "abc"]
    ranked = {"a": [chosen + 1, *(i + 1 for i in range(3) if i != chosen)], "p": [1 / 3] * 3}
    context = {"user": {"user": row["user"]}, "_multi": actions}
    return json.dumps(label | {"_labelIndex": chosen} | ranked | {"Costs": row["costs"], "c": context})


COLUMNS = """rows = "events"
action = "arm"
choices = ["a", "b", "c"]
reward = "reward"
probability = "p"
action_costs = "costs"
context = ["user"]
"""
FLAGS = "--cb_explore_adf --squarecb --bit_precision 12"


def test_a_budget_on_columns_is_that_on_the_log_of_a_service(run: Command, tmp_path: Path) -> None:
    rows = decisions(800)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet", row_group_size=300)
    (tmp_path / "log.dsjson").write_text("".join(line_of(row) + "\n" for row in rows))
    (tmp_path / "columns.toml").write_text(COLUMNS)
    policies = ["--policy", f"{FLAGS} --budget 0.75", "--policy", FLAGS]
    by_rows = run("evaluate log.parquet --columns columns.toml", policies)
    by_lines = run("evaluate log.dsjson --dsjson", policies)
    assert by_rows.out == by_lines.out
    assert "costs 0.7" in by_rows.out
    assert "budget 0.75, price 0\n" not in by_rows.out

    frame = pandas.DataFrame(rows)
    policy = PacedPolicy(Workspace(FLAGS).configuration, 0.75)
    evaluation = Evaluation({"paced": policy})
    named: dict[str, Any] = {"actions": "arm", "action_costs": "costs", "context": ["user"], **OUTCOME}
    value = evaluation.run(from_frame(frame, **named))[1]
    assert f"{value.dr.value:.4f} [{value.dr.low:.4f}, {value.dr.high:.4f}]" in by_rows.out
    paced = evaluation.policies["paced"]
    assert isinstance(paced, PacedPolicy)
    assert f"costs {paced.pacing.mean_cost:.4g} in the mean" in by_rows.out
    assert paced.pacing.mean_cost == pytest.approx(0.75, rel=0.05)


def test_a_budget_needs_a_column_of_costs(run: Command, tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(decisions(50)), tmp_path / "log.parquet")
    (tmp_path / "columns.toml").write_text(COLUMNS.replace('action_costs = "costs"\n', ""))
    words = "evaluate log.parquet --columns columns.toml"
    run(words, ["--policy", f"{FLAGS} --budget 0.5"], code=2, err="needs the cost of each action")
    with pytest.raises(
        OptionError, match="--budget is an option of `onlineauto serve`, `route` and policies"
    ):
        Workspace(f"{FLAGS} --budget 0.5")


def test_an_event_without_some_cost_is_free(tmp_path: Path) -> None:
    rows = decisions(300)
    for row in rows[:200]:
        row["costs"] = [None, 1.0, 1.0]
    policy = PacedPolicy(Workspace(FLAGS).configuration, 0.75)
    evaluation = Evaluation({"paced": policy})
    named: dict[str, Any] = {"actions": "arm", "action_costs": "costs", "context": ["user"], **OUTCOME}
    evaluation.run(from_frame(pandas.DataFrame(rows), **named))
    paced = evaluation.policies["paced"]
    assert isinstance(paced, PacedPolicy)
    assert paced.pacing.costed == 100
