"""The learned policy: its network, its files, its guard; and, where PyTorch is installed, its training."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto.cluster import ClusterPolicy, Fair, Fifo, MarginalGain, Situation, allocate
from onlineauto.cluster.learned import Guarded, Improving, Learned, WarmUp
from onlineauto.cluster.learned.net import Net, NetworkInputs, draw_weights, features, forward
from onlineauto.cluster.policies.policy import best_choices
from onlineauto.cluster.simulator import Simulation, Workload, compare, draw_traces, record
from onlineauto.errors import InputError
from onlineauto.testing import check_policy

pytestmark = pytest.mark.lane("ci")

HELD_OUT = range(3_000_000, 3_000_016)


def crowded(rate: float = 3.0) -> Situation:
    """Return the situation of some clusters after five slots."""
    simulation = Simulation(draw_traces(Workload(rate=rate), range(4), jobs=30))
    for _ in range(5):
        given = allocate(Fair(), simulation.situation())
        simulation.advance(given)
    return allocate(MarginalGain(), simulation.situation())


def read_of(situation: Situation) -> NetworkInputs:
    names = Workload().names
    return features(situation, names, np.ones(len(names) + 1))


def test_learned_policies_conform() -> None:
    check_policy(Learned.load)
    check_policy(lambda: Learned.untrained(("study", "stream"), seed=3))


def test_the_order_of_rows_and_empty_rows_do_not_matter() -> None:
    net = Net(draw_weights(np.random.default_rng(0), 6, 3))
    read = read_of(crowded())
    order = np.random.default_rng(1).permutation(read.valid.shape[1])
    moved = NetworkInputs(read.jobs[:, order], read.cluster, read.valid[:, order])
    scores, moved_scores = net.scores(read), net.scores(moved)
    parts = np.split(scores[:, :-1], 3, axis=1)
    assert np.allclose(np.concatenate([*(part[:, order] for part in parts), scores[:, -1:]], 1), moved_scores)
    wide = NetworkInputs(
        np.concatenate([read.jobs, np.ones((4, 3, read.jobs.shape[2]))], 1),
        read.cluster,
        np.concatenate([read.valid, np.zeros((4, 3), np.bool_)], 1),
    )
    assert np.allclose(np.split(net.scores(wide)[:, :-1], 3, axis=1)[0][:, :-3], parts[0])


def test_jobs_of_unknown_kinds_have_finite_scores() -> None:
    situation = replace(crowded(), kinds=("a", "b", "c", "d", "e", "f"))
    assert not read_of(situation).jobs[..., :6].any()
    assert np.isfinite(Learned.load().score(situation)).all()


def test_the_policy_of_the_package_is_faster_than_fair_sharing() -> None:
    policy = Learned.load()
    for rate, most in ((0.3, 0.85), (0.5, 0.9)):
        traces = draw_traces(Workload(rate=rate), HELD_OUT)
        compared = compare({"fair": Fair(), "learned": policy}, traces, by="fair")[1]
        assert compared.ratio < most
        assert compared.high < 1
        assert compared.finished == 1


def test_a_saved_policy_has_the_same_scores(tmp_path: Path) -> None:
    policy = Learned.load()
    policy.save(tmp_path / "policy.npz")
    again = Learned.load(tmp_path / "policy.npz")
    assert again.kinds == policy.kinds
    situation = crowded()
    assert np.array_equal(again.score(situation), policy.score(situation))
    assert (tmp_path / "policy.npz").stat().st_size < 32_000


def forged(path: Path, **changes: Any) -> Path:
    """Return a saved policy with other arrays; None leaves one out."""
    Learned.untrained(("a", "b")).save(path)
    with np.load(path) as arrays:
        contents = {**arrays, **changes}
    np.savez(
        path, allow_pickle=True, **{name: array for name, array in contents.items() if array is not None}
    )
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"job": None},
        {"about": np.frombuffer(b'{"format": 2, "kinds": ["a", "b"]}', np.uint8)},
        {"about": np.frombuffer(b'{"format": 1, "kinds": ["a"]}', np.uint8)},
        {"about": np.frombuffer(b'{"format": 1, "kinds": ["a", "a"]}', np.uint8)},
        {"about": np.frombuffer(b'{"format": 1, "kinds": "ab"}', np.uint8)},
        {"about": np.frombuffer(b"[1]", np.uint8)},
        {"about": np.frombuffer(b"\xff", np.uint8)},
        {"scales": np.array([1, 1, np.nan], np.float32)},
        {"scales": np.array([1, 1, 0], np.float32)},
        {"bias": np.array(["x"], object)},
        {"bias": np.zeros((8, 4), np.float32)},
        {"job": np.zeros((32, 32), np.float64)},
        {"job": np.zeros((2000, 2000), np.float32)},
    ],
)
def test_forged_files_are_rejected(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a policy that Learned\.save wrote"):
        Learned.load(forged(tmp_path / "forged.npz", **changes))


def test_a_large_compressed_array_is_rejected_before_it_is_read(tmp_path: Path) -> None:
    bomb = forged(tmp_path / "bomb.npz", about=np.zeros(1 << 23, np.uint8))
    with zipfile.ZipFile(bomb) as stored, zipfile.ZipFile(tmp_path / "small.npz", "w", 8) as small:
        for name in stored.namelist():
            small.writestr(name, stored.read(name))
    assert (tmp_path / "small.npz").stat().st_size < 100_000
    with pytest.raises(InputError, match=r"about\.npy is too large"):
        Learned.load(tmp_path / "small.npz")


def test_damaged_files_are_rejected(tmp_path: Path) -> None:
    Learned.untrained(("a",)).save(tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    draw = np.random.default_rng(0)
    for cut in [0, 1, 50, len(whole) // 2, len(whole) - 1]:
        (tmp_path / "torn.npz").write_bytes(whole[:cut])
        with pytest.raises(InputError):
            Learned.load(tmp_path / "torn.npz")
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[draw.integers(len(whole))] ^= 1 << draw.integers(8)
        (tmp_path / "damaged.npz").write_bytes(damaged)
        try:
            Learned.load(tmp_path / "damaged.npz")
        except InputError:
            continue
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("readme", "nothing")
    with pytest.raises(InputError):
        Learned.load(tmp_path / "other.npz")


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
    guarded = Learned.load().guarded(by=Fair())
    guarded.judge(workload)
    policies: dict[str, ClusterPolicy] = {"fair": Fair(), "guarded": guarded}
    assert compare(policies, draw_traces(workload, HELD_OUT), by="fair")[1].ratio <= 1


def test_training_without_pytorch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ValueError, match=r"pip install '\.\[learned\]'"):
        Learned.warm_up(Workload())


QUICK = WarmUp(traces=8, jobs=15, steps=400)


def test_the_network_has_the_same_numbers_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    from onlineauto.cluster.learned import training

    weights = draw_weights(np.random.default_rng(0), 6, 3)
    read = read_of(crowded())
    actual = forward(weights, read)
    jobs, cluster = (torch.from_numpy(np.asarray(array, np.float32)) for array in (read.jobs, read.cluster))
    tensors = training.forward(training.as_tensors(weights), jobs, cluster, torch.from_numpy(read.valid))
    for one, other in zip(actual, tensors, strict=True):
        assert np.allclose(one, other.detach().numpy(), atol=1e-4)


def test_a_teacher_is_imitated() -> None:
    pytest.importorskip("torch")
    from onlineauto.cluster.learned.training import agreement, decisions_of, scales_of

    workload = Workload()
    policy = Learned.warm_up(workload, settings=replace(QUICK, smoothing=0.0))
    held_out = decisions_of(Fair(), workload, workload.names, scales_of(workload), range(77, 81), 15)
    assert agreement(policy, held_out) > 0.85
    jobs, cluster, valid, choices, actions = held_out
    order = np.random.default_rng(0).permutation(len(actions))
    assert agreement(policy, (jobs, cluster, valid, choices, actions[order])) < 0.4
    assert agreement(Learned.untrained(workload.names), held_out) < 0.5
    actions = best_choices(policy.net.scores(NetworkInputs(jobs, cluster, valid)), choices)
    assert choices[np.arange(len(actions)), actions].all()


@pytest.mark.slow
def test_improvement_needs_the_rewards_of_its_own_decisions() -> None:
    pytest.importorskip("torch")
    workload = Workload()
    traces = draw_traces(workload, HELD_OUT)
    warm = Learned.warm_up(workload)
    for permuted, low, high in ((False, 0.0, 0.93), (True, 0.98, 1.3)):
        policy = warm.improve(workload, settings=Improving(slots=400, permuted=permuted))
        compared = compare({"fair": Fair(), "learned": policy}, traces, by="fair")[1]
        assert low < compared.ratio < high
        assert permuted or compared.high < 1
