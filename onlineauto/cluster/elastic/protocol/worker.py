"""``Worker``: do a part of each tick, and the parts of dead workers that it covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onlineauto.cluster.elastic.protocol.messages import (
    COORDINATOR,
    Close,
    CoverPart,
    Message,
    Outbox,
    Plan,
    Pull,
    PulledValues,
    Push,
    WrongTick,
)

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.protocol.work import PartWork

_UNKNOWN = -1
"""The tick of a covered part before a server has answered."""


@dataclass
class _Role:
    """A part that a worker does: its rank, its current tick, and the values received for this tick."""

    rank: int
    tick: int
    values: dict[str, dict[int, Any]] = field(default_factory=dict)  # by server


class Worker:
    """A state machine that pulls, computes and pushes tick after tick. It waits only for answers to pulls.

    Parameters
    ----------
    name : str
        The name of the worker.
    work : Work
        The work of its parts.

    Attributes
    ----------
    generation : int
        Number of the current layout; -1 before the first.
    stopped : bool
        True if the worker is no longer in the layout.
    """

    def __init__(self, name: str, work: PartWork) -> None:
        self.name, self._work = name, work
        self.generation = -1
        self.stopped = False
        self._plan: Plan | None = None
        self._roles: dict[str, _Role] = {}

    def process_message(self, message: Message) -> Outbox:
        """Process a message; return the messages to send."""
        out: Outbox = []
        match message:
            case Plan():
                self._follow(message, out)
            case CoverPart():
                self._cover(message, out)
            case PulledValues():
                self._take_values(message, out)
            case WrongTick():
                self._catch_up(message, out)
        return out

    def _follow(self, plan: Plan, out: Outbox) -> None:
        """Begin at the first tick of a newer layout with a new rank; stop if the layout omits this worker."""
        if plan.generation <= self.generation:
            return
        self._plan, self.generation, self._roles = plan, plan.generation, {}
        self.stopped = self.name not in plan.workers
        if not self.stopped:
            role = self._roles[self.name] = _Role(plan.workers.index(self.name), plan.tick)
            self._begin(self.name, role, out)

    def _cover(self, cover: CoverPart, out: Outbox) -> None:
        """Cover the part of a dead worker until the next layout; first ask the servers for their versions."""
        plan = cover.plan
        if plan.generation < self.generation:
            return
        self._follow(plan, out)
        self.stopped = False
        if cover.role not in self._roles:
            self._roles[cover.role] = _Role(plan.workers.index(cover.role), _UNKNOWN)
            probe = Pull(plan.generation, _UNKNOWN, cover.role, self.name, {})
            out += [(server, probe) for server in plan.servers]

    def _begin(self, name: str, role: _Role, out: Outbox) -> None:
        """Pull the values for a role's tick from all servers, also from those without any, to synchronize."""
        plan = self._plan
        assert plan is not None
        role.values = {}
        needed = self._work.needed_keys(role.tick, role.rank, len(plan.workers))
        if needed is None:
            out.append((COORDINATOR, Close(role.tick)))
            return
        keys: dict[str, dict[int, Any]] = {server: {} for server in plan.servers}
        for block, part in needed.items():
            keys[plan.owner[block]][block] = part
        for server, each in keys.items():
            out.append((server, Pull(plan.generation, role.tick, name, self.name, each)))

    def _take_values(self, values: PulledValues, out: Outbox) -> None:
        role, plan = self._roles.get(values.role), self._plan
        if role is None or plan is None:
            return
        if (values.generation, values.tick) != (plan.generation, role.tick):
            return
        role.values[values.server] = values.values
        if len(role.values) < len(plan.servers):
            return
        together = {block: each for values in role.values.values() for block, each in values.items()}
        updates = self._work.compute(role.tick, role.rank, len(plan.workers), together)
        pushed: dict[str, dict[int, Any]] = {server: {} for server in plan.servers}
        for block, update in updates.items():
            pushed[plan.owner[block]][block] = update
        for server, each in pushed.items():
            out.append((server, Push(plan.generation, role.tick, values.role, each)))
        role.tick += 1
        self._begin(values.role, role, out)

    def _catch_up(self, error: WrongTick, out: Outbox) -> None:
        """Continue at the tick of the dead worker, which is at least the server's version minus 1."""
        role, plan = self._roles.get(error.role), self._plan
        if role is None or plan is None or error.generation != plan.generation:
            return
        if (tick := max(error.version - 1, plan.tick)) > role.tick:
            role.tick = tick
            self._begin(error.role, role, out)
