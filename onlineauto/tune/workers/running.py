"""``run_study``: run the jobs of a study, here or in processes, until there are no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.tune.store import MemoryStore
from onlineauto.tune.store.checkpoints import MemoryCheckpoints
from onlineauto.tune.workers.controller import Controller
from onlineauto.tune.workers.executors import run_here, run_in_processes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from onlineauto.tune.store import Store
    from onlineauto.tune.store.checkpoints import Checkpoints
    from onlineauto.tune.workers.callbacks import Callback
    from onlineauto.tune.workers.jobs import Jobs
    from onlineauto.tune.workers.resources import Workers
    from onlineauto.tune.workers.stoppers import Stopper
    from onlineauto.tune.workers.trainable import What

__all__ = ["checkpoints_of", "run_study"]


def run_study(
    study: Jobs,
    store: Store,
    what: What,
    *,
    workers: int | Workers = 0,
    lease: float = 60,
    jobs: int | None = None,
    every: int = 1,
    folder: str | Path | None = None,
    stoppers: Sequence[Stopper] = (),
    callbacks: Sequence[Callback] = (),
) -> None:
    """Run jobs until there will never be another one.

    Parameters
    ----------
    study, store : Jobs, Store
        The study, and where its log is.
    what : class or function
        The trainable; see `onlineauto.tune.workers.trainable`.
    workers : int or Workers
        How many processes; 0 for this one.
    lease : float
        Seconds for which the study leases a job.
    jobs : int, optional
        The most jobs to begin.
    every : int
        Steps between two checkpoints.
    folder : str or Path, optional
        Where checkpoints are written, if not beside SQLite's file, or into PostgreSQL.
    stoppers, callbacks : sequence
        Rules that end trials or the run, and those who hear what happens.

    Raises
    ------
    OptionError
        The trainable is none, or no process can import it.
    UnreachableError
        The store could not be reached for five minutes.
    """
    controller = Controller(
        study,
        store,
        checkpoints_of(store, folder),
        lease=lease,
        jobs=jobs,
        waits=not isinstance(store, MemoryStore),
        every=every,
        stoppers=stoppers,
        callbacks=callbacks,
    )
    if workers:
        run_in_processes(controller, what, workers)
    else:
        run_here(controller, what)


def checkpoints_of(store: Store, folder: str | Path | None = None) -> Checkpoints:
    """Return the checkpoints of a study, which live as long as its store."""
    if isinstance(store, MemoryStore):
        return store.checkpoints
    from onlineauto.tune.store.sql_store import SqlStore
    from onlineauto.tune.store.stored_checkpoints import StoredCheckpoints

    return StoredCheckpoints(store, folder) if isinstance(store, SqlStore) else MemoryCheckpoints()
