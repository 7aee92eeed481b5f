"""``--extra_metrics`` against what VW 9.11.9 wrote for the same files and flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onlineauto.engine.report.metrics import Metrics
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

SIMPLE = b"""1 |a x:0.5 y
-1 2 'tagged |a x z
0.5 1 0.25 t2|b y:3
|a x
2 |a q
-0.25 |a q
1 |b x
"""

EVENTS = b"""shared tag1|s a b
0:-1:0.1 |x one
|x two
|x three

shared |s c
|x one
1:0.5:0.25 |x two

|x one
|x two

shared |s a
0:1:1 'at|x one

"""

ODD = b"""shared |s a

0:-1:0.1 |x one
|x two

|x one
0:-1 |x two

shared |s a
|x one
0:5:0 |x two

shared tagS|s a
 
0:0:0.5 |x two

"""  # noqa: W293 - a line of one blank is an action

CLASSIC = b"""1:-1:0.1 | a b
2:0.5:0.25 'tg | c
| a
3:1:1 t| d e
4:1:0.5 | d
"""


def metrics_of(text: bytes, flags: str, *, diagnostics: dict[str, int] | None = None) -> dict[str, Any]:
    configuration = REGISTRY.parse(flags)
    workspace = Workspace(configuration=configuration)
    metrics = Metrics(configuration, kind=workspace.kind, semantics=workspace.semantics)
    for block, outcomes in workspace.stream(text):
        metrics.update(block, outcomes)
    return metrics.report(diagnostics or {})


def calls(learn: int, predict: int) -> dict[str, int]:
    return {"total_learn_calls": learn, "total_predict_calls": predict}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", calls(6, 1)),
        ("-t", calls(0, 7)),
        ("--holdout_after 3", calls(3, 4)),
        ("--examples 4", calls(3, 1)),
    ],
)
def test_single_line(flags: str, expected: dict[str, int]) -> None:
    report = metrics_of(SIMPLE, f"{flags} --vw_exact")
    assert report == {"total_log_calls": 0, "extra_metrics": expected}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--cb_adf", calls(4, 0)),
        ("--cb_adf --cb_type dr", calls(4, 0)),
        ("--cb_adf -t", calls(0, 4)),
        ("--cb_explore_adf", calls(4, 4)),
        ("--cb_explore_adf --cb_type ips", calls(4, 0)),
        ("--cb_explore_adf --cb_type dr", calls(4, 0)),
        ("--cb_explore_adf --cb_type dm", calls(4, 0)),
        ("--cb_explore_adf --cover 2", calls(4, 0)),
        ("--cb_explore_adf --bag 2", calls(4, 4)),
    ],
)
def test_calls_of_bandits(flags: str, expected: dict[str, int]) -> None:
    report = metrics_of(EVENTS, f"{flags} --vw_exact")
    assert report["extra_metrics"] == expected
    shared = 0 if "-t" in flags else 3
    assert report["shared_feature_merger"] == {"sfm_count_learn_example_with_shared": shared}


def test_explorer() -> None:
    report = metrics_of(EVENTS, "--cb_explore_adf --cb_type dm -q :: --vw_exact")
    assert list(report) == [
        "total_log_calls",
        "cb_explore_adf_greedy",
        "extra_metrics",
        "shared_feature_merger",
    ]
    assert report["total_log_calls"] == 1
    assert list(report["cb_explore_adf_greedy"].items()) == [
        ("cbea_label_first_action", 2),
        ("cbea_label_not_first", 1),
        ("cbea_labeled_ex", 3),
        ("cbea_max_actions", 3),
        ("cbea_min_actions", 1),
        ("cbea_non_zero_cost", 3),
        ("cbea_predict_in_learn", 1),
        ("cbea_avg_actions_per_event", 2.0),
        ("cbea_avg_feat_per_action", 9.0),
        ("cbea_avg_feat_per_event", 18.0),
        ("cbea_avg_ns_per_action", 4.0),
        ("cbea_avg_ns_per_event", 9.0),
        ("cbea_sum_cost", 0.5),
        ("cbea_sum_cost_baseline", 0.0),
    ]


def test_explorer_that_only_predicts() -> None:
    assert metrics_of(EVENTS, "--cb_explore_adf -t --vw_exact")["cb_explore_adf_greedy"] == {
        "cbea_label_first_action": 0,
        "cbea_label_not_first": 0,
        "cbea_labeled_ex": 0,
        "cbea_non_zero_cost": 0,
        "cbea_predict_in_learn": 0,
        "cbea_sum_cost": 0.0,
        "cbea_sum_cost_baseline": 0.0,
    }


def test_classic_explorer() -> None:
    report = metrics_of(CLASSIC, "--cb_explore 3 --cb_type dr --vw_exact")
    assert report["extra_metrics"] == calls(4, 1)
    assert report["shared_feature_merger"] == {"sfm_count_learn_example_with_shared": 0}
    assert report["cb_explore_adf_greedy"] == {
        "cbea_label_first_action": 1,
        "cbea_label_not_first": 2,
        "cbea_labeled_ex": 3,
        "cbea_max_actions": 3,
        "cbea_min_actions": 3,
        "cbea_non_zero_cost": 3,
        "cbea_predict_in_learn": 1,
        "cbea_avg_actions_per_event": 3.0,
        "cbea_avg_feat_per_action": 4.0,
        "cbea_avg_feat_per_event": 12.0,
        "cbea_avg_ns_per_action": 3.0,
        "cbea_avg_ns_per_event": 10.0,
        "cbea_sum_cost": 0.5,
        "cbea_sum_cost_baseline": -1.0,
    }


def test_odd_events() -> None:
    """A cost without probability counts as a label of action 0 whose cost is the largest float."""
    report = metrics_of(ODD, "--cb_explore_adf --vw_exact")
    explorer = report["cb_explore_adf_greedy"]
    assert explorer["cbea_labeled_ex"] == 4
    assert (explorer["cbea_label_first_action"], explorer["cbea_label_not_first"]) == (3, 1)
    assert (explorer["cbea_non_zero_cost"], explorer["cbea_predict_in_learn"]) == (3, 0)
    assert (explorer["cbea_avg_ns_per_event"], explorer["cbea_avg_feat_per_event"]) == (5.0, 4.0)
    assert explorer["cbea_sum_cost"] == float("inf")
    assert report["extra_metrics"] == calls(5, 5)
    assert report["shared_feature_merger"] == {"sfm_count_learn_example_with_shared": 2}


@pytest.mark.parametrize(
    ("flags", "per_event"),
    [
        ("--ignore x", 6.0),
        ("--keep s", 6.0),
        ("--keep sx --noconstant", 4.0),
        ("--ignore s --noconstant", 2.0),
    ],
)
def test_dropped_namespaces_are_not_counted(flags: str, per_event: float) -> None:
    explorer = metrics_of(EVENTS, f"--cb_explore_adf {flags} --vw_exact")["cb_explore_adf_greedy"]
    assert explorer["cbea_avg_ns_per_event"] == per_event


@pytest.mark.parametrize(("flags", "namespaces"), [("--vw_exact", 2.0), ("", 3.0)])
def test_exact_mode_counts_namespaces_by_their_first_letter(flags: str, namespaces: float) -> None:
    text = b"0:1:0.5 |user a |uptime b |user c\n\n"
    explorer = metrics_of(text, f"--cb_explore_adf {flags}")["cb_explore_adf_greedy"]
    assert explorer["cbea_avg_ns_per_event"] == namespaces


def test_native_counts_diagnostics() -> None:
    report = metrics_of(EVENTS, "--cb_explore_adf", diagnostics={"no_bar": 2, "no_cost": 1})
    assert report["total_log_calls"] == 3
    assert report["onlineauto"] == {"diagnostics": {"no_bar": 2, "no_cost": 1}}


def test_native_holdout_is_not_learnt() -> None:
    flags = "--cb_explore_adf --cb_type ips --holdout_after 1"
    assert metrics_of(EVENTS, flags)["extra_metrics"] == calls(1, 3)
    assert metrics_of(EVENTS, f"{flags} --vw_exact")["extra_metrics"] == calls(4, 0)


def test_metrics_file_is_json(tmp_path: Path) -> None:
    configuration = REGISTRY.parse("--cb_explore_adf --vw_exact")
    workspace = Workspace(configuration=configuration)
    metrics = Metrics(configuration, kind=workspace.kind, semantics=workspace.semantics)
    for block, outcomes in workspace.stream(ODD):
        metrics.update(block, outcomes)
    metrics.write(str(tmp_path / "m"), diagnostics={"vw_float": 1})
    read = json.loads((tmp_path / "m").read_bytes())
    assert read["cb_explore_adf_greedy"]["cbea_sum_cost"] is None
    assert read["total_log_calls"] == 1
