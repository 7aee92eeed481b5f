"""``optuna_storage``: store Optuna's studies in a store of this package.

Optuna's ``JournalStorage`` replays a log, and its studies are as safe as this log. Here the log is a study in
SQLite or PostgreSQL: records are atomic and totally ordered, and damage is detected. A waiting trial is
therefore claimed by one worker only, and a killed process leaves no partial record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend

from onlineauto.errors import OptionError
from onlineauto.tune.plain import as_json
from onlineauto.tune.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.tune.store import Store

_NAME: Final = "optuna"


def optuna_storage(url: str, *, name: str = _NAME) -> JournalStorage:
    """Return a storage for ``optuna.create_study(storage=…)``.

    Optuna's heartbeat is for its SQL storage only: here, the trial of a killed worker stays RUNNING.

    >>> from tempfile import TemporaryDirectory
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> with TemporaryDirectory() as folder:
    ...     study = optuna.create_study(storage=optuna_storage(f"sqlite:///{folder}/study.db"))
    ...     study.optimize(lambda trial: trial.suggest_float("rate", 0, 1), n_trials=3)
    ...     len(study.trials)
    3
    """
    return JournalStorage(StoreBackend(open_store(url, name)))


class StoreBackend(BaseJournalBackend):
    """The log of ``JournalStorage`` in a store."""

    def __init__(self, store: Store) -> None:
        expected = {"kind": "study", "settings": {"log": "optuna"}}
        if store.begin(expected) != expected:
            raise OptionError("this study is not a log of Optuna; choose another name")
        self._store = store

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        """Return all entries after the first `log_number_from`."""
        return [record["entry"] for record in self._store.load(log_number_from + 1)]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append entries, in order."""
        records = [{"kind": "optuna", "entry": as_json(entry, "what Optuna writes")} for entry in logs]
        for record in records:
            self._store.append(record)
