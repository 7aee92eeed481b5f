"""The environment of Gymnasium: its checker's rules, its masks, its rewards."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from onlineauto.cluster import Fair  # noqa: E402
from onlineauto.cluster.policies.policy import best  # noqa: E402
from onlineauto.cluster.simulator import Workload, draw_traces, run  # noqa: E402
from onlineauto.cluster.simulator.environment import ClusterEnv  # noqa: E402


def test_it_is_an_environment() -> None:
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of infinite bounds, and of rendering
        check_env(ClusterEnv(jobs=3), skip_render_check=True)


def test_any_play_by_the_masks_ends_and_is_rewarded_for_each_job() -> None:
    env, draw = ClusterEnv(Workload(rate=2, noise=0), jobs=6), np.random.default_rng(0)
    for seed in range(3):
        env.reset(seed=seed, options={"rate": 1.0})
        total, ended, steps = 0.0, False, 0
        while not ended:
            masks = env.action_masks()
            action = draw.choice(np.flatnonzero(masks))
            seen, reward, ended, _, about = env.step(np.int64(action))
            assert env.observation_space.contains(seen)
            total, steps = total + reward, steps + 1
            assert steps < 5000
        assert total == pytest.approx(6)
        assert about["mean"] > 0


def test_fair_sharing_in_it_is_fair_sharing() -> None:
    env = ClusterEnv(jobs=5)
    env.reset(seed=3)
    traces = env._simulation.traces
    ended = False
    while not ended:
        action = best(Fair().score(env._situation), env._situation.choices())[0]
        _, _, ended, _, about = env.step(action)
    assert about["mean"] == run(Fair(), traces).mean[0]
    assert len(draw_traces(env.workload, [1], jobs=5)) == 1


def test_what_cannot_be_done_ends_the_slot() -> None:
    env = ClusterEnv(jobs=2)
    env.reset(seed=1)
    nothing = 3 * env.workload.places
    empty_row = env.workload.places - 1
    while not env.action_masks()[nothing]:
        env.step(np.int64(env.action_masks().argmax()))
    before = env._simulation.now
    env.step(np.int64(empty_row))
    assert env._simulation.now == before + 1
