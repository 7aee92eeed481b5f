"""Messages of the elastic protocol: what coordinator, servers and workers send one another.

They may arrive in any order and more than once. None may be lost while its receiver lives.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

COORDINATOR, RUN, STORE = "coordinator", "run", "store"
"""Names of nodes: who changes the layout; who started all of this; who keeps snapshots."""


class Message(msgspec.Struct, frozen=True):
    """A message of one node to another."""


Outbox: TypeAlias = list[tuple[str, Message]]
"""Messages to send, each with the name of the node that receives it."""


# -- from the run to the coordinator, and back ----------------------------------------------------------


class Resize(Message, frozen=True):
    """Ask for these workers and servers, by name; the last request counts."""

    workers: tuple[str, ...]
    servers: tuple[str, ...]


class Copy(Message, frozen=True):
    """Ask for a copy of all blocks at one tick, which the servers send to the store."""


class Died(Message, frozen=True):
    """Report that a node is gone, with all that it had in memory."""

    node: str


class Lost(Message, frozen=True):
    """Report that a server is gone that owned blocks: the run must go back to its last snapshot."""

    server: str


class Reached(Message, frozen=True):
    """Report the version of the server that owns the first block."""

    version: int


# -- between coordinator and all ------------------------------------------------------------------------


class Plan(Message, frozen=True):
    """A layout in force from a tick on: which server owns which block, and who works, in order of rank."""

    generation: int
    tick: int
    owner: dict[int, str]
    servers: tuple[str, ...]
    workers: tuple[str, ...]


class Cover(Message, frozen=True):
    """Ask a worker to do, beside its own, the part of another one that died."""

    plan: Plan
    role: str


class Close(Message, frozen=True):
    """Report that the stream has so many ticks, and no more."""

    end: int


# -- between coordinator and servers: a change of layout ------------------------------------------------


class Fence(Message, frozen=True):
    """Ask a server of generation `base` for a tick that it promises not to pass."""

    attempt: int
    base: int
    margin: int


class Promise(Message, frozen=True):
    """Promise that a server's version will not pass `hold` in this attempt."""

    attempt: int
    server: str
    hold: int


class Move(Message, frozen=True):
    """Set the clock of a change: at this tick servers send the blocks that move, or copies of all."""

    attempt: int
    clock: int
    destination: dict[int, str]
    copies: bool


class Install(Message, frozen=True):
    """Bring a block, as it is at the clock, to the server that will own it, or to the store."""

    attempt: int
    block: int
    payload: Any


class Installed(Message, frozen=True):
    """Report that a server has a block that it will own."""

    attempt: int
    block: int


class Arrived(Message, frozen=True):
    """Report that a server is at the clock, or at the end of the stream if that is before it."""

    attempt: int
    server: str
    version: int


class Abort(Message, frozen=True):
    """Call a change off: what was installed for it is dropped, and the clock does not count."""

    attempt: int


# -- between workers and servers: one tick --------------------------------------------------------------


class Pull(Message, frozen=True):
    """Ask a server for what a role's part of a tick needs of its blocks."""

    generation: int
    tick: int
    role: str
    worker: str
    keys: dict[int, Any]


class Values(Message, frozen=True):
    """Answer a pull with what blocks are at its tick."""

    generation: int
    tick: int
    role: str
    server: str
    values: dict[int, Any]


class Behind(Message, frozen=True):
    """Answer a pull of a tick that a server no longer has, or of -1, with the version that it is at."""

    generation: int
    role: str
    version: int


class Push(Message, frozen=True):
    """Bring what a role's part of a tick changes in a server's blocks."""

    generation: int
    tick: int
    role: str
    updates: dict[int, Any]
