"""Optuna's test of storages, with its studies in our databases."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.errors import OptionError

optuna = pytest.importorskip("optuna")
# Optuna warns of what is experimental in it.
pytestmark = [pytest.mark.lane("ci"), pytest.mark.filterwarnings("ignore")]

from optuna.storages._heartbeat import BaseHeartbeat, is_heartbeat_enabled  # noqa: E402
from optuna.testing.pytest_storages import StorageTestCase  # noqa: E402

from onlineauto.tune.optuna_storage import StoreBackend, optuna_storage  # noqa: E402
from tests.tune.postgres import Server  # noqa: E402
from tests.tune.store.jobs import new_store  # noqa: E402

if TYPE_CHECKING:
    from optuna.storages import JournalStorage

ROOT = Path(__file__).resolve().parents[3]
WORKER = """
import sys, optuna
from onlineauto.tune.optuna_storage import optuna_storage
optuna.logging.set_verbosity(optuna.logging.ERROR)
sampler = optuna.samplers.RandomSampler()
study = optuna.load_study(study_name="shared", storage=optuna_storage(sys.argv[1]), sampler=sampler)
number = 0
while number < 60:  # those that were enqueued; any other one is drawn
    trial = study.ask()
    number = trial.suggest_int("number", 0, 10**12)
    study.tell(trial, number)
"""


class TestSqlite(StorageTestCase):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> JournalStorage:
        return optuna_storage(f"sqlite:///{tmp_path / 'study.db'}")


@pytest.mark.postgres
class TestPostgres(StorageTestCase):
    @pytest.fixture
    def storage(self, server: Server) -> JournalStorage:
        return optuna_storage(server.new_database())


def test_a_study_that_is_not_of_optuna_is_rejected(url: str) -> None:
    with pytest.raises(OptionError, match="not a log of Optuna"):
        StoreBackend(new_store(url))


def test_the_heartbeat_of_optuna_does_not_apply(url: str) -> None:
    """A trial whose worker has ended stays running, as in every `JournalStorage`."""
    storage = optuna_storage(url)
    assert not isinstance(storage, BaseHeartbeat)
    assert not is_heartbeat_enabled(storage)
    study = optuna.create_study(storage=storage)
    study.ask()
    optuna.storages.fail_stale_trials(study)
    study.optimize(lambda _: 1.0, n_trials=1)
    assert [trial.state.name for trial in study.trials] == ["RUNNING", "COMPLETE"]


def test_a_waiting_trial_goes_to_one_worker(url: str) -> None:
    """Optuna's own storage gives some of 60 to two workers on SQLite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study: Any = optuna.create_study(study_name="shared", storage=optuna_storage(url))
    for number in range(60):
        study.enqueue_trial({"number": number})
    command = [sys.executable, "-W", "ignore", "-c", WORKER, url]
    workers = [subprocess.Popen(command, cwd=ROOT) for _ in range(4)]
    assert [worker.wait(300) for worker in workers] == 4 * [0]
    told = Counter(
        trial.value for trial in study.get_trials() if trial.value is not None and trial.value < 60
    )
    assert told == Counter(map(float, range(60)))
