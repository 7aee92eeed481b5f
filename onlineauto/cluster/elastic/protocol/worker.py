"""Worker: does its part of each tick, and the parts of dead workers that it covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onlineauto.cluster.elastic.protocol.messages import (
    Behind,
    Cover,
    Message,
    Outbox,
    Plan,
    Pull,
    Push,
    Values,
    Wake,
)

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.protocol.work import Work

__all__ = ["Worker"]


@dataclass
class _Role:
    """A part that a worker does: the tick that it is at, and what it waits for."""

    rank: int
    tick: int
    idle: bool = False  # the events are not there yet
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
            case Wake():
                for name, role in self._roles.items():
                    if role.idle:
                        self._begin(name, role, out)
        return out

    def _follow(self, plan: Plan, out: Outbox) -> None:
        """Begin at the first tick of a newer layout, with a new rank; stop if this worker is not in it."""
        if plan.generation <= self.generation:
            return
        self._plan, self.generation, self._roles = plan, plan.generation, {}
        self.stopped = self.name not in plan.workers
        if not self.stopped:
            self._add(self.name, out)

    def _cover(self, cover: Cover, out: Outbox) -> None:
        """Do the part of a dead worker too, until the next layout."""
        if cover.plan.generation < self.generation:
            return
        self._follow(cover.plan, out)
        self.stopped = False
        if cover.role not in self._roles:
            self._add(cover.role, out)

    def _add(self, name: str, out: Outbox) -> None:
        assert self._plan is not None
        role = self._roles[name] = _Role(self._plan.workers.index(name), self._plan.tick)
        self._begin(name, role, out)

    def _begin(self, name: str, role: _Role, out: Outbox) -> None:
        """Pull what a role's tick needs, from all servers: those without any of it, too, keep step."""
        plan = self._plan
        assert plan is not None
        role.values = {}
        wanted = self._work.wants(role.tick, role.rank, len(plan.workers))
        role.idle = wanted is None
        if wanted is None:
            return
        keys: dict[str, dict[int, Any]] = {server: {} for server in plan.servers}
        for block, each in wanted.items():
            keys[plan.owner[block]][block] = each
        for server, asked in keys.items():
            out.append((server, Pull(plan.generation, role.tick, name, self.name, asked)))

    def _take_values(self, values: Values, out: Outbox) -> None:
        role, plan = self._roles.get(values.role), self._plan
        if role is None or plan is None or role.idle:
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
        """Go on where the dead worker was: it has pushed to at least one server what was before."""
        role = self._roles.get(behind.role)
        if role is not None and behind.generation == self.generation and behind.version - 1 > role.tick:
            role.tick = behind.version - 1
            self._begin(behind.role, role, out)
