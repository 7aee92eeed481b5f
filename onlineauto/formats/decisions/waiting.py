"""``WaitingDecisions``: the decisions that wait for rewards, and the latest ones that ended.

=========== ==========================================================================================
a decision
=========== ==========================================================================================
waits       from `begin` to its deadline, at which `pop_due` removes it, rewarded or not
has ended   if `end` ended it before that; it is remembered until a deadline, up to a maximum number
is unknown  if it never began or is forgotten: its id is free, and `begin` may use it
=========== ==========================================================================================

A bandit (`api.decisions.pending`) and a service (`service.join.join`) share this table. `LEARN_AT` says
whether the first reward ends a decision. A log that is joined with its rewards as a whole
(`api.decisions.joining`) has no waits and no table: its decisions wait until the end of the log.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LearnAt = Literal["wait", "reward"]
LEARN_AT: Final[tuple[LearnAt, ...]] = ("wait", "reward")
"""When a decision ends: after its wait, whatever its outcome; or at its first reward, else after its wait."""

Entry = TypeVar("Entry")
Ended = TypeVar("Ended")
_SPARE = 64


class Timed(Generic[Entry]):
    """Entries by id, each with a deadline; `earliest` is at most the earliest deadline.

    Entries with the same wait are added in the order of their deadlines, since time does not run back. So
    there is one queue for each wait, and a change of the wait delays no later entry.
    """

    def __init__(self, deadline_of: Callable[[Entry], float]) -> None:
        self._deadline_of = deadline_of
        self._entries: dict[str, Entry] = {}
        self.get: Callable[[str], Entry | None] = self._entries.get
        """Return the entry of an id, or None."""
        self._queues: dict[float, tuple[deque[str], deque[Entry]]] = {}
        self._queued = 0
        self.earliest = math.inf

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def add(self, event_id: str, entry: Entry, *, wait: float) -> None:
        """Add the entry of a new id, whose deadline is `wait` seconds after now."""
        self._entries[event_id] = entry
        queue = self._queues.get(wait)
        if queue is None:
            queue = self._queues[wait] = deque(), deque()
        ids, entries = queue
        # An entry behind another one of its queue is not due before that one.
        if not ids and (deadline := self._deadline_of(entry)) < self.earliest:
            self.earliest = deadline
        ids.append(event_id)
        entries.append(entry)
        self._queued += 1

    def replace(self, event_id: str, entry: Entry) -> None:
        """Replace the entry of an id by one of the same deadline."""
        self._entries[event_id] = entry

    def pop(self, event_id: str) -> Entry | None:
        """Remove the entry of an id and return it, or None."""
        entry = self._entries.pop(event_id, None)
        if entry is not None:
            for ids, entries in self._queues.values():
                if entries and entries[0] is entry:
                    ids.popleft()
                    entries.popleft()
                    self._queued -= 1
            if self._queued > 2 * len(self._entries) + _SPARE:
                self._drop_stale()
        return entry

    def pop_due(self, now: float) -> Iterator[tuple[str, Entry]]:
        """Remove the entries whose deadline is not after `now`, and yield them, the earliest first."""
        while self.earliest <= now:
            wait = self._first_queue()
            if wait is None or self.earliest > now:
                return
            ids, entries = self._queues[wait]
            event_id = ids.popleft()
            entries.popleft()
            self._queued -= 1
            if len(self._queues) == 1:
                self.earliest = self._deadline_of(entries[0]) if ids else math.inf
            yield event_id, self._entries.pop(event_id)

    @property
    def next_deadline(self) -> float:
        """The earliest deadline; infinity without entries."""
        self._first_queue()
        return self.earliest

    @property
    def longest_wait(self) -> float:
        """The longest wait of any entry; 0 without entries."""
        self._first_queue()  # removes the queues without entries
        return max(self._queues, default=0.0)

    def first_entries(self) -> list[Entry]:
        """Return the oldest entry of each wait."""
        self._first_queue()
        return [entries[0] for _, entries in self._queues.values()]

    def columns(self) -> tuple[list[str], list[Entry]]:
        """Return all ids and all entries, by wait and then by deadline."""
        if self._queued > len(self._entries):
            self._drop_stale()
        ids = [event_id for wait in sorted(self._queues) for event_id in self._queues[wait][0]]
        return ids, list(map(self._entries.__getitem__, ids))

    def items(self) -> list[tuple[str, Entry]]:
        """Return all ids with their entries, in the same order."""
        return list(zip(*self.columns(), strict=True))

    def _first_queue(self) -> float | None:
        """Return the wait of the queue whose first entry is due earliest, and record its deadline."""
        first, self.earliest = None, math.inf
        for wait in sorted(self._queues) if len(self._queues) > 1 else list(self._queues):
            ids, entries = self._queues[wait]
            while ids and not self._is_current(ids[0], entries[0]):
                ids.popleft()
                entries.popleft()
                self._queued -= 1
            if not ids:
                del self._queues[wait]
            elif (deadline := self._deadline_of(entries[0])) < self.earliest or first is None:
                first, self.earliest = wait, deadline
        return first

    def _is_current(self, event_id: str, entry: Entry) -> bool:
        """Return whether a queued entry is still the entry of its id, which may have been added again."""
        current = self._entries.get(event_id)
        return current is entry or (
            current is not None and self._deadline_of(current) == self._deadline_of(entry)
        )

    def _drop_stale(self) -> None:
        """Rebuild the queues without removed entries."""
        seen: set[str] = set()  # an id that was added again with an equal deadline is in two queues
        for wait, (ids, entries) in list(self._queues.items()):
            current = {
                event_id: entry
                for event_id, entry in zip(ids, entries, strict=True)
                if event_id not in seen and self._is_current(event_id, entry)
            }
            seen.update(current)
            self._queues[wait] = deque(current), deque(current.values())
            if not current:
                del self._queues[wait]
        self._queued = sum(len(ids) for ids, _ in self._queues.values())


class Finished(Generic[Entry]):
    """Entries that are remembered until their deadlines, up to a maximum number."""

    def __init__(self) -> None:
        self.young: dict[str, Entry] = {}
        self.old: dict[str, Entry] = {}
        self.young_until = self.old_until = -math.inf

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.young) + len(self.old)

    def get(self, event_id: str) -> Entry | None:
        """Return the entry of an id, or None."""
        entry = self.young.get(event_id)
        return self.old.get(event_id) if entry is None else entry

    def add(self, event_id: str, entry: Entry, *, deadline: float, most: int) -> int:
        """Add an entry, and return the number of entries that were dropped for it."""
        forgotten = 0
        if len(self.young) >= max(most // 2, 1):
            forgotten = len(self.old)
            self._turn()
            if most < 2:
                forgotten += len(self.old)
                self.old, self.old_until = {}, -math.inf
        self.old.pop(event_id, None)
        self.young[event_id] = entry
        if deadline > self.young_until:
            self.young_until = deadline
        return forgotten

    def replace(self, event_id: str, entry: Entry) -> None:
        """Replace the entry of an id by one of the same deadline."""
        (self.young if event_id in self.young else self.old)[event_id] = entry

    def discard(self, event_id: str) -> None:
        """Forget the entry of an id, if there is one."""
        if self.young.pop(event_id, None) is None:
            self.old.pop(event_id, None)

    def expire(self, now: float) -> None:
        """Drop the generations whose deadlines are all over."""
        while len(self) and self.old_until <= now:
            self._turn()

    def _turn(self) -> None:
        self.old, self.old_until = self.young, self.young_until
        self.young, self.young_until = {}, -math.inf


class WaitingDecisions(Timed[Entry], Generic[Entry, Ended]):
    """The decisions that wait, and the latest `ended` ones."""

    def __init__(self, deadline_of: Callable[[Entry], float], ended: Finished[Ended] | None = None) -> None:
        super().__init__(deadline_of)
        self.ended = Finished[Ended]() if ended is None else ended

    def begin(self, event_id: str, entry: Entry, *, wait: float) -> None:
        """Let a decision wait, with an id of which no decision waits."""
        self.ended.discard(event_id)
        self.add(event_id, entry, wait=wait)

    def end(self, event_id: str, entry: Ended, *, deadline: float, most: int) -> int:
        """Remember an ended decision, and return the number of those that were forgotten for it."""
        self.pop(event_id)
        return self.ended.add(event_id, entry, deadline=deadline, most=most)
