"""The learned policy: its network, its files, its guard, its training, and its life in a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto.cluster import (
    Cluster,
    ClusterPolicy,
    Demand,
    Fair,
    Fifo,
    History,
    MarginalGain,
    Situation,
    Srtf,
    allocate,
)
from onlineauto.cluster.learned import Guarded, Improving, Learned, WarmUp
from onlineauto.cluster.learned.net import (
    Adam,
    NetworkInputs,
    backward,
    draw_weights,
    features,
    forward,
    scores,
)
from onlineauto.cluster.learned.training import agreement, decisions_of, imitate, recorded_decisions
from onlineauto.cluster.policies.policy import best_choices
from onlineauto.cluster.policies.speeds import Speeds
from onlineauto.cluster.simulator import Simulation, Workload, compare, draw_traces, record
from onlineauto.cluster.simulator.simulation import _record
from onlineauto.errors import InputError, OptionError
from onlineauto.testing import check_policy
from onlineauto.workspace.model_file import encode_tree, read_file, replace_file

pytestmark = pytest.mark.lane("ci")

HELD_OUT = range(3_000_000, 3_000_016)
OWN = Workload().speeds()


def crowded(rate: float = 3.0) -> Situation:
    """Return the situation of some clusters after five slots."""
    simulation = Simulation(draw_traces(Workload(rate=rate), range(4), jobs=30))
    for _ in range(5):
        given = allocate(Fair(), simulation.situation())
        simulation.advance(given)
    return allocate(MarginalGain(), simulation.situation())


def test_learned_policies_conform() -> None:
    check_policy(Learned.load)
    check_policy(lambda: Learned.untrained(seed=3))


def test_the_order_of_rows_and_empty_rows_do_not_matter() -> None:
    weights = draw_weights(np.random.default_rng(0), 3)
    read = features(crowded(), OWN)
    order = np.random.default_rng(1).permutation(read.valid.shape[1])
    moved = NetworkInputs(read.jobs[:, order], read.cluster, read.valid[:, order])
    whole, moved_scores = scores(weights, read), scores(weights, moved)
    parts = np.split(whole[:, :-1], 3, axis=1)
    assert np.allclose(
        np.concatenate([*(part[:, order] for part in parts), whole[:, -1:]], 1), moved_scores, atol=1e-6
    )
    wide = NetworkInputs(
        np.concatenate([read.jobs, np.ones((4, 3, read.jobs.shape[2]))], 1),
        read.cluster,
        np.concatenate([read.valid, np.zeros((4, 3), np.bool_)], 1),
    )
    assert np.allclose(np.split(scores(weights, wide)[:, :-1], 3, axis=1)[0][:, :-3], parts[0], atol=1e-6)


def test_gradients_are_those_of_small_differences() -> None:
    draw = np.random.default_rng(0)
    drawn = draw_weights(draw, 3)
    weights = {name: array + 0.1 * draw.standard_normal(array.shape) for name, array in drawn.items()}
    read = features(crowded(), OWN)
    read = NetworkInputs(read.jobs.astype(np.float64), read.cluster.astype(np.float64), read.valid)
    layers = forward(weights, read)
    slopes = draw.standard_normal(layers.of_jobs.shape), draw.standard_normal(layers.of_cluster.shape)

    def loss(weights: dict[str, Any]) -> float:
        found = forward(weights, read)
        return float((found.of_jobs * slopes[0]).sum() + (found.of_cluster * slopes[1]).sum())

    gradient = backward(weights, read, layers, *slopes)
    for name, array in weights.items():
        for _ in range(3):
            step = np.zeros(array.shape)
            step[tuple(draw.integers(size) for size in array.shape)] = 1e-6
            sides = [loss({**weights, name: array + sign * step}) for sign in (1, -1)]
            assert (sides[0] - sides[1]) / 2 == pytest.approx((gradient[name] * step).sum(), abs=1e-9)


def test_adam_finds_the_minimum_of_a_parabola() -> None:
    weights = {"x": np.array([3.0, -200.0])}
    adam = Adam(weights)
    for step in range(2000):
        adam.step({"x": weights["x"] - 1}, 1.0 * (1 - step / 2000))
    assert np.allclose(weights["x"], 1, atol=1e-3)


def test_kinds_have_no_effect_beyond_their_speeds() -> None:
    situation = crowded()
    other = replace(situation, kinds=tuple(f"other-{name}" for name in situation.kinds))
    renamed = Speeds({f"other-{name}": OWN.coefficients(name) for name in situation.kinds})
    policy = Learned.load()
    own, its = policy.copy(OWN), policy.copy(renamed)
    assert np.array_equal(own.score(situation), its.score(other))
    assert not np.array_equal(own.score(situation), own.score(other))  # unknown speeds
    assert np.isfinite(own.score(other)).all()
    units = Speeds({name: OWN.coefficients(name) / 1000 for name in situation.kinds})
    many = replace(situation, done=situation.done * 1000, remaining=situation.remaining * 1000)
    assert np.allclose(policy.copy(units).score(many), own.score(situation), atol=1e-4)


def test_the_policy_of_the_package_is_faster_than_fair_sharing() -> None:
    policy = Learned.load().copy(OWN)
    for rate, most in ((0.3, 0.85), (0.5, 0.9)):
        traces = draw_traces(Workload(rate=rate), HELD_OUT)
        compared = compare({"fair": Fair(), "learned": policy}, traces, by="fair")[1]
        assert compared.ratio < most
        assert compared.high < 1
        assert compared.finished == 1


def test_a_saved_policy_has_the_same_scores(tmp_path: Path) -> None:
    policy = Learned.load()
    policy.save(tmp_path / "policy.oam")
    again = Learned.load(tmp_path / "policy.oam")
    situation = crowded()
    assert np.array_equal(again.score(situation), policy.score(situation))
    assert again.critic is not None
    assert (tmp_path / "policy.oam").stat().st_size < 48_000


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": 2},
        {"policy": None},
        {"weights": {}},
        {"weights": {"job": np.zeros((32, 32), np.float32)}},
        {"weights": {**Learned.untrained().weights, "job": np.zeros((32, 32))}},
        {"weights": {**Learned.untrained().weights, "job": np.zeros((32, 31), np.float32)}},
        {"weights": {**Learned.untrained().weights, "bias": "x"}},
        {"weights": {**Learned.untrained().weights, "bias": np.full(32, np.nan, np.float32)}},
    ],
)
def test_other_files_are_rejected(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "policy.oam"
    Learned.untrained().save(path)
    replace_file(path, encode_tree({**read_file(path), **changes}))
    with pytest.raises(InputError, match=r"not a policy that Learned\.save wrote|is not finite"):
        Learned.load(path)


def test_damaged_files_are_rejected(tmp_path: Path) -> None:
    Learned.untrained().save(tmp_path / "whole.oam")
    whole = (tmp_path / "whole.oam").read_bytes()
    for cut in [0, 1, 50, len(whole) // 2, len(whole) - 1]:
        (tmp_path / "torn.oam").write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"torn\.oam: not a policy"):
            Learned.load(tmp_path / "torn.oam")


def test_the_guard_trusts_a_policy_that_is_proved_faster() -> None:
    workload = Workload(rate=0.4)
    good = Guarded(MarginalGain(workload.speeds()), Fair())
    assert not good.trusted
    assert good.judge(workload)
    assert good.found is not None
    assert good.found.high < 1
    worse = Guarded(Fifo(1), Fair())
    assert not worse.judge(Workload(rate=0.1))
    situation = crowded()
    assert np.array_equal(worse.score(situation), Fair().score(situation))
    assert np.array_equal(good.score(situation), good.policy.score(situation))


def test_the_guard_judges_on_observed_records() -> None:
    workload = Workload(rate=0.4)
    guarded = Guarded(MarginalGain(), Fair(), every=40)
    record(guarded, draw_traces(workload, [5], jobs=40), learns=True)
    assert guarded.found is not None
    assert guarded.trusted
    aside = Guarded(MarginalGain(), Fair(), every=40, aside=True)
    record(aside, draw_traces(workload, [5], jobs=40), learns=True)
    assert aside._thread is not None
    aside._thread.join(60)
    assert aside.found is not None
    idle = Guarded(MarginalGain(), Fair(), every=1)
    record(idle, draw_traces(workload, [5], jobs=2), learns=True)  # too little to judge by
    assert idle.found is None


def test_the_guarded_policy_is_not_slower_than_fair() -> None:
    workload = Workload(rate=1.2)
    guarded = Learned.load().copy(OWN).guarded(by=Fair())
    guarded.judge(workload)
    policies: dict[str, ClusterPolicy] = {"fair": Fair(), "guarded": guarded}
    assert compare(policies, draw_traces(workload, HELD_OUT), by="fair")[1].ratio <= 1


QUICK = WarmUp(traces=8, jobs=15, steps=400)


def test_a_teacher_is_imitated() -> None:
    workload = Workload()
    policy = Learned.warm_up(workload, settings=replace(QUICK, smoothing=0.0))
    held_out = decisions_of(Fair(), workload, OWN, range(77, 81), 15)
    assert agreement(policy, held_out) > 0.85
    order = np.random.default_rng(0).permutation(len(held_out.actions))
    assert agreement(policy, held_out._replace(actions=held_out.actions[order])) < 0.4
    assert agreement(Learned.untrained(), held_out) < 0.65
    actions = best_choices(scores(policy.weights, held_out.read), held_out.choices)
    assert held_out.choices[np.arange(len(actions)), actions].all()


def recorded(policy: ClusterPolicy, seeds: range, jobs: int = 30) -> Iterator[History]:
    for seed in seeds:
        yield record(policy, draw_traces(Workload(rate=1.0), [seed], jobs=jobs))


@pytest.mark.parametrize("scheduler", [Fair(), Srtf(OWN)], ids=["drf", "srtf"])
def test_the_recorded_decisions_of_a_history_are_imitated(scheduler: ClusterPolicy) -> None:
    history, held_out = recorded(scheduler, range(2), jobs=150)
    settings = WarmUp(smoothing=0.0)
    policy = Learned.warm_up(history=history, settings=settings)
    decisions, unseen = recorded_decisions(history), recorded_decisions(held_out)
    assert agreement(policy, unseen) > 0.7
    order = np.random.default_rng(0).permutation(len(decisions.actions))
    control = imitate(decisions._replace(actions=decisions.actions[order]), settings, seed=0)
    assert agreement(control, unseen) < 0.5


def test_decisions_of_a_history_lead_to_its_allocations() -> None:
    history = next(recorded(MarginalGain(OWN), range(3, 4)))
    decisions = recorded_decisions(history)
    nothing = decisions.choices.shape[1] - 1
    # Marginal gain stops before all resources are taken, so its history teaches to stop.
    assert (decisions.actions == nothing).sum() > 10
    many = sum(record.workers + record.servers for record in history.records)
    places = nothing // 3
    sizes = np.where(decisions.actions >= 2 * places, 2, 1) * (decisions.actions != nothing)
    forced = sum(decisions.choices.sum(1) == 1)
    assert sizes.sum() <= many
    assert sizes.sum() > 0.8 * many - 2 * forced


def test_a_history_or_a_workload_is_needed_to_warm_up() -> None:
    with pytest.raises(OptionError, match="give a workload"):
        Learned.warm_up()
    history = next(recorded(Fair(), range(1)))
    with pytest.raises(OptionError, match="give a workload"):
        Learned.warm_up(history=history, teacher=Fair())
    with pytest.raises(InputError, match="no slot in which a policy had a choice"):
        Learned.warm_up(history=History(history.head))


class Digging:
    """A job of 400 units; each worker does one in each poll."""

    demand, workers, done = Demand({"CPU": 1}), 0, 0.0

    def resize(self, workers: int, servers: int) -> None:
        self.workers = workers

    def progress(self) -> tuple[float, float]:
        self.done = min(self.done + self.workers**0.7, 4000)
        return self.done, 4000


def dug(path: Path, slots: int) -> Learned:
    cluster = Cluster("learned", slot=0.02, capacity={"CPU": 6}, history=path)
    for _ in range(3):
        cluster.submit(Digging(), kind="digging")
    cluster.run(slots=slots)
    assert isinstance(cluster.policy, Guarded)
    assert isinstance(cluster.policy.policy, Learned)
    return cluster.policy.policy


def test_a_cluster_improves_its_policy_and_a_restart_continues_it(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    policy = dug(path, 20)
    packaged = Learned.load()
    assert all((policy.weights[name] != array).any() for name, array in packaged.weights.items())
    state = tmp_path / "log.jsonl.policy"
    before = state.read_bytes()
    again = Learned.load().live()
    again.keep(state)
    assert all(np.array_equal(again.weights[name], array) for name, array in policy.weights.items())
    assert b"".join(encode_tree({**again._tree(), **again._learner.tree()})) == before  # type: ignore[union-attr]
    later = dug(path, 3)
    assert later._learner is not None
    assert later._learner.slots == 23
    assert state.read_bytes() != before


def lived(policy: Learned, seed: int, slots: int) -> Iterator[Learned]:
    """Let a policy divide a simulated cluster; yield it after each slot."""
    yield policy
    simulation = Simulation(draw_traces(Workload(rate=0.6), [seed], jobs=40))
    for _ in range(slots):
        traces, given = simulation.traces, allocate(policy, simulation.situation())
        slot = simulation.advance(given)
        policy.observe([_record(traces, given, slot, row) for row in given.valid[0].nonzero()[0]])
        yield policy


def test_a_continued_policy_learns_like_one_that_was_never_stopped(tmp_path: Path) -> None:
    whole = [*lived(Learned.load().live(), 5, 14)][-1]
    simulation = lived(Learned.load().live(), 5, 14)
    for _ in range(8):
        half = next(simulation)
    half.keep(tmp_path / "state")
    next(simulation)  # the slot that is saved
    resumed = Learned.load().live()
    resumed.keep(tmp_path / "state")
    half.weights, half.critic, half._learner = resumed.weights, resumed.critic, resumed._learner
    assert half._learner is not None
    half._learner.policy = half
    *_, last = simulation
    assert all(np.array_equal(last.weights[name], array) for name, array in whole.weights.items())


def test_damaged_states_are_rejected(tmp_path: Path) -> None:
    policy = [*lived(Learned.load().live(), 5, 3)][-1]
    policy.keep(tmp_path / "state")
    assert policy._learner is not None
    tree = {**policy._tree(), **policy._learner.tree()}
    damages: list[dict[str, Any]] = [{"steps": [1]}, {"actor_mean": {}}, {"replay": {"jobs": 1}}]
    for changes in damages:
        replace_file(tmp_path / "state", encode_tree({**tree, **changes}))
        with pytest.raises(InputError, match="state"):
            Learned.load().live().keep(tmp_path / "state")


def test_the_guard_bounds_the_loss_of_a_sabotaged_network() -> None:
    workload = Workload(rate=0.4)
    sabotaged = Learned.load().copy(OWN)
    sabotaged.weights = {name: -array for name, array in sabotaged.weights.items()}
    guarded = Guarded(sabotaged, Fair())
    guarded.judge(workload)
    policies: dict[str, ClusterPolicy] = {"fair": Fair(), "guarded": guarded, "sabotaged": sabotaged}
    _, with_guard, without = compare(policies, draw_traces(workload, HELD_OUT), by="fair")
    assert without.ratio > 1.1
    assert with_guard.ratio <= 1.02


def test_the_guard_takes_over_from_a_policy_that_becomes_worse() -> None:
    workload = Workload(rate=0.4)
    policy = Learned.load().copy(OWN)
    guarded = Guarded(policy, Fair())
    assert guarded.judge(workload)
    policy.weights["nothing_out"] += 100  # the policy gives each job one bundle only
    assert not guarded.judge(workload)


@pytest.mark.slow
def test_improvement_needs_the_rewards_of_its_own_decisions() -> None:
    workload = Workload()
    traces = draw_traces(workload, HELD_OUT)
    warm = Learned.warm_up(workload)
    for permuted, low, high in ((False, 0.0, 0.93), (True, 0.98, 1.3)):
        policy = warm.improve(workload, settings=Improving(slots=400, permuted=permuted))
        compared = compare({"fair": Fair(), "learned": policy.copy(OWN)}, traces, by="fair")[1]
        assert low < compared.ratio < high
        assert permuted or compared.high < 1
