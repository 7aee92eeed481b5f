"""``Server``: own blocks, and apply a tick once all workers have pushed their parts of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.cluster.elastic.protocol.messages import (
    COORDINATOR,
    RUN,
    STORE,
    Abort,
    Arrived,
    Close,
    Fence,
    Install,
    Installed,
    Message,
    Move,
    Outbox,
    Plan,
    Promise,
    Pull,
    PulledValues,
    Push,
    Reached,
    WrongTick,
)

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.protocol.work import Shard, Shards


class Server:
    """A state machine that owns blocks.

    It never sends, waits or reads a clock: `process_message` returns the messages to send.

    Its *version* is the number of ticks that its blocks contain. At version t it answers pulls of tick t, and
    pulls of tick t - 1 from a worker that repeats the part of a dead worker. No server can be two versions
    ahead of another, because a worker pulls from all servers before it pushes.

    Parameters
    ----------
    name : str
        The name of the server.
    shards : Shards
        Creates blocks.
    kept : dict of int to payload, optional
        Blocks of a snapshot, which the first plan uses.

    Attributes
    ----------
    generation : int
        Number of the current layout; -1 before the first.
    version : int
        Number of ticks that its blocks contain.
    hold : int or None
        The version that the server will not pass until a change of layout is committed.
    blocks : dict of int to Shard
        The blocks that the server owns.
    stopped : bool
        True if the server is no longer in the layout.
    """

    def __init__(self, name: str, shards: Shards, kept: dict[int, Any] | None = None) -> None:
        self.name, self._shards, self._kept = name, shards, kept or {}
        self.generation, self.version, self.first_tick = -1, 0, 0
        self.hold: int | None = None
        self.blocks: dict[int, Shard] = {}
        self.stopped = False
        self._workers: tuple[str, ...] = ()
        self._end: int | None = None
        self._attempt = (
            self._closed
        ) = -1  # the current change; the last change that was committed or cancelled
        self._move: Move | None = None
        self._arrived = False
        self._fences: dict[int, Fence] = {}
        self._inbox: dict[int, dict[int, Any]] = {}
        self._pushes: dict[int, dict[str, dict[int, Any]]] = {}
        self._pulls: dict[tuple[str, str], Pull] = {}

    def process_message(self, message: Message) -> Outbox:
        """Process a message; return the messages to send."""
        out: Outbox = []
        match message:
            case Pull():
                self._take_pull(message)
            case Push():
                self._take_push(message)
            case Fence():
                self._fences[message.attempt] = message
            case Move():
                self._take_move(message)
            case Install():
                self._take_install(message, out)
            case Abort():
                self._take_abort(message)
            case Plan():
                self._adopt(message)
            case Close():
                self._end = message.end
        self._open_fences(out)
        self._advance(out)
        return out

    # -- one tick --------------------------------------------------------------------------------------

    def _take_pull(self, pull: Pull) -> None:
        sender = pull.role, pull.worker
        known = self._pulls.get(sender)
        if known is None or (known.generation, known.tick) <= (pull.generation, pull.tick):
            self._pulls[sender] = pull

    def _take_push(self, push: Push) -> None:
        # Pushes of another layout have other parts. A late copy of a push that was applied is ignored.
        if push.generation == self.generation and push.tick >= self.version:
            self._pushes.setdefault(push.tick, {})[push.role] = push.updates

    def _is_complete(self) -> bool:
        """Return whether all workers have pushed the next tick."""
        return self._pushes.get(self.version, {}).keys() >= set(self._workers)

    def _advance(self, out: Outbox) -> None:
        """Apply complete ticks up to the hold, and answer the pulls that can be answered."""
        self._answer(out)
        while self._workers and (self.hold is None or self.version < self.hold) and self._is_complete():
            self._apply(self._pushes.pop(self.version))
            self.version += 1
            if 0 in self.blocks:
                out.append((RUN, Reached(self.version)))
            self._answer(out)
        self._arrive(out)

    def _apply(self, pushes: dict[str, dict[int, Any]]) -> None:
        for block, shard in self.blocks.items():
            shard.apply([pushes[role][block] for role in self._workers if block in pushes[role]])

    def _answer(self, out: Outbox) -> None:
        for sender, pull in list(self._pulls.items()):
            if pull.generation > self.generation:
                continue  # this server has not received the plan of the pull yet
            answer = self._answer_to(pull)
            if answer is not None:
                out.append((pull.worker, answer))
            if answer is not None or pull.generation < self.generation:
                del self._pulls[sender]

    def _answer_to(self, pull: Pull) -> Message | None:
        """Return the answer to a pull; None if the pull must wait or belongs to an old layout."""
        if pull.generation != self.generation or pull.tick > self.version:
            return None
        if pull.tick == self.version:
            return None if self.hold is not None and self.version >= self.hold else self._values(pull)
        if pull.tick == self.version - 1 and pull.tick >= self.first_tick:
            return self._values(pull, before=True)
        return WrongTick(pull.generation, pull.role, self.version)

    def _values(self, pull: Pull, *, before: bool = False) -> PulledValues:
        read = {
            block: self.blocks[block].read_before(keys) if before else self.blocks[block].read(keys)
            for block, keys in pull.keys.items()
        }
        return PulledValues(pull.generation, pull.tick, pull.role, self.name, read)

    # -- a change of layout ----------------------------------------------------------------------------

    def _open_fences(self, out: Outbox) -> None:
        """Answer the latest fence of the current layout with a promise."""
        for attempt in sorted(self._fences):
            fence = self._fences[attempt]
            if attempt <= max(self._attempt, self._closed):
                del self._fences[attempt]
            elif fence.base == self.generation:  # otherwise the fence has arrived before its plan
                del self._fences[attempt]
                self._attempt, self._move, self._arrived = attempt, None, False
                self.hold = self.version + fence.margin
                if self._end is not None:
                    self.hold = max(self.version, min(self.hold, self._end))
                out.append((COORDINATOR, Promise(attempt, self.name, self.hold)))

    def _take_move(self, move: Move) -> None:
        if move.attempt == self._attempt > self._closed and self._move is None:
            self._move, self.hold = move, move.clock

    def _arrive(self, out: Outbox) -> None:
        """At the clock, send the blocks that move and report it; keep them until the plan is committed."""
        move = self._move
        if move is None or self._arrived or self.version not in (move.clock, self._end):
            return
        self._arrived = True
        for block, shard in self.blocks.items():
            if block in move.destination:
                out.append((move.destination[block], Install(move.attempt, block, shard.dump())))
            if move.copies:
                out.append((STORE, Install(move.attempt, block, shard.dump())))
        out.append((COORDINATOR, Arrived(move.attempt, self.name, self.version)))

    def _take_install(self, install: Install, out: Outbox) -> None:
        if install.attempt > max(self._closed, self.generation):
            self._inbox.setdefault(install.attempt, {})[install.block] = install.payload
            out.append((COORDINATOR, Installed(install.attempt, install.block)))

    def _take_abort(self, abort: Abort) -> None:
        self._closed = max(self._closed, abort.attempt)
        self._inbox.pop(abort.attempt, None)
        if abort.attempt == self._attempt:
            self.hold = self._move = None

    def _adopt(self, plan: Plan) -> None:
        """Change to a newer layout: load the blocks installed for it, and drop blocks with other owners."""
        if plan.generation <= self.generation:
            return
        payloads = self._kept | self._inbox.get(plan.generation, {})
        owned = [block for block, owner in plan.owner.items() if owner == self.name]
        self.blocks = {block: self._owned_shard(block, payloads, new=self._is_first(plan)) for block in owned}
        self.generation, self.version, self.first_tick = plan.generation, plan.tick, plan.tick
        self._closed = max(self._closed, plan.generation)
        self._workers, self.stopped = plan.workers, self.name not in plan.servers
        if self.stopped:
            self._workers = ()
        self.hold = self._move = None
        self._kept = {}
        self._inbox = {attempt: each for attempt, each in self._inbox.items() if attempt > plan.generation}
        self._pushes = {}

    def _is_first(self, plan: Plan) -> bool:
        """Return True if a plan is the first layout of a run."""
        return plan.generation == 0

    def _owned_shard(self, block: int, payloads: dict[int, Any], *, new: bool) -> Shard:
        if block in payloads:
            return self._shards.load(block, payloads[block])
        if block in self.blocks:
            return self.blocks[block]
        assert new, f"block {block} was never sent to {self.name}"
        return self._shards.make(block)
