"""``create_study``, ``load_study`` and ``copy_study``: studies by the functions of Optuna."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.objective_study import ObjectiveStudy
from onlineauto.tune.samplers import Sampler
from onlineauto.tune.schedulers import SCHEDULERS, Scheduler
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.pruning import Pruning
from onlineauto.tune.settings import UNLIMITED
from onlineauto.tune.store import DamagedLogError, open_store
from onlineauto.tune.store.open_store import open_existing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.store import Store
    from onlineauto.tune.study import Study

_LOG: Final = logging.getLogger("onlineauto")
_MODES: Final = {"minimize": "min", "maximize": "max", "min": "min", "max": "max"}


def create_study(
    *,
    direction: str | None = None,
    directions: Sequence[str] | Mapping[str, str] | None = None,
    study_name: str | None = None,
    storage: str | Store | None = None,
    load_if_exists: bool = False,
    scheduler: str | Scheduler | None = None,
    searcher: str | Searcher | None = None,
    seed: int = 0,
    max_resource: int | None = None,
    eta: int = 3,
    lease: float | None = None,
    retries: int = 0,
    sampler: Sampler | None = None,
    pruner: Scheduler | None = None,
) -> ObjectiveStudy:
    """Begin a study whose objective suggests parameters while it runs; see `Study.optimize`.

    Parameters
    ----------
    direction : str, optional
        ``minimize``, the default, or ``maximize``.
    directions : sequence or mapping, optional
        For several objectives: the direction of each, or their names with the direction of each.
    study_name : str, optional
        The name in the store; by default a unique one.
    storage : str, Store or None
        The URL of a store; None to keep the study in memory.
    load_if_exists : bool
        True to continue an existing study; False to raise an error if there is one.
    scheduler : str or Scheduler, optional
        ``median``, the default, stops a trial that is worse than the median of others, like Optuna's default
        pruner; ``fifo`` stops none. By these names, ``hyperband`` and ``asha`` decide at once whether a trial
        continues; ``race`` and objects such as `Hyperband` call the objective again for a trial that they
        resume. With several objectives it is ``fifo``.
    searcher : str or Searcher, optional
        As for `Study`, but one that does not need a declared space, as ``grid`` does.
    seed, max_resource, eta, lease, retries
        As for `Study`. Without `max_resource`, ``median`` and ``fifo`` have no limit on steps.
    sampler, pruner : optional
        In place of `searcher` and `seed`, and of `scheduler`: what a function of `onlineauto.tune.samplers`
        or `onlineauto.tune.pruners` has returned.

    Raises
    ------
    OptionError
        If an argument is not valid, or there is such a study and `load_if_exists` is False.

    Examples
    --------
    >>> study = create_study()
    >>> study.optimize(lambda trial: trial.suggest_float("x", -10, 10) ** 2, n_trials=30)
    >>> study.best_value < 1, sorted(study.best_params), len(study.trials)
    (True, ['x'], 30)
    """
    if (sampler is not None and (searcher is not None or seed)) or (
        pruner is not None and scheduler is not None
    ):
        raise OptionError("a sampler is searcher= and seed=, and a pruner is scheduler=: give one of each")
    parts: tuple[Any, Any] = sampler, pruner
    if not isinstance(parts[0], Sampler | None) or not isinstance(parts[1], Scheduler | None):
        wrong = f"sampler = {short_repr(sampler)}, pruner = {short_repr(pruner)}"
        raise OptionError(f"{wrong}: give those of onlineauto.tune.samplers and onlineauto.tune.pruners")
    if sampler is not None:
        searcher, seed = sampler.searcher, sampler.seed
    if direction is not None and directions is not None:
        raise OptionError(f"direction = {short_repr(direction)} and directions: give one of them")
    if directions is None:
        directions = ["minimize" if direction is None else direction]
    if isinstance(directions, Mapping):
        mode: Any = {name: _mode(word) for name, word in directions.items()}
    else:
        modes = [_mode(word) for word in directions]
        mode = modes[0] if len(modes) == 1 else modes
    if isinstance(pruner, Pruning) and mode == "max":
        pruner = pruner.mirrored()
    if scheduler == "hyperband" and isinstance(mode, str):
        most = "auto" if max_resource is None else max_resource
        pruner = Pruning("hyperband", max_resource=most, reduction_factor=eta)
    elif scheduler == "asha" and isinstance(mode, str):
        pruner = Asha("stopping")
    scheduler = pruner or scheduler or ("median" if isinstance(mode, str) else "fifo")
    name = f"study-{token_hex(8)}" if study_name is None else study_name
    store = open_store(storage, name)
    if not load_if_exists and store.load():
        raise OptionError(
            f"the study {name!r} exists already: give load_if_exists=True to continue it, or another name"
        )
    if max_resource is None:
        kind = SCHEDULERS.get(scheduler) if isinstance(scheduler, str) else type(scheduler)
        max_resource = UNLIMITED if kind is not None and issubclass(kind, FifoScheduler) else None
    study = ObjectiveStudy(
        None,
        scheduler,
        searcher,
        name=name,
        storage=storage,
        mode=mode,
        seed=seed,
        max_resource=max_resource,
        eta=eta,
        max_trials=len(sampler.grid) if sampler is not None and sampler.grid else None,
        lease=lease,
        retries=retries,
    )
    if sampler is not None and study._replica.progress.version == 1:  # noqa: SLF001 - of the same package
        for config in sampler.grid:
            study.enqueue(config)
    return study


def load_study(*, study_name: str, storage: str | Store, sampler: Any = None, pruner: Any = None) -> Study:
    """Return an existing study of a store, in its current state.

    It is an `ObjectiveStudy`, or a `Study` if its space was declared. `sampler` and `pruner` are not
    supported, because a study keeps its own.
    """
    if sampler is not None or pruner is not None:
        raise OptionError("sampler and pruner are not supported by load_study: a study keeps its own")
    return ObjectiveStudy.load(study_name, storage=storage)


def copy_study(
    *,
    from_study_name: str,
    from_storage: str | Store,
    to_storage: str | Store,
    to_study_name: str | None = None,
) -> None:
    """Copy the log of a study to another store or name, up to the first damaged record, with a warning.

    Checkpoints are not copied, and jobs that were running wait for another process.

    Raises
    ------
    OptionError
        If there is no such study, or the new name is taken.

    Examples
    --------
    >>> from onlineauto.tune.store import MemoryStore
    >>> storage, copy = MemoryStore(), MemoryStore()
    >>> study = create_study(study_name="rates", storage=storage)
    >>> study.optimize(lambda trial: trial.suggest_float("x", -10, 10) ** 2, n_trials=3)
    >>> copy_study(from_study_name="rates", from_storage=storage, to_storage=copy)
    >>> load_study(study_name="rates", storage=copy).best_value == study.best_value
    True
    """
    try:
        records = open_existing(from_storage, from_study_name).load()
    except DamagedLogError as error:
        _LOG.warning("the copy ends before the damage: %s", error)
        records = error.records
    if not records:
        raise OptionError(f"there is no study {from_study_name!r} with a readable record")
    name = from_study_name if to_study_name is None else to_study_name
    store = open_store(to_storage, name)
    if store.load():
        raise OptionError(f"the study {name!r} exists already: give another name, or another store")
    store.begin(records[0])
    running: list[tuple[Any, Any]] = []
    for record in records[1:]:
        store.append(record)
        job = record.get("trial"), record.get("attempt")
        if record.get("kind") == "asked":
            running.append(job)
        elif record.get("kind") in ("told", "failed", "expired", "released") and job in running:
            running.remove(job)
    for trial, attempt in running:
        store.append({"kind": "expired", "trial": trial, "attempt": attempt})


def _mode(direction: Any) -> str:
    """Return ``min`` or ``max`` of a direction, which may be one of Optuna."""
    name = str(getattr(direction, "name", direction)).lower()
    if name not in _MODES:
        raise OptionError(f"direction = {short_repr(direction)}: valid are minimize and maximize")
    return _MODES[name]
