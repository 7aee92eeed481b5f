"""Crews of actors, with a stand-in for Ray: studies and partitions have the same results as without Ray."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from datasets.generate import text
from onlineauto import Workspace
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.cluster.partitions.run import PartitionedRun
from onlineauto.errors import OptionError, WorkersError
from onlineauto.tune import Callback, Float, Job, RayWorkers, Study
from onlineauto.tune.workers.trainable import Config
from onlineauto.work.on_ray import Actor
from tests.tune.workers import trainables
from tests.work import fake_ray

pytestmark = pytest.mark.ci
SHORT = RoundSchedule(alone=256, head=8, shortest=128, longest=64, growth=4)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = fake_ray.new_module()
    monkeypatch.setitem(sys.modules, "ray", module)
    return module


def study() -> Study:
    return Study({"rate": Float(0, 1)}, "fifo", "random", max_resource=9, max_trials=6, lease=1e6)


class Killer(Callback):
    """Kills the actors that are busy, once."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def on_report(self, job: Job, step: int, value: float) -> None:  # noqa: ARG002
        if job.trial == 1 and job.attempt == 0:
            for handle in self._ray.handles:
                fake_ray.kill(handle)


def test_a_study_whose_actors_are_killed_has_the_same_trials(ray: Any) -> None:
    here, there = study(), study()
    here.run(trainables.reporting)
    there.run(trainables.reporting, workers=2, executor="ray", callbacks=[Killer(ray)])
    assert {trial.number: trial.config for trial in there.trials} == {
        trial.number: trial.config for trial in here.trials
    }
    assert len(ray.handles) > 2
    assert {str(trial.state) for trial in there.trials} == {"TERMINATED"}


def test_trials_may_need_different_actors(ray: Any) -> None:
    workers = RayWorkers(2, needs=lambda config: {"CPU": 1 + round(config["rate"])})
    trained = study()
    trained.run(trainables.reporting, workers=workers, executor="ray")
    assert {str(trial.state) for trial in trained.trials} == {"TERMINATED"}


@pytest.mark.parametrize(
    ("value", "why"),
    [("many", "its value after step 9 is 'many', and no number"), (None, "it ended without a value")],
)
def test_values_that_are_no_numbers_are_printed(ray: Any, value: Any, why: str) -> None:
    failing = study()

    def loss(config: Config, resource: int) -> Any:
        return value if resource == 9 else 0.5

    failing.run(loss, workers=1, executor="ray")
    assert {trial.error for trial in failing.trials if trial.error} == {why}


def test_an_actor_that_cannot_begin_ends_the_run(ray: Any) -> None:
    class Broken:
        def ready(self) -> str:
            return "there is no module"

    with pytest.raises(OptionError, match="on its node there is no module"):
        Actor(Broken, bundles=((("CPU", 1),),)).receive()


def learnt(ray: Any, *, backend: str, kills_at: int = -1) -> bytes:
    workspace = Workspace(cb_explore_adf=True, live_configs=2, bit_precision=12)
    source, rounds = text("planted", events=900, seed=5), 0
    with PartitionedRun(workspace, source, schedule=SHORT, workers=2, backend=backend) as run:
        if backend == "ray":
            learn = run.pool.learn

            def kill_and_learn(*arguments: Any) -> Any:
                nonlocal rounds
                rounds += 1
                if rounds == kills_at:
                    fake_ray.kill(ray.handles[0])
                return learn(*arguments)

            run.pool.learn = kill_and_learn  # type: ignore[method-assign, assignment]
        run.step()
    return workspace.weights.tobytes()


def test_partitions_learnt_by_actors_that_are_killed_have_the_same_weights(ray: Any) -> None:
    assert learnt(ray, backend="ray", kills_at=2) == learnt(ray, backend="threads")
    assert len(ray.handles) == 3


def test_repeated_deaths_of_actors_end_the_run(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying:
        def __init__(self, command: str) -> None:
            pass

        def ready(self) -> None:
            pass

        def call(self, method: str, n_results: int, *arguments: bytes) -> tuple[bytes, ...]:  # noqa: ARG002
            for handle in ray.handles:
                fake_ray.kill(handle)
            return (b"",) * (1 + n_results)

    monkeypatch.setattr("onlineauto.cluster.partitions.on_ray.WorkerActor", Dying)
    with pytest.raises(WorkersError, match=r"workers have died 9 times in a row; .* The actor is dead"):
        learnt(ray, backend="ray")
