"""Evaluation: values of policies on logs, and rejected logs and options."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from onlineauto.errors import InputError, OptionError
from onlineauto.evaluation.evaluation import LOGGED, Evaluation
from onlineauto.interop import event_dsjson
from onlineauto.service.learning.values import Values
from onlineauto.workspace.conversion import read
from onlineauto.workspace.workspace import Workspace
from tests.property.model_draws import draw_stream

ADF = Workspace(cb_explore_adf=True).configuration


def policy(**options: Any) -> Workspace:
    return Workspace(**{"cb_explore_adf": True, "bit_precision": 10, **options})


def log(n: int = 1500) -> bytes:
    return "".join(draw_stream(random.Random(2), ADF, n=2 * n)[:n]).encode()


def test_values_equal_those_computed_by_hand() -> None:
    (logged, uniform) = Evaluation({"uniform": policy(epsilon=1.0)}, cost_range=(-1, 0)).run(log())
    costs = np.array([float(line.split(b":")[1]) for line in log().split(b"\n") if line.startswith(b"0:")])
    assert logged.policy == LOGGED
    assert logged.events == uniform.events == len(costs) == 1500
    for way in (logged.ips, logged.snips, logged.dr):
        assert way.value == pytest.approx(costs.mean())
        assert way.low < way.value < way.high
    weight = np.float32(1 / 3) / np.float32(0.333)
    assert uniform.ips.value == pytest.approx(costs.mean() * weight)
    assert uniform.snips.value == pytest.approx(costs.mean())
    assert uniform.effective_sample_size == pytest.approx(1500)
    assert uniform.average_loss == pytest.approx(uniform.ips.value)


def test_interval_of_the_logged_policy_does_not_depend_on_its_propensities() -> None:
    draw = np.random.default_rng(5)
    clicked = draw.random(12_000) < 0.39
    rare = draw.random(12_000) < 0.005
    data = "".join(
        f"shared |u x\n{f'0:{-int(click)}:0.995 ' * (not low)}|a 0\n{f'0:{-int(click)}:0.005 ' * low}|a 1\n\n"
        for click, low in zip(clicked, rare.tolist(), strict=True)
    ).encode()
    logged, _ = Evaluation({"p": policy()}, cost_range=(-1, 0)).run(data)
    for way in (logged.ips, logged.snips, logged.dr):
        assert way.low < -clicked.mean() < way.high
        assert way.high - way.low < 0.05
    values = Values()
    for _, outcomes in policy().stream(data):
        values.take(outcomes, explored=True)
    live = values.values()[0]
    assert live.low is not None
    assert live.high is not None
    assert live.low < clicked.mean() < live.high
    assert live.high - live.low < 0.05


def test_learning_policy_is_evaluated_before_it_learns_each_event() -> None:
    learning, knowing = policy(quadratic=["::"]), policy(quadratic=["::"])
    knowing.fit(log())
    frozen = policy(quadratic=["::"], testonly=True)
    frozen.restore(knowing.state())
    _, one, other = Evaluation({"learns": learning, "has learnt": frozen}).run(log())
    assert other.dr.value < one.dr.value < -0.4
    assert not learning.weights.any(), "copies learn, and not the workspaces that are given"
    assert frozen.weights.tobytes() == knowing.weights.tobytes()


@pytest.mark.ci
def test_blocks_of_any_size_give_the_same() -> None:
    options: dict[str, Any] = {"bit_precision": 10, "quadratic": ["::"]}

    def values(events: Any) -> Any:
        costs = Workspace(cb_adf=True, **options)
        return Evaluation({"p": policy(quadratic=["::"])}, estimates=costs).run(events)

    events = [event + b"\n\n" for event in log(400).split(b"\n\n") if event]
    single = [make for event in events for make in Workspace(cb_adf=True).read(event)]
    assert values(single) == values(log(400))


def test_events_of_different_weights_are_rejected() -> None:
    lines = [event_dsjson(event) for event in read(log(300), cb_adf=True).events()]
    dropped = [line.replace("{", '{"pdrop":0.5,', 1) for line in lines]

    def values(log: list[str]) -> list[Any]:
        return Evaluation(
            {"p": policy(dsjson=True, testonly=True)}, cost_range=(-1, 0), estimates=policy()
        ).run("".join(log).encode())

    for one, other in zip(values(lines), values(dropped), strict=True):
        assert (one.ips, one.snips, one.effective_sample_size) == (
            other.ips,
            other.snips,
            other.effective_sample_size,
        )
    with pytest.raises(InputError, match=r"line 8: .* weight 2\.0"):
        values([*lines[:7], *dropped[7:]])


def test_impossible_probabilities_have_no_interval_and_a_warning() -> None:
    data = log(1500).replace(b":0.333", b":0.05")
    evaluation = Evaluation({"p": policy(epsilon=1.0)}, cost_range=(-1, 0))
    *_, (values, intervals) = evaluation.stream(data)
    assert (values[1].ips.low, values[1].ips.high) == (-np.inf, np.inf)
    assert (intervals["p"][:, :, 0] <= intervals["p"][:, :, 1]).all()
    assert any("p: by IPS no cost is possible, so a feature" in each for each in evaluation.warnings())


def test_greedy_choices_of_cb_adf_are_probabilities_too() -> None:
    by_cost, by_probability = policy(cb_explore_adf=False, cb_adf=True), policy(epsilon=0.0, first_only=True)
    _, one, other = Evaluation({"adf": by_cost, "greedy": by_probability}).run(log())
    assert one.ips == other.ips
    assert one.dr == other.dr


def test_a_block_at_a_time_gives_intervals_after_each_event() -> None:
    evaluation = Evaluation({"p": policy()}, cost_range=(-1, 0), min_prob=0.333)
    steps = list(evaluation.stream(log()))
    bounds = np.concatenate([intervals["p"] for _, intervals in steps])
    assert bounds.shape == (1500, 3, 2)
    assert (bounds[..., 0] <= bounds[..., 1]).all()
    last = steps[-1][0][1]
    assert bounds[-1].tolist() == [[way.low, way.high] for way in (last.ips, last.snips, last.dr)]
    width = bounds[..., 1] - bounds[..., 0]
    assert (width[-1] < width[300] / 1.5).all()


@pytest.mark.parametrize("exact", [False, True])
def test_error_names_the_lines_without_probabilities(*, exact: bool) -> None:
    lines = log(30).split(b"\n")
    for number in (1, 2, 3):
        lines[number] = lines[number].replace(b":0.333", b"")
    evaluation = Evaluation({"p": policy(vw_exact=exact)})
    with pytest.raises(InputError, match=r"lines [234] "):
        evaluation.run(b"\n".join(lines))


def test_error_counts_the_lines_if_all_probabilities_are_missing() -> None:
    with pytest.raises(InputError, match="20 more"):
        Evaluation({"p": policy()}).run(log(30).replace(b":0.333", b""))


def test_missing_probabilities_can_be_declared_uniform() -> None:
    data = log(300).replace(b":0.333", b"")
    _, value = Evaluation({"p": policy(missing_probability="uniform")}).run(data)
    assert value.events == 300


@pytest.mark.parametrize(
    ("policies", "options", "message"),
    [
        ({}, {}, "there is no policy to evaluate"),
        ({"simple": Workspace()}, {}, "simple: a policy to evaluate is one of --cb_explore_adf or --cb_adf"),
        ({"sampled": policy(cb_sample=True)}, {}, "sampled: --cb_sample draws an action"),
        (
            {"a": policy(), "b": policy(vw_exact=True)},
            {},
            "'b' reads events with --vw_exact, 'a' without --vw_exact: evaluate them in two runs",
        ),
        (
            {"a": policy(), "b": policy(hash="all", hash_seed=3)},
            {},
            "'b' reads events with --hash all and with --hash_seed 3, 'a' with --hash strings and with ",
        ),
        ({"a": policy()}, {"alpha": 1.0}, "alpha cannot be 1.0"),
        ({"a": policy()}, {"cost_range": (0, 0)}, "the lowest cost or reward has to be below the highest"),
        ({"a": policy()}, {"min_prob": 0.0}, "min_prob cannot be 0.0"),
    ],
)
def test_invalid_policies_and_options_are_rejected(
    policies: dict[str, Workspace], options: Any, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        Evaluation(policies, **options)
