"""``run_study``: run the jobs of a study in this process, in worker processes or on Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError
from onlineauto.tune.store import MemoryStore
from onlineauto.tune.store.checkpoints import MemoryCheckpoints
from onlineauto.tune.workers.controller import Controller
from onlineauto.tune.workers.executors import run_here, run_in_processes, run_on_ray
from onlineauto.tune.workers.on_ray.ray_workers import RayWorkers
from onlineauto.tune.workers.trainable import takes_config_only

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from onlineauto.tune.store import Store
    from onlineauto.tune.store.checkpoints import Checkpoints
    from onlineauto.tune.workers.callbacks import Callback
    from onlineauto.tune.workers.heartbeat import Heartbeat
    from onlineauto.tune.workers.jobs import Jobs, TrialJob
    from onlineauto.tune.workers.resources import Workers
    from onlineauto.tune.workers.stoppers import Stopper
    from onlineauto.tune.workers.trainable import AnyTrainable

EXECUTORS: Final = ("processes", "ray")
"""Kinds of workers: processes of this machine, or actors of a Ray cluster."""


def run_study(
    study: Jobs,
    store: Store,
    trainable: AnyTrainable,
    *,
    workers: int | Workers | RayWorkers = 0,
    executor: str = "processes",
    heartbeat: Heartbeat,
    known: Callable[[TrialJob], Any],
    jobs: int | None = None,
    every: int = 1,
    folder: str | Path | None = None,
    stoppers: Sequence[Stopper] = (),
    callbacks: Sequence[Callback] = (),
) -> None:
    """Run jobs until the study is done or a limit is reached."""
    if executor not in EXECUTORS:
        raise OptionError(f"executor = {executor!r} is unknown; valid are {', '.join(EXECUTORS)}")
    controller = Controller(
        study,
        store,
        checkpoints_of(store, folder),
        heartbeat=heartbeat,
        known=known if takes_config_only(trainable) else None,
        jobs=jobs,
        waits=not isinstance(store, MemoryStore),
        every=every,
        stoppers=stoppers,
        callbacks=callbacks,
    )
    if executor == "ray":
        run_on_ray(controller, trainable, workers or 1)
    elif isinstance(workers, RayWorkers):
        raise OptionError('workers = RayWorkers(…) needs executor="ray"')
    elif workers:
        run_in_processes(controller, trainable, workers)
    else:
        run_here(controller, trainable)


def checkpoints_of(store: Store, folder: str | Path | None = None) -> Checkpoints:
    """Return the checkpoints of a study, which exist as long as its store."""
    if isinstance(store, MemoryStore):
        return store.checkpoints
    from onlineauto.tune.store.sql_store import SqlStore
    from onlineauto.tune.store.stored_checkpoints import StoredCheckpoints

    return StoredCheckpoints(store, folder) if isinstance(store, SqlStore) else MemoryCheckpoints()
