"""Owners of jobs: a name for each open study, and a test whether its process has died."""

from __future__ import annotations

import os
import secrets
import socket
from typing import TYPE_CHECKING

from onlineauto.tune.schedulers import State
from onlineauto.tune.store.protocol import Claim
from onlineauto.work.process import has_ended, process_namespace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.tune.store.protocol import Store
    from onlineauto.tune.trial import Trial


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
    running = {(each.number, each.attempt) for each in trials if each.state is State.RUNNING}
    if not running:
        return
    asked = [each for each in store.load() if each.get("kind") == "asked"]
    claims = [
        Claim(each["trial"], each["attempt"], each["owner"])
        for each in asked
        if (each.get("trial"), each.get("attempt")) in running and is_dead(str(each.get("owner")))
    ]
    if claims:
        store.heartbeat(claims, -1)  # expires at once by the clock of the database
