"""Events with outlying numbers, and labels of actions that an event does not have."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, AutoMLRegressor, Workspace
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode
from onlineauto.interop import from_dicts
from onlineauto.workspace.merge import merge_workspaces
from onlineauto.workspace.run import Run
from tests.api.events import ACTIONS, context, serve
from tests.engine.poisoned_streams import MODELS, PLACES, SEVERAL, Poison, bandit_event, compare, make_stream
from tests.naive.outliers import Outliers
from tests.property.snapshot import saved_of


def labels(odd: str, *, at: int = 50, n: int = 100) -> list[str]:
    return [f"{odd if i == at else i % 3} |a x" for i in range(n)]


@pytest.mark.parametrize("odd", ["1e30", "-3e6"])
def test_outlying_label_is_located(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "far.txt"
    path.write_text("\n".join(labels(odd)))
    with pytest.warns(
        UserWarning, match=rf"1 problem .*\n.*{path}:51:1: label or cost '{float(odd):g}'".replace("+", r"\+")
    ):
        Workspace().fit(path)
    with pytest.warns(UserWarning, match="<events>:51:1"):
        Workspace().fit(labels(odd))


@pytest.mark.parametrize(
    "texts", [labels("1000"), labels("1e30", at=99, n=99), ["0 |a", "1 |a"], ["1e9 |a", "1 |a"]]
)
def test_ordinary_labels_are_not_reported(texts: list[str]) -> None:
    found = Diagnostics()
    list(Workspace().stream(texts, diagnostics=found))
    assert found.total == 0


def test_each_part_of_a_record_is_checked_once() -> None:
    [whole] = from_dicts({"context": {"a": 1}, "label": 1e30 if i == 50 else i % 3} for i in range(100))
    parts = [whole.head(40), whole.tail(40).head(20), whole.tail(60)]
    found = Diagnostics()
    list(Workspace().stream(parts, diagnostics=found))
    assert [str(each) for each in found.kept] == [
        "event 50: label or cost '1e+30' is thousands of times beyond those before; event not learnt"
    ]
    found = Diagnostics()
    list(Workspace(examples=50).stream(labels("1e30"), diagnostics=found))
    assert found.total == 0


def test_exact_mode_reports_the_messages_of_vw() -> None:
    found = Diagnostics()
    list(Workspace(vw_exact=True).stream(labels("1e30"), diagnostics=found))
    assert found.total == 0


def test_outlying_costs_of_every_format_are_located() -> None:
    costs = [-1e30 if i == 50 else -1.0 for i in range(100)]
    texts = [f"shared |u a\n|a x\n0:{cost}:0.5 |a y\n" for cost in costs]
    with pytest.warns(
        UserWarning, match=r"<events>:\d+:1: label or cost '-1e\+30 \(a reward of 1e\+30\)' is"
    ):
        AutoML().fit(texts)
    logged = {"context": {"u": 1}, "actions": [{"a": "x"}, {"a": "y"}], "chosen": 1, "probability": 0.5}
    with pytest.warns(UserWarning, match=r"event 50: label or cost '-1e\+30 \(a reward of 1e\+30\)' is"):
        AutoML().fit(logged | {"reward": -cost} for cost in costs)


def test_outlying_reward_causes_a_warning() -> None:
    bandit = AutoML(seed=1)
    serve(bandit, 50)
    with pytest.warns(UserWarning, match=r"event 'late': a reward of -1e\+30 is far beyond those before"):
        bandit.learn(bandit.rank(context(0), ACTIONS, event_id="late"), reward=-1e30)


def test_outlying_number_causes_a_warning() -> None:
    model = AutoMLRegressor().fit([({"a": i % 3}, float(i % 3)) for i in range(50)])
    with pytest.warns(UserWarning, match=r"event 1: label or cost '1e\+30'"):
        model.fit([({"a": 1}, 1.0), ({"a": 1}, 1e30)])
    with pytest.warns(UserWarning, match=r"the label -1e\+38 is far beyond those before"):
        model.learn({"a": 1}, -1e38)


def test_labels_of_missing_actions_are_located(tmp_path: Path) -> None:
    path = tmp_path / "cb.txt"
    path.write_text("1:1:0.5 |a x\n7:1:0.5 |a x\n0:2:0.5 |a y\n4:1:0.5 |a z\n|a x\n")
    found = Diagnostics()
    for _, outcomes in Workspace(cb_explore=4).stream(path, diagnostics=found):
        assert outcomes.labelled.tolist() == [True, False, False, True, False]
    assert found.counts == {ProblemCode.ACTION_OUT_OF_RANGE: 2}
    assert [str(each) for each in found.kept] == [
        f"{path}:2:1: action '7' is out of range, which begins at 1; label not used",
        f"{path}:3:1: action '0' is out of range, which begins at 1; label not used",
    ]


def wild(draw: random.Random, often: float) -> float:
    """Return a number of usual size, or now and then one of any size."""
    size = 10.0 ** draw.uniform(-6, 37) if draw.random() < often else draw.lognormvariate(0, 2)
    return float(np.float32(size)) * draw.choice((-1, 1))


def wild_events(seed: int, n: int = 1500) -> list[tuple[float, float, list[tuple[str, float]]]]:
    """Return labels, weights and features by name of single lines."""
    draw, found = random.Random(seed), []
    for _ in range(n):
        features = [(f"x{draw.randrange(40)}", wild(draw, 0.004)) for _ in range(draw.randrange(1, 8))]
        features += [("word", 1.0)]
        found.append((wild(draw, 0.02), abs(wild(draw, 0.02)), features))
    return found


@pytest.mark.parametrize(
    "options", [{"sgd": True}, {"invariant": True}, {"sgd": True, "automl": 3, "default_lease": 50}], ids=str
)
@pytest.mark.parametrize("seed", range(3))
def test_outliers_are_those_of_the_reference(seed: int, options: dict[str, Any]) -> None:
    events, slow = wild_events(seed), Outliers(squares="sgd" in options)
    names = ["", "cost", "weight", "probability", "value", "begins again"]
    expected = []
    for label, weight, features in events:
        found = slow.find(label, weight, 1.0, features)
        if found == "begins again":
            found = slow.find(label, weight, 1.0, features) or found
        expected.append(found)
    text = "".join(
        f"{label!r} {weight!r} |a {' '.join(f'{name}:{value!r}' for name, value in features)}\n"
        for label, weight, features in events
    )
    workspace = Workspace(**options)
    rows = [outcomes.outlier for _, outcomes in workspace.stream(text.encode())]
    assert [names[code] for code in np.concatenate(rows)] == expected
    assert len(set(expected)) >= 4
    assert workspace.outliers == {what: expected.count(what) for what in names[1:5]}


def digest(workspace: Workspace, events: list[str]) -> list[list[float]]:
    return [workspace.learn(event).tolist() for event in events]


@pytest.mark.parametrize("at", [5, 17, 30, 400])
@pytest.mark.parametrize("model", ["fixed", "ensemble"])
def test_saved_model_continues_to_detect_outliers(model: str, at: int) -> None:
    poisons = {0: Poison("cost", 1e25), 300: Poison("cost", -1e25), 410: Poison("value", 1e30)}
    events = [event.text for event in make_stream("bandit", 700, poisons)]
    whole, first = (Workspace(**MODELS["bandit"][model]) for _ in range(2))
    expected = digest(whole, events)
    assert digest(first, events[:at]) == expected[:at]
    again = Workspace.load(saved_of(first))
    assert digest(again, events[at:]) == expected[at:]
    assert again.outliers == whole.outliers == {"cost": 1, "weight": 0, "probability": 0, "value": 1}


def test_blocks_of_any_size_give_the_same() -> None:
    poisons = {3: Poison("cost", 1e25), 9: Poison("probability", 1e20), 400: Poison("value", -1e25)}
    events = [event.text for event in make_stream("bandit", 500, poisons)]
    for options in MODELS["bandit"].values():
        whole, one_by_one = Workspace(**options), Workspace(**options)
        scores = [outcomes.score for _, outcomes in whole.stream("".join(events).encode())]
        digest(one_by_one, events)
        assert whole.outliers == one_by_one.outliers
        assert whole.weights.tobytes() == one_by_one.weights.tobytes()
        assert np.isfinite(np.concatenate(scores)).all()


@pytest.mark.parametrize("place", [*PLACES, *SEVERAL])
@pytest.mark.parametrize(("task", "model"), [(task, model) for task in MODELS for model in MODELS[task]])
def test_models_recover_from_an_absurd_number(task: str, model: str, place: str) -> None:
    kinds = ("cost", "value", "probability" if task == "bandit" else "weight")
    poisons = [Poison(kind, size) for kind, size in zip(kinds, (-3e38, 1e12, 1e6), strict=True)]
    rows = compare(task, model, MODELS[task][model], (PLACES | SEVERAL)[place], poisons)
    assert [row for row in rows if not row.recovers] == []


@pytest.mark.parametrize("size", [1e3, -1e6, 1e12])
@pytest.mark.parametrize("options", [{"sgd": True}, {"sgd": True, "quadratic": ["::"]}, {"adaptive": True}])
def test_rules_without_normalisation_recover_from_absurd_values(options: dict[str, Any], size: float) -> None:
    for at in (2000, 40) if abs(size) >= 1e6 else (2000,):
        [row] = compare("line", "plain", options, [at], [Poison("value", size)])
        assert row.recovers, row


def test_outlying_values_are_located_for_rules_without_normalisation() -> None:
    events = [event.text for event in make_stream("line", 400, {200: Poison("value", 1e3)})]
    for workspace, count in (
        (Workspace(sgd=True), 1),
        (Workspace(sgd=True, invariant=True), 0),
        (Workspace(), 0),
    ):
        found = Diagnostics()
        list(workspace.stream("".join(events).encode(), diagnostics=found))
        assert workspace.outliers["value"] == found.counts[ProblemCode.VALUE_FAR_OUT] == count
    changed = [
        event.text.replace("age:", "age:1e3 was:") if i > 200 else event.text
        for i, event in enumerate(make_stream("line", 400, {}))
    ]
    workspace = Workspace(sgd=True)
    list(workspace.stream("".join(changed).encode()))
    assert workspace.outliers["value"] == 16, "a new scale is followed"


def test_ignored_event_does_not_count_as_labelled() -> None:
    events = [event.text for event in make_stream("bandit", 200, {150: Poison("cost", 1e30)})]
    workspace, loss, labelled = Workspace(cb_explore_adf=True), 0.0, 0
    for _, outcomes in workspace.stream("".join(events).encode()):
        loss += float(outcomes.loss.sum())
        labelled += int(outcomes.labelled.sum())
    assert labelled == 199
    assert abs(loss) < 1000


def test_a_slot_with_an_absurd_cost_is_not_learnt() -> None:
    draw, found = random.Random(2), Diagnostics()
    costs = [-float(draw.random() < 0.5) for _ in range(400)]
    costs[300] = 1e30
    text = "".join(
        f"ccb shared |u a\nccb action |a x\nccb action |a y\nccb slot 0:{cost!r}:0.5 |s p\n\n"
        for cost in costs
    )
    workspace = Workspace(ccb_explore_adf=True, automl=2)
    rows = [outcomes for _, outcomes in workspace.stream(text.encode(), diagnostics=found)]
    assert workspace.outliers["cost"] == 1
    assert found.counts == {ProblemCode.LABEL_FAR_OUT: 1}
    assert sum(int(each.labelled.sum()) for each in rows) == 399


def test_merged_model_keeps_its_typical_sizes() -> None:
    draw = random.Random(4)
    parts = [Workspace(cb_explore_adf=True, quadratic=["::"]) for _ in range(2)]
    for part in parts:
        part.fit([bandit_event(draw).text for _ in range(200)])
    made = merge_workspaces(parts)
    before = abs(made.weights[:, 0]).sum()
    for _ in range(5):
        made.learn(bandit_event(draw, Poison("cost", 1e20)).text)
    assert made.outliers["cost"] == 5
    assert abs(made.weights[:, 0]).sum() == before


@pytest.mark.parametrize("task", ["bandit", "line"])
@pytest.mark.parametrize("every", [1, 7, 400])
def test_average_loss_is_reset_when_learning_begins_again(task: str, every: int) -> None:
    events = [event.text for event in make_stream(task, 400, {0: Poison("cost", 1e30)})]
    run = Run(Workspace(**MODELS[task]["fixed"]), events, every=every)
    run.step()
    assert run.progress.weighted_examples == 400
    assert 380 < run.progress.weighted_labelled < 400
    assert abs(run.progress.sum_loss) < 1000
    assert -2 <= run.progress.min_label <= run.progress.max_label < 10


# -- averages ------------------------------------------------------------------------------------------


def bandit_lines(costs: dict[int, float], n: int = 2000, *, rare: float = 0.5) -> str:
    """Decisions, some of which cost -1, as lines."""
    draw, events = random.Random(1), []
    for i in range(n):
        cost, took = costs.get(i, -float(draw.random() < rare)), draw.randrange(2)
        lines = [f"{f'0:{cost!r}:0.5 ' if took == action else ''}|t a{action}\n" for action in range(2)]
        events.append(f"shared |u x{draw.randrange(3)}\n{''.join(lines)}\n")
    return "".join(events)


@pytest.mark.parametrize("at", [0, 500])
@pytest.mark.parametrize("options", [{}, {"automl": 2}, {"testonly": True}], ids=str)
def test_an_absurd_cost_is_in_no_average(options: dict[str, Any], at: int) -> None:
    found = Diagnostics()
    run = Run(Workspace(cb_explore_adf=True, **options), bandit_lines({at: 1e12}).encode())
    run.diagnostics = found
    run.step()
    assert -1 < run.progress.sum_loss / run.progress.weighted_labelled < 0
    assert found.counts.total() == 1


def test_an_absurd_cost_of_a_model_that_only_predicts_is_in_no_average() -> None:
    model = Workspace(cb_explore_adf=True).fit(bandit_lines({}).encode())
    asked = Workspace.load(saved_of(model), testonly=True)
    before = asked.weights.tobytes()
    run = Run(asked, bandit_lines({7: -1e12}).encode())
    run.step()
    assert -2 < run.progress.sum_loss / run.progress.weighted_labelled < 0
    assert run.diagnostics.counts == {ProblemCode.LABEL_FAR_OUT: 1}
    assert asked.weights.tobytes() == before


def test_an_absurd_cost_that_is_held_out_is_in_no_average(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_text(bandit_lines({199: 1e12}))
    run = Run(Workspace(cb_explore_adf=True, passes=2, holdout_period=10), path)
    run.step()
    assert run.progress.holdout_weight > 0
    assert -2 < run.progress.holdout_loss / run.progress.holdout_weight < 0


@pytest.mark.parametrize("options", [{}, {"automl": 2}], ids=str)
def test_absurd_first_cost_is_found_if_costs_are_rare(options: dict[str, Any]) -> None:
    """Costs of 0 have no size, so only those in 1 event of 100 tell that the first one was absurd."""
    run = Run(Workspace(cb_explore_adf=True, **options), bandit_lines({0: 1e12}, rare=0.01).encode())
    run.step()
    assert run.diagnostics.counts == {ProblemCode.BEGAN_AGAIN: 1}
    assert -1 < run.progress.sum_loss / run.progress.weighted_labelled < 0


def test_outlier_of_an_event_with_many_slots_counts_once() -> None:
    draw, found = random.Random(2), Diagnostics()
    actions = "".join(f"ccb action |a x{i}\n" for i in range(20))
    events = []
    for number in range(200):
        value = 1e25 if number == 150 else draw.random()
        slots = "".join(f"ccb slot {i}:{-draw.randrange(2)}:0.5 |s p\n" for i in range(20))
        events.append(f"ccb shared |u a:{value!r}\n{actions}{slots}\n")
    workspace = Workspace(ccb_explore_adf=True)
    list(workspace.stream("".join(events).encode(), diagnostics=found))
    assert workspace.outliers == {"cost": 0, "weight": 0, "probability": 0, "value": 1}
    assert found.counts == {ProblemCode.VALUE_FAR_OUT: 1}
    assert np.isfinite(workspace.weights).all()
