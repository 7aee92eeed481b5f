"""``DecisionLog``: writes decisions and rewards as lines of dsjson.

A line is written to the file before the decision is returned, in one call and without a buffer in the
process, so a killed process loses no line. With ``sync`` the disk confirms each line, so a machine that loses
power loses no line either.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

import msgspec

from onlineauto.errors import InputError, OutputError
from onlineauto.formats.decisions.dsjson import decision_line, stamp
from onlineauto.formats.explicit_json import FeatureTexts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DecisionLog:
    r"""Appends decisions and rewards to a file. Several processes may append to the same file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory) / "decisions.dsjson"
    ...     log = DecisionLog(path)
    ...     log.decision("e1", {"user": "tom"}, [{"topic": "art"}, {"topic": "sports"}], 1, [0.25, 0.75])
    ...     log.reward("e1", 1.0)
    ...     decision, reward = path.read_text().splitlines()
    >>> decision[decision.index('"a":'):decision.index('"_multi"')]
    '"a":[2,1],"p":[0.75,0.25],"c":{"user":{"user=tom":1.0},'
    >>> msgspec.json.decode(reward)["RewardValue"]
    1.0
    """

    def __init__(self, path: str | os.PathLike[str], *, hash_seed: int = 0, sync: bool = False) -> None:
        self.path, self.sync, self._texts = Path(path), sync, FeatureTexts(hash_seed=hash_seed)
        self.name_columns: list[str] = []
        self._torn = False
        self._open()

    def _open(self) -> None:
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise InputError(f"cannot log decisions to {self.path}: {error.strerror}") from None
        finalize(self, os.close, self._file)
        size = os.fstat(self._file).st_size
        # A power failure may have cut off the last line, so the next write must end it first.
        self._torn = bool(size and os.pread(self._file, 1, size - 1) != b"\n")

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes but the open file, which a copy opens again."""
        return {name: value for name, value in vars(self).items() if name != "_file"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a copy, and open the file."""
        vars(self).update(state)
        self._open()

    def decision(
        self,
        event_id: str,
        context: Mapping[str, Any],
        actions: Sequence[Mapping[str, Any]],
        action: int,
        pmf: Sequence[float],
    ) -> None:
        """Write a decision."""
        texts, count = self._texts, len(actions)
        shared = texts.object_of(context)[1:-1]
        objects = ",".join([texts.object_of(features) for features in actions])
        ranked, chances = list(range(1, count + 1)), list(pmf)
        ranked.insert(0, ranked.pop(action))
        chances.insert(0, chances.pop(action))
        members = {
            "NameColumns": self.name_columns,
            "EventId": event_id,
            "Timestamp": stamp(time.time()),
            "a": ranked,
            "p": chances,
        }
        line = f'{{{shared}{"," if shared else ""}"_multi":[{objects}]}}'
        self._write(decision_line(members, line.encode()) + b"\n")

    def reward(self, event_id: str, reward: float) -> None:
        """Write the reward of a decision."""
        late = {"EventId": event_id, "RewardValue": reward, "EnqueuedTimeUtc": stamp(time.time())}
        self._write(msgspec.json.encode(late) + b"\n")

    def _write(self, line: bytes) -> None:
        if self._torn:  # an earlier line is incomplete, because the disk was full or power failed
            line = b"\n" + line
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError as error:
            self._torn = self._torn or written > 0
            raise self._unwritable(error) from error
        self._torn = False
        if self.sync:
            try:
                os.fdatasync(self._file)
            except OSError as error:
                raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> OutputError:
        unwritable = OutputError(f"cannot log decisions to {self.path}: {error.strerror}")
        unwritable.errno = error.errno
        return unwritable
