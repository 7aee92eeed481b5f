"""``Heartbeat``: a thread that renews the leases of all jobs of this process."""

from __future__ import annotations

import logging
import math
import threading
from typing import TYPE_CHECKING, Final, Self

from onlineauto.errors import StoreError

if TYPE_CHECKING:
    from onlineauto.tune.store.protocol import Claim, Store

__all__ = ["Heartbeat"]

_LOG: Final = logging.getLogger("onlineauto")
_BEATS: Final = 3
"""Renewals in one lease, so that two may come late."""


class Heartbeat:
    """Renews leases as long as it is entered.

    Parameters
    ----------
    store : Store
        Where the claims are.
    lease : float
        Seconds; infinity for leases that do not end.
    """

    def __init__(self, store: Store, lease: float) -> None:
        self._store = store
        self._lease = lease
        self._claims: set[Claim] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="onlineauto heartbeat", daemon=True)
        self._is_needed = math.isfinite(lease)

    def add(self, claim: Claim) -> None:
        """Begin to renew a claim."""
        with self._lock:
            self._claims.add(claim)

    def drop(self, claim: Claim) -> None:
        """Renew a claim no more."""
        with self._lock:
            self._claims.discard(claim)

    def __enter__(self) -> Self:
        if self._is_needed:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._is_needed:
            self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(self._lease / _BEATS):
            with self._lock:
                claims = list(self._claims)
            if not claims:
                continue
            try:
                lost = self._store.heartbeat(claims, self._lease)
            except StoreError as error:  # the next beat tries again, and what is lost will be noticed
                _LOG.warning("leases were not renewed: %s", error)
                continue
            for claim in lost:
                self.drop(claim)
