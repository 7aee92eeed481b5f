"""Locked: a base class for shared objects whose methods change arrays.

A method that changes or copies the arrays holds the object's lock. Each copy has its own lock, and is made
while no other thread holds the original's. A fork waits until no lock is held: the child has no other threads
to release locks, and could not continue from a half-learnt event.
"""

from __future__ import annotations

import os
from copy import deepcopy
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import onlineauto.jit  # noqa: F401 - its fork hook must be registered first, see the end

if TYPE_CHECKING:
    from typing import Self


class Locked:
    """Base of objects that several threads may share; `copy` and `pickle` copy everything but the lock."""

    __slots__ = ("__weakref__", "_lock")
    _lock: RLock

    def __new__(cls, *_: object, **__: object) -> Self:
        """Create an object, or an empty one for a copy, with a separate lock."""
        instance = super().__new__(cls)
        instance._lock = RLock()
        with _FORK.listing:
            _FORK.everyone.add(instance)
        return instance

    @property
    def lock(self) -> RLock:
        """The lock, for callers that need several calls to be atomic."""
        return self._lock

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy; no other thread changes this object at the same time."""
        copy_ = type(self).__new__(type(self))
        memo[id(self)] = copy_
        with self._lock:
            vars(copy_).update(deepcopy(vars(self), memo))
        return copy_

    def __getstate__(self) -> dict[str, Any]:
        """Return copies of the attributes for `pickle`, which writes them after the lock is released."""
        with self._lock:
            return deepcopy(vars(self), {id(self): self})


class _Fork:
    """Holds all locks while a process is forked."""

    def __init__(self) -> None:
        self.everyone: WeakSet[Locked] = WeakSet()
        self.listing = RLock()  # held to iterate or extend `everyone`
        self._alone = Lock()
        self._held: list[Locked] = []

    def acquire_all(self) -> None:
        """Wait until no other thread holds a lock, and hold all of them."""
        self._alone.acquire()
        while True:
            self.listing.acquire()
            held_ids = set(map(id, self._held))
            others = [other for other in self.everyone if id(other) not in held_ids]
            if not others:
                return  # `listing` stays acquired, so no new object can be created
            self.listing.release()  # The thread that holds a lock may have to create an object first.
            for other in others:
                other._lock.acquire()  # noqa: SLF001 - a class of this file
                self._held.append(other)

    def release_all(self) -> None:
        """Release all locks, in the parent and in the child."""
        for other in self._held:
            other._lock.release()  # noqa: SLF001
        self._held.clear()
        self.listing.release()
        self._alone.release()


_FORK = _Fork()
# The hook registered last runs first. A thread that holds one of these locks may wait for a kernel, so the
# hook of `onlineauto.jit`, which blocks compiling and loading of kernels, must be registered before this one.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_FORK.acquire_all, after_in_parent=_FORK.release_all, after_in_child=_FORK.release_all
    )
