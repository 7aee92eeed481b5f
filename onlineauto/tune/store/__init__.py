"""Stores of studies: their protocol, and the store in memory."""

from __future__ import annotations

from onlineauto.tune.store.memory import MemoryStore
from onlineauto.tune.store.open_store import STORES, open_store
from onlineauto.tune.store.protocol import Claim, DamagedLogError, LeaseLost, Record, Store, StudySnapshot

__all__ = [
    "STORES",
    "Claim",
    "DamagedLogError",
    "LeaseLost",
    "MemoryStore",
    "Record",
    "Store",
    "StudySnapshot",
    "open_store",
]
