"""``JoinDecision``: a decision of the table, packed into bytes: millions of them may wait."""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

BYTES_PER_DECISION: Final = 350
"""Memory in bytes of a decision in a table, with an id of 32 characters; 212 to 335 bytes were measured."""


class JoinDecision(NamedTuple):
    """A decision of the table: the position of its record, and its rewards so far."""

    position: int  # The position and length of its record in the log.
    size: int
    made: float  # The time of the decision on the clock of the join, and the seconds for which it waits.
    wait: float
    rules: int  # The number of the rules that were in force at the time.
    active: bool  # False for a deferred decision that is not activated yet.
    rewards: int = 0  # The number of rewards so far, and their running value.
    value: float = 0.0
    # A hash of the key of each reward and value of a metric, and the number, 16 bytes each.
    keys: bytes = b""

    @property
    def deadline(self) -> float:
        """The time at which its wait is over."""
        return self.made + self.wait


_PLAIN: Final = Struct("<qIddH?")
_REWARDED: Final = Struct("<qIddH?Id")
_TIMES: Final = Struct("<12xdd")
_KEY: Final = Struct("<8sd")


def pack_decision(decision: JoinDecision) -> bytes:
    """Return a decision as bytes; millions wait, and a Python object would take several times the memory."""
    if not decision.rewards and not decision.keys:
        return _PLAIN.pack(*decision[:6])
    return _REWARDED.pack(*decision[:8]) + decision.keys


def read_decision(packed: bytes) -> JoinDecision:
    """Return the decision that bytes encode."""
    if len(packed) == _PLAIN.size:
        return JoinDecision._make((*_PLAIN.unpack(packed), 0, 0.0, b""))
    return JoinDecision._make((*_REWARDED.unpack_from(packed), packed[_REWARDED.size :]))


def is_decision(packed: bytes) -> bool:
    """Return whether bytes have the length of a packed decision."""
    rest = len(packed) - _REWARDED.size
    return len(packed) == _PLAIN.size or (rest >= 0 and rest % _KEY.size == 0)


def deadline_of(packed: bytes) -> float:
    """Return the time at which the wait of a packed decision is over."""
    made, wait = _TIMES.unpack_from(packed)
    return float(made + wait)


def hash_of(key: str, metric: str = "") -> bytes:
    """Return the hash of the key of a reward, or of a value of a metric; the first bit tells which."""
    digest = blake2b((f"{metric}\n{key}" if metric else key).encode(), digest_size=8).digest()
    return bytes([digest[0] & 127 | 128 * bool(metric)]) + digest[1:]


class DecisionTable(msgspec.Struct):
    """Decisions in order: their ids, their concatenated packed bytes, and the sizes of these."""

    ids: list[str]
    sizes: bytes
    entries: bytes
    until: float = 0.0


def remember_key(decision: JoinDecision, key_hash: bytes, reward: float) -> JoinDecision:
    """Return a decision that also remembers the reward of a key, given the hash of that key."""
    return decision._replace(keys=decision.keys + _KEY.pack(key_hash, reward))


def n_keys(decision: JoinDecision, *, metrics: bool = False) -> int:
    """Return the number of keys of rewards that a decision remembers, or of metrics."""
    return sum((known[0] > 127) == metrics for known, _ in _KEY.iter_unpack(decision.keys))


def reward_of(keys: bytes, key_hash: bytes) -> float | None:
    """Return the reward stored under the hash `key_hash` of a key; None if there is none."""
    return next((reward for known, reward in _KEY.iter_unpack(keys) if known == key_hash), None)


def table_of(ids: list[str], entries: list[bytes], until: float = 0.0) -> DecisionTable:
    """Return a table of packed decisions."""
    sizes = np.fromiter(map(len, entries), "<u4", len(entries)).tobytes()
    return DecisionTable(ids, sizes, b"".join(entries), max(until, -1e300))


def entries_of(table: DecisionTable) -> Iterator[tuple[str, bytes]]:
    """Yield the ids and the entries of a table."""
    sizes = np.frombuffer(table.sizes, "<u4")
    ends = np.cumsum(sizes, dtype=np.int64)
    if len(sizes) != len(table.ids) or int(sizes.sum()) != len(table.entries):
        raise ValueError("the table of decisions is damaged")
    entries = table.entries
    for event_id, begin, end in zip(table.ids, (ends - sizes).tolist(), ends.tolist(), strict=True):
        yield event_id, entries[begin:end]
