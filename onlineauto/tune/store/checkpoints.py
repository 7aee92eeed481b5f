"""Checkpoints of trials: their content, the protocol of their stores, and a store in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from onlineauto.errors import OptionError
from onlineauto.tune.plain import as_json

if TYPE_CHECKING:
    from collections.abc import Collection

    from onlineauto.tune.store.protocol import Claim

_BYTES: Final = b"B"
_JSON: Final = b"J"
"""The first byte gives the format of the rest."""


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A state of a trial."""

    step: int  # Number of steps of the trial, and the attempt that saved the state.
    attempt: int
    saved: bytes  # The result of `pack_checkpoint`.


def pack_checkpoint(saved: Any) -> bytes:
    """Return bytes, or an object that JSON can represent, as bytes for `unpack_checkpoint`.

    >>> unpack_checkpoint(pack_checkpoint({"loss": 0.5})), unpack_checkpoint(pack_checkpoint(b"weights"))
    ({'loss': 0.5}, b'weights')
    """
    if isinstance(saved, bytes | bytearray | memoryview):
        return _BYTES + bytes(saved)
    try:
        return _JSON + json.dumps(saved).encode()
    except (TypeError, ValueError):  # as_json() converts NumPy's numbers and explains other errors
        pass
    try:
        return _JSON + json.dumps(as_json(saved, "a checkpoint")).encode()
    except (OptionError, ValueError) as error:
        kind = type(saved).__name__
        raise OptionError(f"a checkpoint is bytes, or what JSON can write, and not {kind}: {error}") from None


def unpack_checkpoint(content: bytes) -> Any:
    """Return the object from the result of `pack_checkpoint`."""
    return content[1:] if content[:1] == _BYTES else json.loads(content[1:])


class Checkpoints(Protocol):
    """Stores checkpoints of trials by the job that saved them."""

    def keep(self, claim: Claim, job: str, step: int, saved: bytes, needed: Collection[int] = ()) -> None:
        """Save a state; retain the previous state of this attempt, and the states at steps in `needed`.

        If the claim is no longer valid, `LeaseLost` is raised.
        """
        ...

    def remove(self, trials: Collection[int]) -> None:
        """Remove all states of some trials."""
        ...

    def newest(self, trial: int, *, most: int, job: str | None = None) -> Checkpoint | None:
        """Return the undamaged state of a trial with the most steps, of up to `most`.

        With `job`, only states that this job has saved, in any attempt, are considered.
        """
        ...


class MemoryCheckpoints:
    """Checkpoints in memory, for a study in memory."""

    def __init__(self) -> None:
        self._states: dict[int, dict[str, list[Checkpoint]]] = {}

    def keep(self, claim: Claim, job: str, step: int, saved: bytes, needed: Collection[int] = ()) -> None:
        """Save a state; retain the previous state of the same job, and the states at steps in `needed`."""
        states = self._states.setdefault(claim.trial, {}).setdefault(job, [])
        states[:] = [state for state in states[:-1] if state.step in needed] + states[-1:]
        states.append(Checkpoint(step, claim.attempt, saved))

    def remove(self, trials: Collection[int]) -> None:
        """Remove all states of some trials."""
        for trial in trials:
            self._states.pop(trial, None)

    def newest(self, trial: int, *, most: int, job: str | None = None) -> Checkpoint | None:
        """Return the state of a trial with the most steps."""
        matches = [
            state
            for name, states in self._states.get(trial, {}).items()
            for state in states
            if state.step <= most and job in (None, name)
        ]
        return max(matches, default=None)
