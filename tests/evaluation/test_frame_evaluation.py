"""Policies on frames of logged decisions: values, support, and the set of best ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from numpy.typing import NDArray

from onlineauto import AutoML, Evaluation, InputError, OptionError, Workspace
from onlineauto.estimators.evaluation_kernels import (
    SNIPS,
    Logged,
    bounds_of,
    evaluate_events,
    make_evidence,
)
from onlineauto.estimators.paired import ChampionTest
from onlineauto.evaluation.evaluation import LOGGED
from onlineauto.evaluation.frame_evaluation import FrameEvaluation
from onlineauto.evaluation.frame_log import FrameLog
from onlineauto.interop import from_frame
from tests.naive.best_policies import best_policies

ROLES: dict[str, Any] = {"actions": "shown", "reward": "click", "probability": "p"}
LOG_PMF = np.array([0.5, 0.3, 0.2])
PAYS = np.array([0.2, 0.4, 0.6])
POLICIES = {
    "best": [0.1, 0.1, 0.8],
    "like best": [0.1, 0.15, 0.75],
    "middle": [0.2, 0.6, 0.2],
    "worst": [0.8, 0.1, 0.1],
}


def draw(n: int = 3000, seed: int = 1, pays: NDArray[Any] = PAYS) -> dict[str, NDArray[Any]]:
    """Return a log of three actions that were drawn with `LOG_PMF`."""
    random = np.random.default_rng(seed)
    shown = random.choice(3, n, p=LOG_PMF)
    return {"shown": shown, "click": (random.random(n) < pays[shown]).astype(float), "p": LOG_PMF[shown]}


def everywhere(pmf: list[float], n: int) -> NDArray[np.float64]:
    return np.tile(pmf, (n, 1))


def evaluate(frame: Any, policies: Any, **options: Any) -> FrameEvaluation:
    given: dict[str, Any] = ROLES | {"reward_range": (0, 1), "min_prob": 0.2} | options
    return Evaluation.from_frame(frame, policies, **given)


def at_every_row(frame: dict[str, NDArray[Any]], policies: dict[str, list[float]]) -> FrameEvaluation:
    """Return an evaluation whose history has each row."""
    log = FrameLog(frame, **ROLES, time=None, choices=[0, 1, 2], sign=1.0)
    targets = {name: log.target(name, everywhere(pmf, log.n_rows)) for name, pmf in policies.items()}
    return FrameEvaluation(
        log, targets, alpha=0.05, reward_range=(0, 1), min_prob=0.2, sign=1.0, points=len(log)
    )


def weights_of(frame: dict[str, NDArray[Any]], policies: dict[str, list[float]]) -> dict[str, list[float]]:
    others = {name: (np.array(pmf)[frame["shown"]] / frame["p"]).tolist() for name, pmf in policies.items()}
    return {LOGGED: [1.0] * len(frame["p"]), **others}


def test_values_are_those_of_the_rewards() -> None:
    frame = draw(20_000)
    found = evaluate(frame, {name: everywhere(pmf, 20_000) for name, pmf in POLICIES.items()})
    truth = {LOGGED: LOG_PMF @ PAYS} | {name: np.array(pmf) @ PAYS for name, pmf in POLICIES.items()}
    weights = weights_of(frame, POLICIES)
    for value in found.values:
        w = np.array(weights[value.policy])
        assert value.estimate.value == pytest.approx((w @ frame["click"]) / w.sum())
        assert value.estimate.low < truth[value.policy] < value.estimate.high
        assert value.estimate.high - value.estimate.low < 0.12
        assert value.effective_sample_size == pytest.approx(w.sum() ** 2 / (w @ w))
        assert value.largest_weights[0][1] == w.max()
        assert value.is_supported
    difference = found.difference("worst", "best")
    assert difference.low < truth["worst"] - truth["best"] < difference.high < 0
    assert found.difference("best", "worst").low == -difference.high
    assert found.difference("best", "best").high == 0
    with pytest.raises(OptionError, match=r"there is no policy 'x'; there are .as logged., best"):
        found.difference("x", "best")


@pytest.mark.parametrize("n", [1, 30, 1500])
def test_set_of_best_policies_equals_the_reference_implementation(n: int) -> None:
    frame = draw(n, seed=3)
    found = evaluate(frame, {name: everywhere(pmf, n) for name, pmf in POLICIES.items()}, choices=[0, 1, 2])
    reference = best_policies(
        weights_of(frame, POLICIES), frame["click"].tolist(), reward_range=(0, 1), floor=0.2, alpha=0.05
    )
    assert list(found.best) == reference
    assert [value.policy for value in found.values if not value.worse_than] == reference
    assert len(reference) == (2 if n == 1500 else 5)


def test_difference_of_two_policies_equals_that_of_the_champion_test() -> None:
    frame = draw(800)
    found = evaluate(frame, {"one": np.full(800, 2)}, alpha=0.1)
    test = ChampionTest(0.1, floor=0.2)
    always = evaluate(frame, {"one": np.full(800, 2), "other": np.full(800, 1)}, alpha=0.3)
    for action, p, reward in zip(frame["shown"], frame["p"], frame["click"], strict=True):
        test.update(2, 1, logged=int(action), p=float(p), reward=float(reward))
    difference = always.difference("one", "other")  # three pairs share the level
    assert (difference.low, difference.high) == pytest.approx(test.difference)
    assert found.difference("one", LOGGED).low > 0


@pytest.mark.parametrize("known", [True, False])
def test_intervals_equal_the_self_normalised_ones_of_a_log(known: bool) -> None:
    frame = draw(900)
    w = np.array(POLICIES["middle"])[frame["shown"]] / frame["p"]
    evidence = make_evidence(*((0, 1) if known else (np.inf, -np.inf)), floor=0.2 if known else None)
    events = Logged(
        weight=w,
        reward=frame["click"],
        probability=frame["p"],
        action=np.zeros(900, np.int64),
        start=np.tile(np.array([0, 3]), (900, 1)),
        predicted=np.zeros(1),
        pmf=np.zeros(0),
    )
    evaluate_events(evidence, events, 0.05, np.empty((0, 3, 2)))
    given: dict[str, Any] = {} if known else {"reward_range": None, "min_prob": None}
    estimate = evaluate(frame, {"middle": everywhere(POLICIES["middle"], 900)}, **given).values[1].estimate
    assert (estimate.low, estimate.high) == pytest.approx(bounds_of(evidence, SNIPS, 0.05))


@pytest.mark.ci
def test_set_contains_the_best_policy_after_every_row() -> None:
    misses, alone = 0, 0
    for seed in range(60):
        found = at_every_row(draw(500, seed=seed), POLICIES)
        misses += any("best" not in point.best for point in found.history)
        alone += "worst" not in found.best
    assert misses <= 3
    assert alone >= 50


@pytest.mark.ci
def test_equal_policies_stay_in_the_set() -> None:
    pays = np.full(3, 0.5)
    runs = [at_every_row(draw(300, seed=seed, pays=pays), POLICIES) for seed in range(60)]
    assert sum(any(len(point.best) < 5 for point in run.history) for run in runs) <= 3


def test_frames_of_all_kinds_give_the_same() -> None:
    n = 400
    arrays = draw(n)
    names = np.array(["a", "b", "c"])
    pmf = everywhere(POLICIES["best"], n)
    columns = {
        "shown": names[arrays["shown"]].tolist(),
        "click": arrays["click"].tolist(),
        "p": arrays["p"].tolist(),
        "chosen": names[np.arange(n) % 3].tolist(),
        "of logged": pmf[np.arange(n), arrays["shown"]].tolist(),
        "of all": pmf.tolist(),
        "pa": pmf[:, 0].tolist(),
        "pb": pmf[:, 1].tolist(),
        "pc": pmf[:, 2].tolist(),
    }
    policies: dict[str, Any] = {
        "chosen": "chosen",
        "actions": np.array(columns["chosen"]),
        "of logged": "of logged",
        "of all": "of all",
        "separate": {"a": "pa", "b": "pb", "c": "pc"},
        "called": lambda frame: frame["of logged"],
    }
    frames = [columns, pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)]
    frames.append(pandas.DataFrame(columns).astype({"shown": "category"}))
    results = [evaluate(frame, policies) for frame in frames]
    for result in results:
        assert result.values == results[0].values
        assert result.history == results[0].history
    values = {value.policy: value.estimate for value in results[0].values}
    assert values["chosen"] == values["actions"]
    assert values["of logged"] == values["of all"] == values["separate"] == values["called"]


def test_costs_are_rewards_with_the_other_sign() -> None:
    frame = draw(2000)
    policies = {name: everywhere(pmf, 2000) for name, pmf in POLICIES.items()}
    earned = evaluate(frame, policies)
    frame["cost"] = -frame["click"]
    cost = evaluate(frame, policies, reward=None, reward_range=None, cost="cost", cost_range=(-1, 0))
    assert cost.best == earned.best
    for one, other in zip(cost.values, earned.values, strict=True):
        assert one.estimate.value == -other.estimate.value
        assert (one.estimate.low, one.estimate.high) == (-other.estimate.high, -other.estimate.low)
    assert str(cost).startswith("average cost over 2,000 rows")


def test_rows_are_sorted_by_time() -> None:
    frame = draw(600)
    policies = {"of logged": np.where(frame["shown"] == 2, 0.9, 0.05)}
    whole = evaluate(frame | {"when": np.arange(600)}, policies, time="when")
    order = np.random.default_rng(1).permutation(600)
    mixed = {name: column[order] for name, column in frame.items()} | {"when": order}
    other = evaluate(mixed, {"of logged": policies["of logged"][order]}, time="when")
    assert other.history == whole.history
    assert [point.time for point in whole.history] == [point.events - 1 for point in whole.history]
    assert evaluate(frame, policies).history[-1].time is None
    odd = np.array([0, "noon"] * 300, object)
    with pytest.raises(InputError, match="column 'when' has values that cannot be compared"):
        evaluate(frame | {"when": odd}, policies, time="when")


def test_actions_that_were_never_logged_widen_the_intervals() -> None:
    n = 3000
    frame = draw(n)
    pmf = {"half": np.array([[0.0, 0.0, 0.5, 0.5]] * n), "whole": np.array([3] * (n - 1) + [2])}
    found = evaluate(frame, pmf, choices=[0, 1, 2, 3], min_prob=0.05)
    half, whole = found.values[1:]
    assert half.never_logged == {3: 0.5}
    assert half.is_supported
    assert half.estimate.low < 0.35
    assert half.estimate.high > 0.75
    assert whole.never_logged == {3: pytest.approx(1, abs=1e-3)}
    assert (whole.estimate.low, whole.estimate.high) == (0, 1)
    assert {"half", "whole"} <= set(found.best)
    warnings = " ".join(found.warnings())
    assert "half chooses actions that were never logged: 3 (50.0%)" in warnings


def test_propensities_that_are_not_those_of_the_log_are_reported() -> None:
    frame = draw(3000)
    frame["p"] = np.full(3000, 0.25)
    found = evaluate(frame, {"always 0": np.zeros(3000, int)})
    value = found.values[1]
    assert not value.is_supported
    assert value.estimate.low == -np.inf
    assert value.mean_weight == pytest.approx(2, abs=0.1)
    assert "always 0" in found.best
    assert "propensities are not those of the log" in str(found)


def test_little_support_is_reported() -> None:
    frame = draw(2000)
    first = np.flatnonzero(frame["shown"] == 2)[0]
    frame["p"][first] = 1e-4
    found = evaluate(frame, {"always 2": np.full(2000, 2)}, min_prob=1e-4)
    assert found.values[1].largest_weights[0] == (first, 1e4)
    assert f"say as much as 1 of its own; row {first} alone counts 1e+04" in str(found)
    logged = found.values[0].estimate
    assert 0.3 < logged.low < logged.high < 0.4


def test_range_and_least_probability_are_learnt() -> None:
    frame = draw(5000)
    found = evaluate(frame, {"always 2": np.full(5000, 2)}, reward_range=None, min_prob=None)
    assert found.best == ("always 2",)
    assert found.history[2].intervals["always 2"] == (-np.inf, np.inf)  # of 75 rows; 100 teach the range
    constant = frame | {"click": np.ones(5000)}
    assert evaluate(constant, {}, reward_range=None).values[0].estimate.low == -np.inf


def test_rows_without_a_reward_are_left_out() -> None:
    frame = draw(100)
    rewards = [None if row % 10 == 0 else reward for row, reward in enumerate(frame["click"].tolist())]
    frame["click"] = np.array(rewards, float)
    found = evaluate(frame, {"always 2": np.full(100, 2)})
    assert (found.events, found.skipped) == (90, 10)
    assert "10 of 100 rows have no action or no reward" in str(found)


@pytest.mark.parametrize(
    ("change", "policy", "message"),
    [
        ({"p": [0.5, 0.0]}, "of", "column 'p' is the probability .*: row 1$"),
        ({"p": [1.5, None]}, "of", "column 'p' is the probability .*: row 0, 1$"),
        ({"click": [np.inf, 1.0]}, "of", "column 'click' has infinite values: row 0"),
        ({"click": [np.nan, np.nan]}, "of", "no row of the frame has both 'shown' and 'click'"),
        ({"click": ["x", "y"]}, "of", "click: these are a str, and not numbers"),
        ({"click": ["1", "0"]}, "of", "click: these are a str, and not numbers"),
        ({"shown": [["a"], ["b"]]}, "of", "column 'shown' has lists, which are no actions: row 0, 1"),
        ({}, "missing", "there is no column 'missing'; there are shown, click, p, of"),
        ({"of": [0.5, 1.5]}, "of", "of: a probability is from 0 to 1: row 1"),
        ({"of": [0.5, None]}, "of", "of: a probability is from 0 to 1: row 1"),
        ({"of": ["a", None]}, "of", "of: no action: row 1"),
        ({"of": [1, 0]}, "of", "of: 1 is none of the actions .*; probabilities are floats"),
        ({"of": [[0.5, 0.4], [0.5, 0.5]]}, "of", "of: probabilities .* add up to 1: row 0"),
        ({"of": [[1.0], [1.0]]}, "of", "of: 1 probabilities in a row for the 2 actions"),
        ({"of": [[1.0], [0.5, 0.5]]}, "of", "of: these are a list, and not numbers, the same for each row"),
        ({}, [0.5], "of: 1 values for the 2 rows"),
        ({}, {"a": "of"}, "of: name a column for each of the actions"),
    ],
)
def test_bad_rows_are_refused_with_their_numbers(change: Any, policy: Any, message: str) -> None:
    frame = {"shown": ["a", "b"], "click": [0.0, 1.0], "p": [0.5, 0.5], "of": [0.5, 0.5]} | change
    with pytest.raises(InputError, match=message):
        evaluate(frame, {"of": policy})
    if message != "of: these are a list, and not numbers, the same for each row":  # which polars refuses
        with pytest.raises(InputError, match=message):
            evaluate(polars.DataFrame(frame), {"of": policy})


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="column 'when' has 3 values, and others have 10"):
        evaluate(draw(10) | {"when": np.arange(3)}, {}, time="when")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": None}, "name the column of rewards in reward, or that of costs in cost"),
        ({"cost": "click"}, "name the column of rewards in reward, or that of costs in cost"),
        ({"cost_range": (0, 1)}, "rewards have a reward_range, and costs a cost_range"),
        ({"alpha": 1.0}, "alpha cannot be 1.0"),
        ({"reward_range": (1, 0)}, "the lowest cost or reward has to be below"),
        ({"min_prob": 0.0}, "min_prob cannot be 0.0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        evaluate(draw(10), {}, **options)
    with pytest.raises(OptionError, match="a policy cannot have the name"):
        evaluate(draw(10), {LOGGED: "p"})


def test_picture_marks_the_policies_that_are_worse(tmp_path: Path) -> None:
    found = evaluate(draw(), {name: everywhere(pmf, 3000) for name, pmf in POLICIES.items()})
    picture = found.plot()
    ends, course = picture.figure.axes
    hollow = [line.get_markerfacecolor() == picture.look.paper for line in ends.lines]
    assert hollow == [bool(value.worse_than) for value in found.values]
    assert len(course.lines) == 2 * 5
    assert picture.figure.texts[0].get_text() == "What each policy would have earned"
    picture.save(tmp_path / "values.svg")


def test_floats_that_are_all_actions_are_rejected_and_a_cast_makes_them_actions() -> None:
    frame = pandas.DataFrame(draw())
    frame["policy"] = frame["shown"].astype(float)
    frame.loc[7, "policy"] = np.nan  # which makes a column of int one of float
    with pytest.raises(InputError, match=r"greedy: its floats are probabilities .* cast actions to int"):
        evaluate(frame, {"greedy": "policy"})
    with pytest.raises(InputError, match=r"greedy: no action: row 7"):
        evaluate(frame, {"greedy": frame["policy"].astype("Int64")})
    found = evaluate(frame, {"greedy": frame["policy"].fillna(0).astype(int)})
    assert found.values[1].estimate.value > 0


def test_the_columns_of_a_frame_of_probabilities_are_matched_to_actions_by_name() -> None:
    frame, pmf = draw(), everywhere(POLICIES["best"], 3000)
    by_name = pandas.DataFrame({2: pmf[:, 2], 0: pmf[:, 0], 1: pmf[:, 1]})
    found = evaluate(frame, {"array": pmf, "frame": by_name})
    assert found.values[1].estimate == found.values[2].estimate
    with pytest.raises(InputError, match=r"its columns \['2', '0', 'b'\] are not the actions"):
        evaluate(frame, {"frame": by_name.rename(columns={1: "b"})})


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        (["p"], "a mapping of name to policy, not a list"),
        (len, "a mapping of name to policy, not a builtin"),
        ({"bandit": AutoML()}, "bandit: a policy is a .*not an AutoML"),
    ],
)
def test_other_objects_are_rejected_as_policies(policies: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(draw(), policies)
    with pytest.raises(InputError, match=message):
        Evaluation(policies)


def test_an_automl_in_place_of_its_workspace_is_rejected_with_the_remedy() -> None:
    with pytest.raises(InputError, match=r"not an AutoML; pass bandit\.workspace"):
        Evaluation({"b": AutoML()})  # type: ignore[dict-item]


def test_an_evaluation_is_displayed_as_its_table() -> None:
    found = evaluate(draw(), {"uniform": everywhere([1 / 3] * 3, 3000)})
    assert repr(found) == str(found)
    assert repr(found).startswith("average reward over 3,000 rows, self-normalised; *: none is proved better")
    assert "* uniform" in repr(found)


def test_rewards_outside_of_a_given_range_are_taken_as_its_bounds() -> None:
    frame = draw()
    beyond = frame | {"click": np.where(frame["click"] > 0, 7.0, -2.0)}
    policies = {"best": everywhere(POLICIES["best"], 3000)}
    found, expected = evaluate(beyond, policies), evaluate(frame, policies)
    assert found.values == expected.values
    assert found.difference("best", LOGGED) == expected.difference("best", LOGGED)
    assert "3,000 rewards are outside the given range: taken as its bounds" in found.warnings()


def test_probabilities_of_each_action_may_be_arrays() -> None:
    frame, pmf = draw(), everywhere(POLICIES["best"], 3000)
    arrays = {action: pmf[:, action] for action in range(3)}
    assert evaluate(frame, {"best": arrays}).values == evaluate(frame, {"best": pmf}).values
    columns = pandas.DataFrame(frame | {"first": pmf[:, 0]})
    assert evaluate(columns, {"best": arrays | {0: "first"}}).values == evaluate(frame, {"best": pmf}).values
    with pytest.raises(InputError, match="best: 2999 values for the 3000 rows of the frame"):
        evaluate(frame, {"best": arrays | {1: pmf[1:, 1]}})


@pytest.mark.parametrize("wrap", [lambda values: values, lambda values: dict.fromkeys(range(3), values)])
def test_a_series_with_another_index_is_rejected(wrap: Any) -> None:
    frame = pandas.DataFrame(draw())
    chosen = pandas.Series(np.full(3000, 1 / 3)).sample(frac=1.0, random_state=1)
    with pytest.raises(InputError, match="p: its index is not that of the frame: sort it like the frame"):
        evaluate(frame, {"p": wrap(chosen)})
    evaluate(frame, {"p": wrap(chosen.sort_index())})
    evaluate(draw(), {"p": wrap(chosen)})


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_list_of_arrays_has_the_probabilities_of_all_actions(kind: Any) -> None:
    frame, pmf = draw(), everywhere(POLICIES["best"], 3000)
    policies = {"rows": list(pmf.astype(kind)), "matrix": pmf, "logged": list(np.full(3000, 1 / 3, kind))}
    found = evaluate(pandas.DataFrame(frame), policies)
    assert found["rows"].estimate.value == pytest.approx(found["matrix"].estimate.value, abs=1e-6)
    assert found["logged"].mean_weight == pytest.approx(np.mean(1 / 3 / frame["p"]))


def test_the_predictions_of_a_bandit_are_a_policy() -> None:
    frame = pandas.DataFrame({name: column.tolist() for name, column in draw(600).items()})
    items = [{"shown": action} for action in range(3)]
    bandit = AutoML().fit_table(frame, actions="shown", probability="p", reward="click")
    pmfs = bandit.predict(frame, items)
    found = evaluate(frame, {"bandit": pmfs, "called": lambda rows: bandit.predict(rows, items)})
    w = np.array(pmfs)[np.arange(600), frame["shown"]] / frame["p"]
    assert found["bandit"].estimate.value == pytest.approx((w @ frame["click"]) / w.sum())
    assert found["called"].estimate == found["bandit"].estimate


def test_the_value_of_a_policy_is_found_by_its_name() -> None:
    found = evaluate(draw(), {"uniform": everywhere([1 / 3] * 3, 3000)})
    assert [found[LOGGED], found["uniform"]] == found.values
    with pytest.raises(OptionError, match=r"there is no policy 'x'; there are .as logged., uniform"):
        found["x"]


def test_an_evaluation_of_workspaces_names_from_frame_for_a_frame() -> None:
    policies: Any = {"p": "p"}
    with pytest.raises(InputError, match=r"not a str; Evaluation\.from_frame takes columns"):
        Evaluation(policies)
    evaluation = Evaluation({"greedy": Workspace(cb_explore_adf=True)})
    with pytest.raises(InputError, match=r"cannot be a frame; .*Evaluation\.from_frame"):
        evaluation.run(pandas.DataFrame(draw(10)))
    assert evaluation.warnings() == []


def test_workspaces_are_evaluated_on_the_blocks_of_a_frame() -> None:
    frame = pandas.DataFrame(draw(1500))
    policies = {"learns": Workspace(cb_explore_adf=True, epsilon=0.1)}
    value = Evaluation(policies).run(from_frame(frame, **ROLES))[1]
    assert -0.62 < value.dr.value < -0.4
