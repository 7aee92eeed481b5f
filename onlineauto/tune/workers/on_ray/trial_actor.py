"""``TrialActor``: runs trials in an actor of Ray, and after each step waits for permission to continue.

Each call returns the next message of the trial. One call is therefore always pending, and the driver waits
for its result: a message, or the death of the actor.

A driver can die or stop responding, and another driver then claims its trials. Only drivers write to the
store, so results of an actor whose driver lost the trial are never stored. To release its resources, an actor
exits when its driver was silent for one lease. (If the driver has died, Ray ends the actor sooner.)
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from onlineauto.errors import OptionError
from onlineauto.tune.workers.naming import import_trainable
from onlineauto.tune.workers.process import TaskEnded, TaskFailed, TaskStep, TrialTask, perform

if TYPE_CHECKING:
    from onlineauto.tune.workers.trainable import AnyTrainable, Trainable

_LOOKS: Final = 6
"""Number of silent checks in a row after which the driver is lost. A delay of this process delays both the
beats and the checks."""

Message: TypeAlias = tuple[Any, ...]
"""Plain values: ``("step", step, number or None, text, checkpoint, details)``, ``("ended",)``, or
``("failed", why, details)``; nothing if there is no trainable."""


class TrialActor:
    """Runs tasks, one after the other, in a separate thread."""

    def __init__(self, trainable: str | AnyTrainable, silence: float) -> None:
        self._trainable, self._silence = trainable, silence
        self._heard = True
        self._tasks: SimpleQueue[TrialTask] = SimpleQueue()
        self._answers: SimpleQueue[bool] = SimpleQueue()
        self._messages: SimpleQueue[Message] = SimpleQueue()
        self._serves = False

    def ready(self) -> str:
        """Import the trainable and return an empty text, or why it cannot be imported."""
        if isinstance(self._trainable, str):
            try:
                self._trainable = import_trainable(self._trainable)
            except (ImportError, OptionError) as error:
                return f"{error}"
        self._serves = True
        if math.isfinite(self._silence):
            threading.Thread(target=self._watch, name="onlineauto watch", daemon=True).start()
        threading.Thread(
            target=self._serve, args=(self._trainable,), name="onlineauto trial", daemon=True
        ).start()
        return ""

    def heartbeat(self) -> None:
        """Receive a sign of life of the driver, in parallel to the other methods."""
        self._heard = True

    def begin(self, config: str, resource: int, step: int, saved: bytes | None, every: int) -> Message:
        """Begin a task and return its first message; an empty tuple if there is no trainable."""
        if not self._serves:
            return ()
        self._tasks.put(TrialTask(json.loads(config), resource, step, saved, every))
        return self._messages.get()

    def go_on(self, goes_on: bool) -> Message:
        """Continue after a step, or end there; return the next message of the task."""
        self._answers.put(goes_on)
        return self._messages.get()

    def _serve(self, trainable: AnyTrainable) -> None:
        reusable: Trainable | None = None
        try:
            while True:
                end, reusable = perform(trainable, self._tasks.get(), reusable, self._report_step)
                self._messages.put(message_of(end))
        except BaseException:  # a trainable that exits ends the actor, like a worker process
            os._exit(1)

    def _watch(self) -> None:
        silent = 0
        while silent < _LOOKS:
            time.sleep(self._silence / _LOOKS)
            has_heartbeat, self._heard = self._heard, False
            silent = 0 if has_heartbeat else silent + 1
        os._exit(1)

    def _report_step(self, step: TaskStep) -> bool:
        self._messages.put(message_of(step))
        return self._answers.get()


def message_of(event: TaskStep | TaskEnded | TaskFailed) -> Message:
    """Return a message of a task as plain values.

    >>> message_of(TaskStep(3, "0.5", None, {"seen": 2}))
    ('step', 3, 0.5, "'0.5'", None, '{"seen": 2}')
    """
    if isinstance(event, TaskEnded):
        return ("ended",)
    if isinstance(event, TaskFailed):
        return ("failed", event.why, event.details)
    try:
        number: float | None = float(event.value)
    except (TypeError, ValueError):
        number = None
    details = None if event.details is None else json.dumps(event.details)
    return ("step", event.step, number, repr(event.value), event.saved, details)


def said_in(message: Message) -> TaskStep | TaskEnded | TaskFailed:
    """Return the message of a task from plain values.

    >>> said_in(("step", 1, None, "[1]", None, None)).value
    [1]
    """
    kind, *rest = message
    if kind == "ended":
        return TaskEnded()
    if kind == "failed":
        return TaskFailed(*rest)
    step, number, printed, saved, details = rest
    value = _Printed(printed) if number is None else number
    return TaskStep(step, value, saved, None if details is None else json.loads(details))


class _Printed(str):
    """The printed form of a value that is not a number."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
