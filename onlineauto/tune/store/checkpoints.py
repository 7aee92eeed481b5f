"""Checkpoints of trials: what is saved, what keeps them, and where to go on from."""

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
"""The first byte says what follows."""


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A state of a trial.

    Attributes
    ----------
    step, attempt : int
        The steps that were done, and the attempt that saved it.
    saved : bytes
        What `packed` returned.
    """

    step: int
    attempt: int
    saved: bytes


def packed(saved: Any) -> bytes:
    """Return bytes, or what JSON can write, as bytes that `unpacked` reads.

    >>> unpacked(packed({"loss": 0.5})), unpacked(packed(b"weights"))
    ({'loss': 0.5}, b'weights')

    Raises
    ------
    OptionError
        It is neither.
    """
    if isinstance(saved, bytes | bytearray | memoryview):
        return _BYTES + bytes(saved)
    try:
        return _JSON + json.dumps(saved).encode()
    except (TypeError, ValueError):  # it has NumPy's numbers, or what cannot be stored
        pass
    try:
        return _JSON + json.dumps(as_json(saved, "a checkpoint")).encode()
    except (OptionError, ValueError) as error:
        kind = type(saved).__name__
        raise OptionError(f"a checkpoint is bytes, or what JSON can write, and not {kind}: {error}") from None


def unpacked(content: bytes) -> Any:
    """Return what was packed."""
    return content[1:] if content[:1] == _BYTES else json.loads(content[1:])


class Checkpoints(Protocol):
    """Keeps checkpoints of trials, each under the job that it is on the way of."""

    def keep(self, claim: Claim, job: str, step: int, saved: bytes, needed: Collection[int] = ()) -> None:
        """Keep a state, and of this attempt the one before it and those at steps that are needed.

        Raises
        ------
        LeaseLost
            If the claim is over.
        """
        ...

    def remove(self, trials: Collection[int]) -> None:
        """Forget all states of some trials."""
        ...

    def newest(self, trial: int, *, most: int, job: str | None = None) -> Checkpoint | None:
        """Return the good state of a trial with most steps.

        Parameters
        ----------
        trial : int
            The trial.
        most : int
            Largest number of steps.
        job : str, optional
            Only what was kept on the way of this job, by whichever attempt.
        """
        ...


class MemoryCheckpoints:
    """Checkpoints in the memory of this process, for a study that is there too."""

    def __init__(self) -> None:
        self._kept: dict[int, dict[str, list[Checkpoint]]] = {}

    def keep(self, claim: Claim, job: str, step: int, saved: bytes, needed: Collection[int] = ()) -> None:
        """Keep a state, and of the same job the one before it and those at steps that are needed."""
        states = self._kept.setdefault(claim.trial, {}).setdefault(job, [])
        states[:] = [each for each in states[:-1] if each.step in needed] + states[-1:]
        states.append(Checkpoint(step, claim.attempt, saved))

    def remove(self, trials: Collection[int]) -> None:
        """Forget all states of some trials."""
        for trial in trials:
            self._kept.pop(trial, None)

    def newest(self, trial: int, *, most: int, job: str | None = None) -> Checkpoint | None:
        """Return the state of a trial with most steps."""
        kept = self._kept.get(trial, {})
        found = [
            each
            for name, states in kept.items()
            for each in states
            if each.step <= most and job in (None, name)
        ]
        return max(found, default=None)
