"""Leases of jobs: the thread that renews them, the names of owners, and whether an owner has died."""

from __future__ import annotations

import logging
import math
import os
import secrets
import socket
import threading
import weakref
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from onlineauto.tune.schedulers import State
from onlineauto.tune.store.protocol import Claim
from onlineauto.work.process import has_ended, process_namespace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.tune.store.protocol import Store
    from onlineauto.tune.trial import Trial

_LOG: Final = logging.getLogger("onlineauto")
_BEATS: Final = 3
"""Number of renewals during one lease, so that two of them may be late."""
_SHORTEST: Final = 0.01
"""Minimum number of seconds between two renewals."""


class Heartbeat:
    """Renews leases from the first claim on, until no claim is left or `stop` is called.

    The thread is a daemon: it does not keep the process alive, and claims expire after the process has ended.
    """

    def __init__(self, store: Store, lease: float) -> None:
        self._store = store
        self.lease = lease
        self._claims: set[Claim] = set()
        self._lock = threading.Lock()
        self._stop_queue: SimpleQueue[None] = SimpleQueue()  # put() is safe in a finalizer
        self._process = 0  # of the renewing thread; a forked process starts its own thread

    def add(self, claim: Claim) -> None:
        """Begin to renew a claim."""
        if not math.isfinite(self.lease):
            return
        if self._process not in (0, os.getpid()):
            self._lock = threading.Lock()  # a thread of the parent may hold the old lock
        with self._lock:
            if self._process != os.getpid():
                self._process = os.getpid()
                self._claims.clear()
                pause = min(max(self.lease / _BEATS, _SHORTEST), threading.TIMEOUT_MAX)
                words = weakref.ref(self), self._stop_queue, pause
                threading.Thread(target=_renew, args=words, name="onlineauto heartbeat", daemon=True).start()
            self._claims.add(claim)

    def drop(self, claim: Claim) -> None:
        """Stop renewing a claim."""
        with self._lock:
            self._claims.discard(claim)

    def stop(self) -> None:
        """Stop renewing all claims."""
        self._stop_queue.put(None)

    def _renew_leases(self) -> bool:
        """Renew the leases; return False, which ends the thread, if there is no claim."""
        with self._lock:
            claims = list(self._claims)
            if not claims:
                self._process = 0
                return False
        try:
            lost = self._store.heartbeat(claims, self.lease)
        except Exception as error:  # the next beat tries again and reports lost leases
            _LOG.warning("leases were not renewed: %s", error)
            return True
        for claim in lost:
            self.drop(claim)
        return True


def _renew(heartbeat: weakref.ref[Heartbeat], end_signal: SimpleQueue[None], pause: float) -> None:
    """Renew leases until there is no claim. Between beats the thread has no reference to the heartbeat."""
    while True:
        try:
            end_signal.get(timeout=pause)
        except Empty:
            pass
        else:
            return
        alive = heartbeat()
        if alive is None or not alive._renew_leases():  # noqa: SLF001 - its own thread
            return
        del alive


def new_owner() -> str:
    """Return a unique name: host, process number, hash of kernel and process namespace, random digits."""
    return f"{socket.gethostname()}-{os.getpid()}-{process_namespace()}-{secrets.token_hex(4)}"


def is_dead(owner: str) -> bool:
    """Return whether an owner was a process of this machine that has ended.

    Host names are not unique, and containers number their processes separately. The running kernel and the
    process namespace must therefore be the same. If they are unknown, the answer is False.

    >>> is_dead(new_owner()), is_dead("somewhere-1-else-0")
    (False, False)
    """
    _, process, namespace, _ = ["", "", "", *owner.rsplit("-", 3)][-4:]
    if not namespace or namespace != process_namespace() or not process.isdecimal():
        return False
    return has_ended(int(process))


def free_jobs_of_dead(store: Store, trials: Iterable[Trial]) -> None:
    """End the leases of jobs whose process ran on this machine and has ended."""
    running = {(trial.number, trial.attempt) for trial in trials if trial.state is State.RUNNING}
    claims = [
        Claim(record["trial"], record["attempt"], record["owner"])
        for record in (store.load() if running else ())
        if record.get("kind") == "asked" and (record.get("trial"), record.get("attempt")) in running
    ]
    claims = [claim for claim in claims if is_dead(str(claim.owner))]
    if claims:
        store.heartbeat(claims, -1)  # expires at once by the clock of the database
