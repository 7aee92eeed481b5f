"""Worker: does its part of each tick, and the parts of dead workers that it covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onlineauto.cluster.elastic.protocol.messages import (
    COORDINATOR,
    Behind,
    Close,
    Cover,
    Message,
    Outbox,
    Plan,
    Pull,
    Push,
    Values,
)

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.protocol.work import Work

_UNKNOWN = -1
"""The tick of a part that is covered, before a server has answered."""


@dataclass
class _Role:
    """A part that a worker does: the tick that it is at, and what it waits for."""

    rank: int
    tick: int
    values: dict[str, dict[int, Any]] = field(default_factory=dict)  # by server


class Worker:
    """A state machine that pulls, computes and pushes tick after tick. It blocks on pulls alone.

    Parameters
    ----------
    name : str
        Its name.
    work : Work
        What a part needs and does.

    Attributes
    ----------
    generation : int
        Number of the layout that it follows; -1 before the first.
    stopped : bool
        True if a plan no longer has it.
    """

    def __init__(self, name: str, work: Work) -> None:
        self.name, self._work = name, work
        self.generation = -1
        self.stopped = False
        self._plan: Plan | None = None
        self._roles: dict[str, _Role] = {}

    def on(self, message: Message) -> Outbox:
        """Take a message; return what to send."""
        out: Outbox = []
        match message:
            case Plan():
                self._follow(message, out)
            case Cover():
                self._cover(message, out)
            case Values():
                self._take_values(message, out)
            case Behind():
                self._catch_up(message, out)
        return out

    def _follow(self, plan: Plan, out: Outbox) -> None:
        """Begin at the first tick of a newer layout, with a new rank; stop if this worker is not in it."""
        if plan.generation <= self.generation:
            return
        self._plan, self.generation, self._roles = plan, plan.generation, {}
        self.stopped = self.name not in plan.workers
        if not self.stopped:
            role = self._roles[self.name] = _Role(plan.workers.index(self.name), plan.tick)
            self._begin(self.name, role, out)

    def _cover(self, cover: Cover, out: Outbox) -> None:
        """Do the part of a dead worker too, until the next layout; ask the servers first where it is."""
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
        """Pull what a role's tick needs, from all servers: those without any of it, too, keep step."""
        plan = self._plan
        assert plan is not None
        role.values = {}
        wanted = self._work.wants(role.tick, role.rank, len(plan.workers))
        if wanted is None:
            out.append((COORDINATOR, Close(role.tick)))
            return
        keys: dict[str, dict[int, Any]] = {server: {} for server in plan.servers}
        for block, each in wanted.items():
            keys[plan.owner[block]][block] = each
        for server, asked in keys.items():
            out.append((server, Pull(plan.generation, role.tick, name, self.name, asked)))

    def _take_values(self, values: Values, out: Outbox) -> None:
        role, plan = self._roles.get(values.role), self._plan
        if role is None or plan is None:
            return
        if (values.generation, values.tick) != (plan.generation, role.tick):
            return
        role.values[values.server] = values.values
        if len(role.values) < len(plan.servers):
            return
        together = {block: each for kept in role.values.values() for block, each in kept.items()}
        updates = self._work.compute(role.tick, role.rank, len(plan.workers), together)
        pushed: dict[str, dict[int, Any]] = {server: {} for server in plan.servers}
        for block, update in updates.items():
            pushed[plan.owner[block]][block] = update
        for server, each in pushed.items():
            out.append((server, Push(plan.generation, role.tick, values.role, each)))
        role.tick += 1
        self._begin(values.role, role, out)

    def _catch_up(self, behind: Behind, out: Outbox) -> None:
        """Go on where the dead worker was: a server that is behind nobody has all that came before."""
        role, plan = self._roles.get(behind.role), self._plan
        if role is None or plan is None or behind.generation != plan.generation:
            return
        if (tick := max(behind.version - 1, plan.tick)) > role.tick:
            role.tick = tick
            self._begin(behind.role, role, out)
