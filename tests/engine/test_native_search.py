"""The search of native mode: screening, losses, settings, returning configs, drift, mixes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.automl.decisions import Reopen, Rotate, Swap
from onlineauto.engine.event.live_config_kernels import loss_level, reward_level
from onlineauto.engine.report.search_summary import outside_warning
from onlineauto.engine.search.journal import decision_of
from onlineauto.errors import InputError, OptionError
from onlineauto.estimators.scale_kernels import FLOOR
from tests.engine.test_searching import journal_of, recorded, stream
from tests.learners.model_view import lanes_of

NOTHING_IS_DECIDED: dict[str, Any] = {"automl_significance_level": 1e-99}


def crossed_stream(n: int, *, pair: tuple[str, str] = ("a", "b"), seed: int = 0) -> str:
    """Uniformly logged events in which the best of 4 actions depends on a pair of four namespaces."""
    draw = np.random.default_rng(seed)
    best = np.random.default_rng(7).integers(0, 4, (3, 3))
    lines = []
    for _ in range(n):
        context = {name: int(draw.integers(3)) for name in "abcd"}
        shown = int(draw.integers(4))
        reward = int(draw.random() < (0.9 if best[context[pair[0]], context[pair[1]]] == shown else 0.1))
        lines.append("shared " + " ".join(f"|{name} {name}{value}" for name, value in context.items()))
        lines += [f"0:{-reward}:0.25 |z {k}" if k == shown else f"|z {k}" for k in range(4)]
        lines.append("")
    return "\n".join(lines) + "\n"


class Residuals:
    """A reference of the model of an interaction: the shrunk mean of the residual of each feature."""

    def __init__(self) -> None:
        self.sums: dict[Any, tuple[float, float]] = {}
        self.gain = 0.0

    def learn(self, features: list[Any], residual: float) -> None:
        means = [self.sums.get(each, (0.0, 0.0)) for each in features]
        predicted = sum(total / (count + 10) for total, count in means) / len(features)
        self.gain += residual**2 - (residual - predicted) ** 2
        for each, (total, count) in zip(features, means, strict=True):
            self.sums[each] = (total + residual, count + 1)


def test_gains_of_interactions_equal_those_of_the_reference() -> None:
    """Each gain is a sum of squared residuals less those after shrunk means of the interaction."""
    workspace = Workspace(cb_adf=True, automl=1, default_lease=4000, predict_with="champion")
    twins: dict[tuple[bytes, ...], Residuals] = {}
    for event in crossed_stream(600).split("\n\n")[:-1]:
        lines = event.strip().splitlines()
        context = {part[:1].encode(): part.split()[1] for part in lines[0].split("|")[1:]}
        shown = next(k for k, line in enumerate(lines[1:]) if line.startswith("0:"))
        cost = float(lines[1 + shown].split(":")[1])
        low, high = workspace.label_range
        predicted = float(np.clip(workspace.predict(event)[shown], low, high))
        clipped_loss = min(max(predicted, low), high)
        workspace.learn(event)
        champion = set(workspace.searching.interactions(0))
        for interaction in workspace.estimates.gains():
            if interaction in champion or len(set(interaction)) < len(interaction):
                continue
            contexts = [name for name in interaction if name != b"z"]
            if len(contexts) == 2:
                key = (context[contexts[0]], context[contexts[1]], shown)
                twins.setdefault(interaction, Residuals()).learn([key], cost - clipped_loss)
    found = workspace.estimates.gains()
    assert len(twins) == 6
    for interaction, twin in twins.items():
        assert found[interaction] == pytest.approx(twin.gain, abs=0.05 + 0.05 * abs(twin.gain))
    assert max(twins, key=lambda each: found[each]) == (b"a", b"b", b"z")


def test_relevant_interaction_is_found_and_irrelevant_ones_are_not() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=4, lease=500).fit(crossed_stream(9000).encode())
    assert (b"a", b"b", b"z") in workspace.searching.interactions(0)
    assert len(workspace.searching.interactions(0)) <= 5, "none of the other five pairs of contexts"
    assert {change.by for change in workspace.searching.changes} <= {"reward", "loss"}


def test_champion_stays_if_no_interaction_helps() -> None:
    draw = np.random.default_rng(3)
    text = "".join(
        f"shared |a {draw.integers(3)} |b {draw.integers(3)}\n"
        + "".join(f"{f'0:{-int(draw.random() < 0.5)}:0.5 ' if k == shown else ''}|z {k}\n" for k in range(2))
        + "\n"
        for shown in draw.integers(0, 2, 8000).tolist()
    )
    workspace = Workspace(cb_explore_adf=True, automl=4, lease=500, search="interactions").fit(text.encode())
    gained = [set(change.after) - set(change.before) for change in workspace.searching.changes]
    assert not any(gained)


def test_test_of_losses_promotes_earlier_than_test_of_rewards() -> None:
    text = crossed_stream(9000).encode()
    first = {}
    for test in ("reward", "loss", "both"):
        workspace = Workspace(cb_explore_adf=True, automl=4, lease=500, champion_test=test).fit(text)
        changes = [change for change in workspace.searching.changes if (b"a", b"b", b"z") in change.after]
        assert {change.by for change in workspace.searching.changes} <= {"reward", "loss"} - (
            {"reward": {"loss"}, "loss": {"reward"}, "both": set()}[test]
        )
        first[test] = changes[0].events if changes else 9000
    assert first["loss"] < first["reward"]
    assert first["both"] < first["reward"]


CROSSED = ["Action|Time", "Action|User"]
"""What the search begins with on `stream`."""


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("learning_rate", {2.0, 0.0625}),
        ("power_t", {0.25, 0.75}),
        ("l1", {1e-6}),
        ("l2", {1e-6}),
        ("cb_type", {"dr", "ips"}),
    ],
)
def test_each_slot_learns_with_its_own_settings(name: str, others: set[Any]) -> None:
    """Like a model without search with these settings; with dr, each slot has a second lane for estimates."""
    text = "".join(stream(300)).encode()
    options: dict[str, Any] = {"cb_explore_adf": True, "min_prediction": -1, "max_prediction": 1}
    bits = 11 if name == "cb_type" else 10
    searched = Workspace(automl=3, search=name, bit_precision=bits, **NOTHING_IS_DECIDED, **options)
    together = searched.fit(text)
    for slot, config in enumerate(together.searching.live_configs.configs):
        settings = dict(config.settings)
        bits = 11 if settings.get("cb_type") == "dr" else 10
        alone = Workspace(
            experimental_full_name_interactions=CROSSED, bit_precision=bits, **{**options, **settings}
        ).fit(text)
        lanes = [slot, slot + 3][: alone.weights.shape[2]]
        exactly = name in ("learning_rate", "power_t", "l2")  # else sums are in another order
        tolerance = 0.0 if exactly else 1e-3
        np.testing.assert_allclose(together.weights[..., lanes], alone.weights, tolerance, tolerance)
    assert {
        each for config in together.searching.live_configs.configs for _, each in config.settings
    } == others


@pytest.mark.parametrize("cb_type", ["mtr", "dr"])
def test_copied_champion_has_its_penalties_applied(cb_type: str) -> None:
    workspace = Workspace(
        cb_explore_adf=True, cb_type=cb_type, automl=2, l1=1e-3, l2=1e-2, **NOTHING_IS_DECIDED
    )
    workspace.fit("".join(stream(400)).encode())
    model, slots = workspace.learner.model, workspace.searching.live_configs
    lane_numbers = lanes_of(workspace)
    gravity, contraction = float(lane_numbers.gravity[0]), float(lane_numbers.contraction[0])
    assert gravity > 0
    assert 0 < contraction < 1
    lanes = range(0, 4, 2) if cb_type == "dr" else range(1)
    learnt = [model.weights[:, lane].copy() for lane in lanes]
    bent = [np.sign(each) * np.maximum(np.abs(each) - gravity, 0) * contraction for each in learnt]
    slots._lanes.copy(0, 1, model)
    for lane, expected in zip(lanes, bent, strict=True):
        np.testing.assert_allclose(model.weights[:, lane + 1], expected, rtol=1e-5, atol=1e-9)
    assert (lane_numbers.gravity[1], lane_numbers.contraction[1]) == (0, 1)


@pytest.mark.parametrize("slots", [2, 4])
def test_late_namespaces_are_tried_at_once(slots: int) -> None:
    draw = np.random.default_rng(0)
    lines = []
    for i in range(6000):
        late = int(draw.integers(3))
        shown, best = int(draw.integers(3)), late if i >= 4000 else int(draw.integers(3))
        lines.append(
            f"shared |a a{draw.integers(4)} |b b{draw.integers(4)}" + (f" |c c{late}" if i >= 4000 else "")
        )
        lines += [f"0:{-int(best == k)}:0.333333 |z {k}" if k == shown else f"|z {k}" for k in range(3)]
        lines.append("")
    workspace = Workspace(cb_explore_adf=True, automl=slots, search="interactions")
    entries = journal_of(workspace)
    workspace.fit(("\n".join(lines) + "\n").encode())
    tried = [each for each in entries if getattr(each, "why", "") == "namespaces seen late: c"]
    assert [each.events for each in tried] == [4000]
    assert (b"c", b"z") in workspace.searching.interactions(0)
    assert any(4000 < change.events < 4500 for change in workspace.searching.changes)


def test_search_continues_with_two_slots() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=2, lease=100, **NOTHING_IS_DECIDED)
    entries = journal_of(workspace)
    workspace.fit("".join(stream(3000)).encode())
    rotations = [each for each in map(decision_of, entries) if isinstance(each, Rotate) and each.live == 1]
    assert len({each.config for each in rotations}) > 4


def test_namespaces_repeated_on_each_line_are_context() -> None:
    events = crossed_stream(2000).split("\n\n")[:-1]
    repeated = []
    for event in events:
        shared, *actions = event.strip().splitlines()
        context = shared.removeprefix("shared ")
        repeated += [f"{line} {context}" for line in actions] + [""]
    workspace = Workspace(cb_explore_adf=True, automl=4, lease=500)
    entries = journal_of(workspace)
    workspace.fit(("\n".join(repeated) + "\n").encode())
    first = next(each for each in map(decision_of, entries) if isinstance(each, Rotate))
    assert set(first.config.elements) == {(name, b"z") for name in (b"a", b"b", b"c", b"d")}
    assert (b"a", b"b", b"z") in workspace.searching.interactions(0)


def test_least_probability_is_learnt_from_the_other_actions() -> None:
    """One of three actions is logged with 0.9, so the others have 0.05 each, or one of them less."""
    event = "shared |u x\n0:-1:0.9 |a y\n|a z\n|a w\n\n"
    workspace = Workspace(cb_explore_adf=True, automl=2).fit(event.encode())
    assert workspace.searching.live_configs.arrays.statistics.scale[FLOOR] == pytest.approx(0.05)
    known = Workspace(cb_explore_adf=True, automl=2, min_prob=0.02).fit(event.encode())
    assert known.searching.live_configs.arrays.statistics.scale[FLOOR] == 0.02


def test_wrong_min_prob_is_reported() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=2, min_prob=0.9).fit("".join(stream(50)).encode())
    warning = outside_warning(workspace.searching, costs=(-1.0, 0.0))
    assert warning is not None
    assert "logged with less than --min_prob 0.9" in warning
    right = Workspace(cb_explore_adf=True, automl=2, min_prob=0.3).fit("".join(stream(50)).encode())
    assert outside_warning(right.searching, costs=(-1.0, 0.0)) is None


def test_both_tests_of_a_challenger_share_its_level() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=4).fit("".join(stream(400)).encode())
    live = workspace.searching.live_configs.arrays
    for slot in range(1, live.n):
        by_reward, by_loss = reward_level(live, slot), loss_level(live, slot)
        told = bool(live.tests.alike[slot])
        assert by_reward + 2 * by_loss * told <= live.tests.levels[slot] * (1 + 1e-12)
    assert live.tests.alike[1 : live.n].any()


def test_returning_config_continues_with_its_evidence() -> None:
    workspace = Workspace(
        cb_explore_adf=True, automl=2, lease=16, priority_challengers=0, **NOTHING_IS_DECIDED
    )
    entries = journal_of(workspace)
    left: dict[Any, int] = {}
    came_back = 0
    for event in stream(1500):
        before = {config: workspace.estimates.updates(slot) for slot, config in slots_of(workspace)}
        del entries[:]
        workspace.learn(event)
        for decision in map(decision_of, entries):
            if isinstance(decision, Rotate) and decision.live > 0:
                left |= before
                if decision.config in left and decision.config not in before:
                    came_back += 1
                    assert workspace.estimates.updates(decision.live) == left[decision.config] + 1
    assert came_back > 3


def slots_of(workspace: Workspace) -> list[tuple[int, Any]]:
    return list(enumerate(workspace.searching.live_configs.configs))[1:]


def drifting(n: int) -> bytes:
    return (crossed_stream(n) + crossed_stream(n, pair=("c", "d"), seed=1)).encode()


@pytest.mark.parametrize("on_drift", ["ignore", "reopen", "reset_challengers", "reset_model"])
def test_search_follows_a_change_of_the_best_interaction(on_drift: str) -> None:
    workspace = Workspace(cb_explore_adf=True, automl=4, lease=500, on_drift=on_drift)
    entries = journal_of(workspace)
    workspace.fit(drifting(9000))
    reopened = [each for each in map(decision_of, entries) if isinstance(each, Reopen)]
    assert len(reopened) == workspace.searching.n_alarms
    assert (b"c", b"d", b"z") in workspace.searching.interactions(0)


@pytest.mark.parametrize("on_drift", ["ignore", "reopen", "reset_challengers", "reset_model"])
def test_worse_predictions_of_the_champion_raise_an_alarm(on_drift: str) -> None:
    """Rewards that the champion predicts become rewards that it cannot predict."""
    draw = np.random.default_rng(5)
    learnt = crossed_stream(6000, pair=("a", "a"))
    events = crossed_stream(9000, seed=1).replace("0:-1:", "0:0:").split("\n\n")
    lost = "\n\n".join(event.replace("0:0:", f"0:{-int(draw.integers(2))}:") for event in events)
    workspace = Workspace(cb_explore_adf=True, automl=1, lease=4000, on_drift=on_drift)
    entries = journal_of(workspace)
    workspace.fit((learnt + lost).encode())
    told = [(each.events, decision_of(each)) for each in entries]
    reopened = [(events, each) for events, each in told if isinstance(each, Reopen)]
    assert len(reopened) == workspace.searching.n_alarms
    assert bool(reopened) == (on_drift != "ignore")
    assert all(6000 < events < 14000 and each.what == on_drift for events, each in reopened)


def test_search_of_single_lines_mixes_predictions() -> None:
    draw = np.random.default_rng(0)
    table = draw.normal(size=(4, 4))
    rows = [(int(draw.integers(4)), int(draw.integers(4))) for _ in range(4000)]
    text = "".join(f"{table[i, j] + 0.1 * draw.normal():.4f} |a a{i} |b b{j} |c c{i ^ j}\n" for i, j in rows)
    errors = {}
    for predict_with in ("champion", "mix"):
        workspace = Workspace(automl=4, lease=500, predict_with=predict_with)
        total = 0.0
        for _, outcomes in workspace.stream(text.encode()):
            total += float(((outcomes.prediction - outcomes.label) ** 2).sum())
        errors[predict_with] = total / len(rows)
        says = workspace.searching.live_configs.arrays.mix
        assert says.sum() == pytest.approx(1)
        assert (b"a", b"b") in workspace.searching.interactions(0)
        low, high = workspace.estimates.lower(0), workspace.estimates.upper(0)
        assert low < 0.0
        assert low < high <= 0.0
    assert errors["mix"] < errors["champion"] < table.var()


def test_costs_may_have_any_range() -> None:
    for low, high in ((-1000.0, -999.0), (0.0, 1e-4), (3.0, 50.0)):
        text = crossed_stream(4000).replace("0:-1:", f"0:{low}:").replace("0:0:", f"0:{high}:")
        workspace = Workspace(cb_explore_adf=True, automl=2, champion_test="reward", lease=500)
        workspace.fit(text.encode())
        bounds = workspace.estimates.lower(0), workspace.estimates.upper(0)
        slack = 1e-5 * abs(low)
        assert -high - slack <= bounds[0] <= bounds[1] <= -low + slack


@pytest.mark.parametrize("text", ["1", "1,0", "0,inf", "a,b", "0,1,2"])
def test_cost_range_that_is_not_two_numbers_is_rejected(text: str) -> None:
    with pytest.raises(OptionError, match="cost_range"):
        Workspace(cb_adf=True, automl=2, cost_range=text)


def test_missing_probabilities_are_rejected_or_taken_as_uniform() -> None:
    text = "".join(stream(200))
    bare = text.replace(":0.3333 ", " ").encode()
    known = Workspace(cb_explore_adf=True, automl=2).fit(text.replace(":0.3333 ", f":{1 / 3:.9f} ").encode())
    with pytest.warns(UserWarning, match="taken as logged uniformly"):
        taken = Workspace(cb_explore_adf=True, automl=2, missing_probability="uniform").fit(bare)
    assert np.allclose(taken.weights, known.weights, rtol=1e-4, atol=1e-6)
    assert taken.diagnostics.counts.total() == 200
    refused = Workspace(cb_explore_adf=True, automl=2)
    with pytest.raises(InputError, match="--missing_probability"):
        refused.fit(bare)
    assert refused.searching.n_learnt == 0
    assert refused.diagnostics.counts.total() == 200


def test_exchange_of_configs_is_replayed(tmp_path: Any) -> None:
    path, text = tmp_path / "journal.jsonl", drifting(5000)
    options: dict[str, Any] = {"cb_explore_adf": True, "automl": 4, "lease": 500}
    first = recorded(path, text, **options)
    again = Workspace(**options, replay=str(path))
    decisions = journal_of(again)
    again.fit(text)
    assert any(isinstance(each, Swap) and each.keeps for each in map(decision_of, decisions))
    assert again.weights.tobytes() == first.weights.tobytes()
    assert again.searching.replay_warning is None


@pytest.mark.parametrize("oracle", ["one_diff", "one_diff_inclusion", "rand", "stepwise"])
def test_kept_configs_are_tried_again_replayed_and_stored(oracle: str, tmp_path: Any) -> None:
    """A waiting config survives a change of champion; a stored search continues like one that did not end."""
    path = tmp_path / "journal.jsonl"
    text = "".join(stream(2000)).encode() if oracle == "one_diff_inclusion" else drifting(3000)
    options: dict[str, Any] = {"cb_explore_adf": True, "automl": 4, "lease": 100, "oracle_type": oracle}
    options |= {"keep_configs": True, "automl_significance_level": 0.9}
    first = recorded(path, text, **options)
    again = Workspace(**options, replay=str(path))
    decisions = journal_of(again)
    again.fit(text)
    assert again.weights.tobytes() == first.weights.tobytes()
    assert again.searching.replay_warning is None
    swaps = [each for each in map(decision_of, decisions) if isinstance(each, Swap)]
    assert swaps
    assert all(each.keeps for each in swaps)
    half = text[: text.index(b"\n\n", len(text) // 2) + 2]
    stored = Workspace(**options).fit(half)
    stored.save(tmp_path / "half.model")
    continued = Workspace.load(tmp_path / "half.model").fit(text[len(half) :])
    assert continued.weights.tobytes() == first.weights.tobytes()
    assert continued.searching.search == first.searching.search
    dropping = Workspace(**options | {"keep_configs": False}).fit(text)
    assert len(first.searching.search.candidates) > len(dropping.searching.search.candidates)


@pytest.mark.parametrize("oracle", ["stepwise", "one_diff_inclusion"])
def test_a_waiting_config_overtakes_a_champion_that_earns_less(oracle: str) -> None:
    """Its bound is of better days. It takes the place of a challenger, and the champion becomes one."""
    text = crossed_stream(1000) + crossed_stream(3000).replace("0:-1:", "0:0:")
    options: dict[str, Any] = {"cb_explore_adf": True, "automl": 3, "lease": 64, "on_drift": "ignore"}
    options |= {"oracle_type": oracle, "champion_test": "reward", "predict_with": "champion"}
    for overtakes in (True, False):
        workspace = Workspace(**options, waiting_overtakes=overtakes)
        entries = journal_of(workspace)
        workspace.fit(text.encode())
        decisions = [decision_of(entry) for entry in entries]
        found = [
            number
            for number, each in enumerate(decisions)
            if isinstance(each, Rotate) and each.why == "overtakes the champion while it waits"
        ]
        assert bool(found) is overtakes
        for number in found:
            rotate, swap = decisions[number : number + 2]
            assert isinstance(rotate, Rotate)
            assert isinstance(swap, Swap)
            assert (swap.live, swap.config) == (rotate.live, rotate.config)
    for problem in ({"estimator": "robust"}, {"vw_exact": True}):
        with pytest.raises(OptionError, match="--waiting_overtakes has no effect with"):
            Workspace(cb_explore_adf=True, automl=3, waiting_overtakes=True, **problem)


def noisy_lines(n: int) -> str:
    """Single lines in which one namespace tells the label, and two others are noise."""
    draw = np.random.default_rng(0)
    lines = []
    for i in range(n):
        x = draw.normal(size=3)
        noise = " ".join(f"n{j}:{draw.normal() * 2:.2f}" for j in draw.integers(0, 2000, 10))
        label = x @ [1, -0.5, 0.2] + 0.1 * draw.normal()
        lines.append(f"{label:.4f} |x a:{x[0]:.3f} b:{x[1]:.3f} c:{x[2]:.3f} |noise {noise} |id u{i}")
    return "\n".join(lines) + "\n"


def test_harmful_namespaces_are_left_out() -> None:
    workspace = Workspace(automl=4, lease=500, search="namespaces").fit(noisy_lines(6000).encode())
    assert workspace.searching.interactions(0) == ((b"x",),)
    kept = Workspace(automl=4, lease=500, search="interactions").fit(noisy_lines(1000).encode())
    assert not any(len(each) == 1 for each in kept.searching.interactions(0))


@pytest.mark.parametrize(
    "given", [{}, {"sgd": True, "learning_rate": 0.01}, {"l1": 1e-4}, {"noconstant": True}]
)
@pytest.mark.parametrize("bandit", [True, False])
def test_champion_with_all_namespaces_learns_like_a_model_without_search(
    bandit: bool, given: dict[str, Any]
) -> None:
    """The champion has all namespaces at first, so it learns what a model without search learns."""
    text = crossed_stream(400) if bandit else noisy_lines(400)
    options: dict[str, Any] = {"bit_precision": 20, **given} | ({"cb_explore_adf": True} if bandit else {})
    together = Workspace(automl=3, search="namespaces", **NOTHING_IS_DECIDED, **options)
    outcomes = [outcomes for _, outcomes in together.stream(text.encode())]
    crossed = ["z|" + name for name in "abcd"] if bandit else []
    alone = Workspace(experimental_full_name_interactions=crossed, **options)
    expected = [outcomes for _, outcomes in alone.stream(text.encode())]
    np.testing.assert_allclose(together.weights[..., 0], alone.weights[..., 0], 1e-3, 1e-4)
    found, right = (np.concatenate([each.n_features for each in some]) for some in (outcomes, expected))
    assert np.array_equal(found, right)
