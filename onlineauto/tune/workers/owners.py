"""Owners of jobs: a name for each open study, and a test whether its process has died."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.tune.schedulers import State
from onlineauto.tune.store.protocol import Claim

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.tune.store.protocol import Store
    from onlineauto.tune.trial import Trial

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_PIDS: Final = Path("/proc/self/ns/pid")


def new_owner() -> str:
    """Return a unique name: host, process number, hash of kernel and process namespace, random digits."""
    return f"{socket.gethostname()}-{os.getpid()}-{_namespace()}-{secrets.token_hex(4)}"


def is_dead(owner: str) -> bool:
    """Return whether an owner was a process of this machine that has ended.

    Host names are not unique, and containers number their processes separately. The running kernel and the
    process namespace must therefore be the same. If they are unknown, the answer is False.

    >>> is_dead(new_owner()), is_dead("somewhere-1-else-0")
    (False, False)
    """
    _, process, namespace, _ = ["", "", "", *owner.rsplit("-", 3)][-4:]
    if not namespace or namespace != _namespace() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:  # the process exists and belongs to another user
        return False
    return _is_zombie(process)


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


def _is_zombie(process: str) -> bool:
    """Return whether a process has ended and was not reaped, which can last long in a container."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return False
    return state in ("Z", "X")


def _namespace() -> str:
    """Return a hash of the running kernel and its process namespace; empty if they are unknown."""
    try:
        known = f"{_BOOT.read_text()} {_PIDS.readlink()}"
    except OSError:
        return ""
    return hashlib.sha256(known.encode()).hexdigest()[:12]
