"""Checkpoints: they are complete, belong to the owner of the job, are checked for damage, and are few."""

from __future__ import annotations

from pathlib import Path

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune.store.checkpoints import (
    Checkpoints,
    MemoryCheckpoints,
    pack_checkpoint,
    unpack_checkpoint,
)
from onlineauto.tune.store.protocol import Claim, LeaseLost
from onlineauto.tune.store.sql_store import SqlStore
from onlineauto.tune.store.stored_checkpoints import StoredCheckpoints
from tests.tune.store.jobs import Counting, new_store, told


def claimed(url: str) -> tuple[SqlStore, Claim]:
    store = new_store(url)
    claim = Counting(store, "me").take()
    return store, claim


def steps(checkpoints: Checkpoints, most: int = 99, job: str | None = None) -> tuple[int, bytes] | None:
    found = checkpoints.newest(0, most=most, job=job)
    return None if found is None else (found.step, found.saved)


@pytest.mark.parametrize("value", [b"", b"B", bytes(range(256)), {"a": [1.5, None]}, 3, "text", None])
def test_checkpoints_survive_a_round_trip(value: object) -> None:
    assert unpack_checkpoint(pack_checkpoint(value)) == value


def test_checkpoints_that_json_cannot_write_are_rejected() -> None:
    with pytest.raises(OptionError, match="a checkpoint is bytes, or what JSON can write, and not dict"):
        pack_checkpoint({"weights": object()})


def test_the_newest_checkpoint_is_returned(url: str) -> None:
    store, claim = claimed(url)
    for checkpoints in (StoredCheckpoints(store), MemoryCheckpoints()):
        assert checkpoints.newest(0, most=99) is None
        for step in (1, 2, 3):
            checkpoints.keep(claim, "to 3", step, b"%d" % step)
        checkpoints.keep(claim, "to 9", 5, b"5")
        assert steps(checkpoints) == steps(checkpoints, job="to 9") == (5, b"5")
        assert steps(checkpoints, most=4) == steps(checkpoints, job="to 3") == (3, b"3")
        assert checkpoints.newest(1, most=99) is None


def test_only_the_owner_saves_checkpoints(url: str) -> None:
    store, claim = claimed(url)
    checkpoints = StoredCheckpoints(store)
    checkpoints.keep(claim, "to 3", 1, b"mine")
    store.commit(claim, told(claim))
    files = list(Path(url.partition("///")[2]).parent.glob("*.checkpoints/*"))
    with pytest.raises(LeaseLost):
        checkpoints.keep(claim, "to 3", 2, b"too late")
    assert steps(checkpoints) == (1, b"mine")
    assert files == list(Path(url.partition("///")[2]).parent.glob("*.checkpoints/*"))


def test_a_torn_checkpoint_is_named_and_the_previous_one_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, claim = claimed(f"sqlite:///{tmp_path / 'study.db'}")
    checkpoints = StoredCheckpoints(store, tmp_path / "states")
    for step in (1, 2, 3):
        checkpoints.keep(claim, "to 3", step, bytes(1000) + b"%d" % step)
    newest = tmp_path / "states" / "1-0-0-3.checkpoint"
    assert len(list(newest.parent.iterdir())) == 2
    newest.write_bytes(newest.read_bytes()[:500])
    assert steps(checkpoints) == (2, bytes(1000) + b"2")
    assert f"the checkpoint {newest} is damaged" in caplog.text
    newest.unlink()
    assert steps(checkpoints) == (2, bytes(1000) + b"2")
    assert f"the checkpoint {newest} cannot be read: No such file" in caplog.text
    (newest.parent / "1-0-0-2.checkpoint").write_bytes(b"")
    assert steps(checkpoints) is None
    checkpoints.keep(claim, "to 3", 3, b"again")
    assert steps(checkpoints) == (3, b"again")


@pytest.mark.postgres
def test_a_missing_folder_is_named(server: object, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    store, claim = claimed(server.new_database())  # type: ignore[attr-defined]
    StoredCheckpoints(store, tmp_path).keep(claim, "to 3", 1, b"1")
    assert StoredCheckpoints(store).newest(0, most=9) is None
    assert "1 steps of trial 0, attempt 0 is a file, and its folder was not named" in caplog.text
