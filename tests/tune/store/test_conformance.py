"""Databases keep to what is required of every store."""

from __future__ import annotations

import time
from itertools import count

from onlineauto.testing import check_store
from onlineauto.tune.store.sql_store import SqlStore


def test_databases_are_stores(url: str) -> None:
    numbers = count()
    check_store(lambda: SqlStore(url, f"study {next(numbers)}"), pass_time=time.sleep)
