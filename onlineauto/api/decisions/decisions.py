"""``Decisions``: draws actions, logs the decisions, and keeps them until their rewards arrive.

``DecisionLog`` writes decisions and rewards as lines of dsjson. A line is written to the file before the
decision is returned, in one call and without a buffer in the process, so a killed process loses no line. With
``sync`` the disk confirms each line, so a machine that loses power loses no line either.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias
from weakref import finalize

import msgspec

from onlineauto.api.decisions.choice import Choice, draw_index
from onlineauto.api.decisions.pending import Pending
from onlineauto.errors import InputError, OutputError, short_repr
from onlineauto.formats.decisions.dsjson import decision_line, stamp
from onlineauto.formats.decisions.waiting import LearnAt
from onlineauto.formats.explicit_json import FeatureTexts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.api.decisions.events import Actions, Features
    from onlineauto.formats.mappings.encoded_event import EncodedEvent
    from onlineauto.workspace.workspace import Workspace


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


class EventIds:
    """Generates ids: a random prefix and a count. Each copy and each process has a separate prefix.

    Examples
    --------
    >>> ids = EventIds()
    >>> one, other = next(ids), next(ids)
    >>> one[-2:], other[-2:], one[:-2] == other[:-2]
    ('-0', '-1', True)
    """

    __slots__ = ("_begun", "_count", "_prefix")

    forks: ClassVar[int] = 0
    """Number of forks between the first process and this one."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._prefix, self._count, self._begun = secrets.token_hex(6), 0, EventIds.forks

    def __next__(self) -> str:
        """Return the next id."""
        if self._begun != EventIds.forks:
            self._begin()
        count = self._count
        self._count = count + 1
        return f"{self._prefix}-{count}"

    def __reduce__(self) -> tuple[type[EventIds], tuple[()]]:
        """Return the constructor call for a copy, which starts with a new prefix."""
        return EventIds, ()


def _count_fork() -> None:
    EventIds.forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def is_id(event_id: object) -> bool:
    """Return whether a value is a nonempty string that can be encoded as UTF-8, and so as JSON."""
    try:
        return isinstance(event_id, str) and bool(event_id.encode())
    except UnicodeEncodeError:
        return False


class Decisions:
    """The decisions of a bandit. The caller holds a lock."""

    def __init__(
        self,
        *,
        seed: int,
        limit: int,
        time_to_live: float,
        default_cost: float | None,
        learn_at: LearnAt,
        clock: Callable[[], float],
    ) -> None:
        self.waiting = Pending(limit=limit, time_to_live=time_to_live, clock=clock)
        self.default_cost, self.learn_at = default_cost, learn_at
        # Mixed, so that a simulation with random.Random(seed) draws other numbers than the actions.
        self._random = random.Random(f"onlineauto decisions {seed}")
        self._ids = EventIds()
        self._log: DecisionLog | None = None

    def log_to(self, path: str | os.PathLike[str] | None, *, hash_seed: int, sync: bool) -> None:
        """Log decisions and rewards to a file from now on; None stops logging."""
        self._log = None if path is None else DecisionLog(path, hash_seed=hash_seed, sync=sync)

    def note_identities(self, identities: Iterable[str]) -> None:
        """Log with each decision the columns whose numbers are names."""
        if self._log is not None and len(self._log.name_columns) != len(names := sorted(identities)):
            self._log.name_columns = names

    def decide(
        self,
        event: EncodedEvent,
        actions: Actions,
        pmf: NDArray[np.float32],
        event_id: str | None,
    ) -> Choice:
        """Draw an action, log it, and add the decision to the waiting ones.

        Parameters
        ----------
        event : EncodedEvent
            The features of the context and of the actions, which are kept.
        actions : list or mapping
            The actions, as for `AutoML.rank`.
        pmf : float32[n_actions]
            Their probabilities.
        event_id : str, optional
            The id of the decision.
        """
        weights: list[float] = pmf.tolist()
        action = draw_index(weights, self._random.random())
        if new := event_id is None:
            event_id = next(self._ids)
        elif not is_id(event_id):
            raise InputError(
                f"event_id is a str that UTF-8 can have, not empty, and not {short_repr(event_id)}"
            )
        elif event_id in self.waiting:
            raise InputError(f"event {event_id!r} waits for its reward: give another id")
        if self._log is not None:
            self._log.decision(event_id, event.context, event.actions, action, weights)
        self.waiting.add(event_id, event, action, weights[action], new=new)
        named = type(actions) is not list and isinstance(actions, Mapping)
        action_id = list(actions)[action] if named else action
        return Choice(action, action_id, weights[action], pmf, event_id)

    def log_reward(self, event_id: str, reward: float) -> None:
        """Log the reward of a decision, if decisions are logged."""
        if self._log is not None:
            self._log.reward(event_id, reward)

    def kept(self) -> dict[str, Any]:
        """Return the part of a model file about decisions; the waiting ones too if rewards wait."""
        waiting = self.waiting
        return {
            "random": self._random.getstate(),
            "default_cost": self.default_cost,
            "learn_at": self.learn_at,
            "limit": waiting.limit,
            "time_to_live": waiting.time_to_live,
            "expired": waiting.expired,
            "waiting": waiting.packed() if self.learn_at == "wait" else b"",
        }

    @classmethod
    def restored(cls, state: dict[str, Any], *, clock: Callable[[], float]) -> Decisions:
        """Return decisions that continue from a result of `state`."""
        stored = msgspec.convert(state, _Kept)
        decisions = cls(
            seed=0,
            limit=stored.limit,
            time_to_live=stored.time_to_live,
            default_cost=stored.default_cost,
            learn_at=stored.learn_at,
            clock=clock,
        )
        decisions._random.setstate(stored.random)
        decisions.waiting.expired = stored.expired
        if stored.waiting:
            decisions.waiting.unpack(stored.waiting)
        return decisions


class _Kept(msgspec.Struct):
    """The part of a model file about decisions."""

    random: tuple[int, tuple[int, ...], float | None]
    default_cost: float | None
    limit: Annotated[int, msgspec.Meta(ge=1)]
    time_to_live: Annotated[float, msgspec.Meta(gt=0)]
    expired: Annotated[int, msgspec.Meta(ge=0)]
    learn_at: LearnAt = "reward"
    waiting: bytes = b""


ManyDecisions: TypeAlias = "Iterable[tuple[Features, Actions] | tuple[Features, Actions, str | None]]"
"""Contexts and actions, as for `AutoML.rank`, with the ids of the decisions or without."""
EncodedDecision: TypeAlias = "tuple[EncodedEvent, Actions, str | None]"
"""An encoded event, its actions, and the id of the decision."""


def encode_many(
    decisions: ManyDecisions, encode: Callable[[Features, Actions], EncodedEvent]
) -> list[EncodedDecision | InputError]:
    """Return the encoded events with their actions and ids; an error in place of a malformed one."""
    return [_encoded(decision, encode) for decision in decisions]


def decide_many(
    encoded: Sequence[EncodedDecision | InputError], decisions: Decisions, workspace: Workspace
) -> list[Choice | InputError | OSError]:
    """Predict events, draw their actions in order, and return the decisions, or the error of each."""
    events = [item[0] for item in encoded if not isinstance(item, InputError)]
    pmfs = iter(workspace.predict_each(events))
    choices: list[Choice | InputError | OSError] = []
    for item in encoded:
        if isinstance(item, InputError):
            choices.append(item)
            continue
        pmf = next(pmfs)
        if isinstance(pmf, InputError):
            choices.append(pmf)
            continue
        try:
            choices.append(decisions.decide(item[0], item[1], pmf, item[2]))
        except (InputError, OSError) as error:
            choices.append(error)
    return choices


def _encoded(
    decision: object, encode: Callable[[Features, Actions], EncodedEvent]
) -> EncodedDecision | InputError:
    if not isinstance(decision, tuple | list) or not 2 <= len(decision) <= 3:
        return InputError(
            f"a decision is (context, actions) or (context, actions, event_id), not {short_repr(decision)}"
        )
    context, actions, *event_id = decision
    try:
        event = encode(context, actions)
    except InputError as error:
        return error
    return event, actions, event_id[0] if event_id else None
