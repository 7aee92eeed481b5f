"""Tasks of workers: a part of a trial, its messages as plain values, and the processes that run it.

A worker knows neither the study nor the store. It receives a `TrialTask`, sends a `TaskStep` after each unit
of resource, and waits for permission to continue. At the end it sends `TaskEnded` or `TaskFailed`.
"""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import spawn
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from onlineauto.errors import OptionError
from onlineauto.tune.plain import as_json
from onlineauto.tune.store.checkpoints import pack_checkpoint, unpack_checkpoint
from onlineauto.tune.workers.trainable import train
from onlineauto.work.process import Process, wait_for_processes

if TYPE_CHECKING:
    from onlineauto.tune.workers.trainable import AnyTrainable, Config, Details, History, Saved, Trainable
    from onlineauto.work.process import Parent


@dataclass(frozen=True, slots=True)
class TrialTask:
    """A part of a trial."""

    config: Config  # The hyperparameters.
    resource: int  # Number of steps at the end of the task, and number of steps that are done before it.
    step: int = 0
    saved: bytes | None = None  # The packed checkpoint from which to continue.
    every: int = 1  # A checkpoint is saved after each multiple of `every` steps, and after the last step.

    def arguments(self) -> tuple[Any, ...]:
        """Return plain values for `task_of`."""
        return json.dumps(dict(self.config)), self.resource, self.step, self.saved, self.every


@dataclass(frozen=True, slots=True)
class TaskStep:
    """The end of a unit of resource: number of steps, value, packed checkpoint or None, and details."""

    step: int
    value: Any
    saved: bytes | None
    details: Details = None


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """The task is done, or was stopped."""


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """The trainable raised an error: `why` is its last line, `details` its traceback."""

    why: str
    details: str


TaskEvent: TypeAlias = TaskStep | TaskEnded | TaskFailed
SendStep: TypeAlias = Callable[[TaskStep], bool]
"""Receives a step and returns whether the trial continues."""
Message: TypeAlias = tuple[Any, ...]
"""Plain values: ``("step", step, value, whether it is JSON, checkpoint, details)``, ``("ended",)``, or
``("failed", why, details)``; nothing if there is no trainable. The answer to ``("history",)`` is the rows of
`Report.history` as JSON."""


def perform(
    trainable: AnyTrainable, task: TrialTask, reusable: Trainable | None, send: SendStep, history: History
) -> tuple[TaskEnded | TaskFailed, Trainable | None]:
    """Run a task in this process; return its end, and the object that the next task may reuse."""

    def report(step: int, value: Any, save: Callable[[], Saved] | None, details: Details) -> bool:
        checkpoint = (
            save() if save is not None and (step % task.every == 0 or step >= task.resource) else None
        )
        return send(
            TaskStep(step, value, None if checkpoint is None else pack_checkpoint(checkpoint), details)
        )

    checkpoint = None if task.saved is None else unpack_checkpoint(task.saved)
    try:
        reusable = train(
            trainable,
            task.config,
            resource=task.resource,
            step=task.step,
            saved=checkpoint,
            report=report,
            reusable=reusable,
            history=history,
        )
    except (Exception, SystemExit) as error:  # KeyboardInterrupt ends the command
        return TaskFailed(f"{type(error).__name__}: {error}", traceback.format_exc()), None
    return TaskEnded(), reusable


def task_of(config: str, *arguments: Any) -> TrialTask:
    """Return the task of plain values."""
    return TrialTask(json.loads(config), *arguments)


def message_of(event: TaskEvent) -> Message:
    """Return a message of a task as plain values.

    >>> message_of(TaskStep(3, [0.5], None, {"seen": 2}))
    ('step', 3, '[0.5]', True, None, '{"seen": 2}')
    """
    if isinstance(event, TaskEnded):
        return ("ended",)
    if isinstance(event, TaskFailed):
        return ("failed", event.why, event.details)
    try:
        text, is_plain = json.dumps(as_json(event.value, "a value")), True
    except OptionError:
        text, is_plain = repr(event.value), False
    details = None if event.details is None else json.dumps(event.details)
    return ("step", event.step, text, is_plain, event.saved, details)


def event_of(message: Message) -> TaskEvent:
    """Return the message of a task from plain values.

    >>> event_of(("step", 1, "<an object>", False, None, None)).value
    <an object>
    """
    kind, *rest = message
    if kind == "ended":
        return TaskEnded()
    if kind == "failed":
        return TaskFailed(*rest)
    step, text, is_plain, saved, details = rest
    value = json.loads(text) if is_plain else _Printed(text)
    return TaskStep(step, value, saved, None if details is None else json.loads(details))


class _Printed(str):
    """The printed form of a value that is not plain."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class TrialProcesses:
    """Starts processes for a trainable, and waits for them."""

    is_uniform: Final = True  # every worker can run every trial, so workers are started before there are jobs
    costs_idle: Final = False  # an idle worker occupies no resources that others could use

    def __init__(self, trainable: AnyTrainable) -> None:
        self._trainable = trainable

    def start(self, config: Config | None = None) -> Process:
        """Start a process, which can run every trial."""
        del config
        pickled = _by_name(self._trainable)
        prepared = spawn.get_preparation_data("trial") if b"__main__" in pickled else {}
        main = {name: value for name, value in prepared.items() if name.startswith("init_main")}
        return Process(f"{__name__}:serve", pickled, main)

    def fits(self, worker: Process, config: Config) -> bool:
        """Return True."""
        del worker, config
        return True

    wait = staticmethod(wait_for_processes)


def _by_name(trainable: AnyTrainable) -> bytes:
    """Return a trainable as a name that another process can import."""
    try:
        return pickle.dumps(trainable)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise OptionError(
            f"{trainable!r} cannot be sent to another process: {error}. Define it at the top of a module, or "
            "run it in this process with workers=0"
        ) from None


def serve(parent: Parent, pickled: bytes, main: dict[str, str]) -> None:
    """Run tasks in a worker process; `main` says where the parent's ``__main__`` is, if it is needed."""
    spawn.prepare(main)
    trainable: AnyTrainable = pickle.loads(pickled)  # noqa: S301 - a name that our own parent sent
    reusable: Trainable | None = None

    def send(step: TaskStep) -> bool:
        parent.send(message_of(step))
        return parent.receive() == ["go_on", True]

    def history() -> list[dict[str, Any]]:
        parent.send(("history",))
        return list(json.loads(parent.receive()[1]))

    for _, *arguments in parent:
        end, reusable = perform(trainable, task_of(*arguments), reusable, send, history)
        parent.send(message_of(end))
