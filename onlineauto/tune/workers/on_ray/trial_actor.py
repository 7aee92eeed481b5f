"""``TrialActor``: what runs in an actor of Ray: does tasks, and waits after each step for whether to go on.

Each call returns the next message of the trial, so there is always one call under way, whose end the driver
awaits: either a message, or that the actor is gone.
"""

from __future__ import annotations

import json
import os
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from onlineauto.errors import OptionError
from onlineauto.tune.workers.naming import imported
from onlineauto.tune.workers.process import Ended, Failed, Step, Task, perform

if TYPE_CHECKING:
    from onlineauto.tune.workers.trainable import Trainable, What

__all__ = ["Message", "TrialActor", "message_of", "said_in"]

Message: TypeAlias = tuple[Any, ...]
"""Plain values: ``("step", step, number or None, text, checkpoint, details)``, ``("ended",)``, or
``("failed", why, details)``; nothing if there is no trainable."""


class TrialActor:
    """Runs tasks, one after the other, in a thread of its own.

    Parameters
    ----------
    what : str, class or function
        The trainable; a name is imported here.
    """

    def __init__(self, what: str | What) -> None:
        self._what = what
        self._tasks: SimpleQueue[Task] = SimpleQueue()
        self._answers: SimpleQueue[bool] = SimpleQueue()
        self._said: SimpleQueue[Message] = SimpleQueue()
        self._serves = False

    def ready(self) -> str:
        """Import the trainable and return an empty text, or say why it cannot be imported."""
        if isinstance(self._what, str):
            try:
                self._what = imported(self._what)
            except (ImportError, OptionError) as error:
                return f"{error}"
        self._serves = True
        threading.Thread(target=self._serve, args=(self._what,), name="onlineauto trial", daemon=True).start()
        return ""

    def begin(self, config: str, resource: int, step: int, saved: bytes | None, every: int) -> Message:
        """Begin a task, and return what it says first; nothing if there is no trainable."""
        if not self._serves:
            return ()
        self._tasks.put(Task(json.loads(config), resource, step, saved, every))
        return self._said.get()

    def go_on(self, goes_on: bool) -> Message:
        """Go on after a step, or end there; return what the task says next."""
        self._answers.put(goes_on)
        return self._said.get()

    def _serve(self, what: What) -> None:
        kept: Trainable | None = None
        try:
            while True:
                end, kept = perform(what, self._tasks.get(), kept, self._say)
                self._said.put(message_of(end))
        except BaseException:  # it asks the interpreter to exit, as it could in a process of its own
            os._exit(1)

    def _say(self, step: Step) -> bool:
        self._said.put(message_of(step))
        return self._answers.get()


def message_of(said: Step | Ended | Failed) -> Message:
    """Return what a task says as plain values.

    >>> message_of(Step(3, "0.5", None, {"seen": 2}))
    ('step', 3, 0.5, "'0.5'", None, '{"seen": 2}')
    """
    if isinstance(said, Ended):
        return ("ended",)
    if isinstance(said, Failed):
        return ("failed", said.why, said.details)
    try:
        number: float | None = float(said.value)
    except (TypeError, ValueError):
        number = None
    details = None if said.details is None else json.dumps(said.details)
    return ("step", said.step, number, repr(said.value), said.saved, details)


def said_in(message: Message) -> Step | Ended | Failed:
    """Return what a task has said.

    >>> said_in(("step", 1, None, "[1]", None, None)).value
    [1]
    """
    kind, *rest = message
    if kind == "ended":
        return Ended()
    if kind == "failed":
        return Failed(*rest)
    step, number, shown, saved, details = rest
    value = _Shown(shown) if number is None else number
    return Step(step, value, saved, None if details is None else json.loads(details))


class _Shown(str):
    """A value that is no number, as it was printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
