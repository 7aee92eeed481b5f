"""A long-lived process that runs one part of a trial after another, and the pipe to it.

The process knows neither the study nor the store. It receives a ``TrialTask``, sends a ``TaskStep`` after
each unit of resource, and waits for permission to continue. At the end it sends ``TaskEnded`` or
``TaskFailed``. It exits when its pipe is closed, so no worker outlives the process that started it.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.tune.store.checkpoints import pack_checkpoint, unpack_checkpoint
from onlineauto.tune.workers.trainable import train

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from onlineauto.tune.workers.trainable import AnyTrainable, Config, Details, Saved, Trainable

_PATIENCE: Final = 5
"""Seconds that a process has to exit before it is killed."""


@dataclass(frozen=True, slots=True)
class TrialTask:
    """A part of a trial."""

    config: Config  # The hyperparameters.
    resource: int  # Number of steps at the end of the task, and number of steps that are done before it.
    step: int = 0
    saved: bytes | None = None  # The packed checkpoint from which to continue.
    every: int = 1  # A checkpoint is saved after each multiple of `every` steps, and after the last step.


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


class WorkerLost(OnlineautoError):  # noqa: N818 - the name says what happened
    """A worker has ended. The message completes a sentence that begins with 'its process was'."""


SendStep: TypeAlias = Callable[[TaskStep], bool]
"""Receives a step and returns whether the trial continues."""


def perform(
    trainable: AnyTrainable, task: TrialTask, reusable: Trainable | None, send: SendStep
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
        )
    except (Exception, SystemExit) as error:  # KeyboardInterrupt ends the command
        return TaskFailed(f"{type(error).__name__}: {error}", traceback.format_exc()), None
    return TaskEnded(), reusable


class Process:
    """A worker process, in the process that started it."""

    def __init__(self, trainable: AnyTrainable) -> None:
        context = _context()
        parent_end, child_end = context.Pipe()
        self.pipe: Connection = parent_end
        self._process = context.Process(target=_serve, args=(child_end, _by_name(trainable)), daemon=True)
        self._process.start()
        child_end.close()

    @property
    def is_up(self) -> bool:
        """True: the pipe buffers a task until the process is up."""
        return True

    def receive_ready(self) -> None:
        """Do nothing, because a process sends no message when it is up."""

    def begin(self, task: TrialTask) -> None:
        """Send a task; raise `WorkerLost` if the process has died."""
        self._send(task)

    def answer(self, goes_on: bool) -> None:
        """Send whether the process continues; raise `WorkerLost` if it has died."""
        self._send(goes_on)

    def receive(self) -> TaskStep | TaskEnded | TaskFailed:
        """Return the next message; raise `WorkerLost` if the process has died."""
        try:
            message: TaskStep | TaskEnded | TaskFailed = self.pipe.recv()
        except (EOFError, OSError):
            raise WorkerLost(self._exit_reason()) from None
        return message

    def _send(self, message: TrialTask | bool) -> None:
        try:
            self.pipe.send(message)
        except OSError:
            raise WorkerLost(self._exit_reason()) from None

    def _exit_reason(self) -> str:
        """Return how the process, whose pipe is closed, has ended, for a message."""
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        code = self._process.exitcode or 0
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """Close the pipe, wait until the process has exited, and kill it after five seconds."""
        self.pipe.close()
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


class Processes:
    """Starts processes for a trainable, and waits for them."""

    is_uniform = True
    costs_idle = False

    def __init__(self, trainable: AnyTrainable) -> None:
        self._trainable = trainable

    def start(self, config: Config | None) -> Process:
        """Start a process, which can run every trial."""
        del config
        return Process(self._trainable)

    def fits(self, worker: Process, config: Config) -> bool:
        """Return True."""
        del worker, config
        return True

    def wait(self, workers: Sequence[Process], seconds: float | None) -> Sequence[Process]:
        """Return processes that have sent a message or died; none after the timeout."""
        ready = wait([each.pipe for each in workers], seconds)
        return [each for each in workers if each.pipe in ready]


def _context() -> Any:
    """Return a start method whose processes do not inherit threads and connections of this process."""
    methods = multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")


def _by_name(trainable: AnyTrainable) -> bytes:
    """Return a trainable as a name that another process can import."""
    try:
        return pickle.dumps(trainable)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise OptionError(
            f"{trainable!r} cannot be sent to another process: {error}. Define it at the top of a module, or "
            "run it in this process with workers=0"
        ) from None


def _serve(pipe: Connection, pickled: bytes) -> None:
    """Run tasks until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides when to exit
    trainable: AnyTrainable = pickle.loads(pickled)  # noqa: S301 - a name that our own parent sent
    reusable: Trainable | None = None

    def send(step: TaskStep) -> bool:
        pipe.send(step)
        return bool(pipe.recv())

    try:
        while True:
            task = pipe.recv()
            end, reusable = perform(trainable, task, reusable, send)
            pipe.send(end)
    except (EOFError, OSError):
        return
