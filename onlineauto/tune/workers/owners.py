"""Owners of jobs: a name for each study that is open somewhere, and whether its process is dead."""

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
    """Return a name that no other owner has: host, process, where this process is alone with its number."""
    return f"{socket.gethostname()}-{os.getpid()}-{_place()}-{secrets.token_hex(4)}"


def is_dead(owner: str) -> bool:
    """Return whether the process of an owner was one of this machine, and is there no more.

    Names of hosts are not unique, and containers count processes by themselves: so the running kernel and the
    name space of process numbers have to be the same. Where these are not known, nobody is known to be dead.

    >>> is_dead(new_owner()), is_dead("somewhere-1-else-0")
    (False, False)
    """
    _, process, place, _ = ["", "", "", *owner.rsplit("-", 3)][-4:]
    if not place or place != _place() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is somebody else's
        return False
    return _is_zombie(process)


def free_jobs_of_dead(store: Store, trials: Iterable[Trial]) -> None:
    """End the leases of jobs whose process was one of this machine and is dead: nobody waits for it."""
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
        store.heartbeat(claims, -1)  # over at once, by the database's clock


def _is_zombie(process: str) -> bool:
    """Return whether a process has ended and waits to be reaped, as it may for long in a container."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return False
    return state in ("Z", "X")


def _place() -> str:
    """Return what tells this kernel and its process numbers from others; empty if that is not known."""
    try:
        known = f"{_BOOT.read_text()} {_PIDS.readlink()}"
    except OSError:
        return ""
    return hashlib.sha256(known.encode()).hexdigest()[:12]
