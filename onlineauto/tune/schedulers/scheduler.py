"""``Scheduler``: the base class of schedulers, which allocate resources to trials, and their vocabulary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.plain import as_int, count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from onlineauto.tune.searchers.searcher import Searcher
    from onlineauto.tune.spaces import Config, Space

_SEED_BITS: Final = 1024


class State(StrEnum):
    """The state of a trial."""

    PENDING = "PENDING"
    """The trial waits for a worker: its config was enqueued, its worker was lost, or it is tried again."""
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    """The trial has a result, and may be resumed from it."""
    TERMINATED = "TERMINATED"
    ERRORED = "ERRORED"


class Decision(StrEnum):
    """The answer to a reported value."""

    CONTINUE = "CONTINUE"
    STOP = "STOP"
    """End the job here and tell the study this value."""


class ResumeFrom(NamedTuple):
    """A checkpoint: the trial that saved it, and the resource of the trial at this point."""

    trial: int
    resource: int


class Suggestion(NamedTuple):
    """The next job: train a trial up to a resource."""

    trial: int  # The number of the trial. New trials are numbered 0, 1, 2, …
    config: Config
    resource: int  # The resource at the end of the job, counted from the beginning of the trial.
    resume_from: ResumeFrom | None = None  # The checkpoint to begin with; None to begin from scratch.


class WaitingTrial(NamedTuple):
    """A trial of the queue: its job waits for a worker, or it was enqueued and has not begun."""

    trial: int  # Its number; of an enqueued config, the number it gets if no other new trial begins before.
    config: Config
    resource: int  # The resource at the end of its job; 0 if it has not begun.
    needs: Mapping[str, float]  # The resources that it needs; empty if the worker has declared none.


class Available(NamedTuple):
    """The resources of the process that asks for a job."""

    free: Callable[[], Mapping[str, float]]  # Returns the free amount of each resource.
    needed: Callable[[Config], Mapping[str, float]]  # Returns the resources that a trial needs.


UNKNOWN: Final = Available(dict, lambda _: {})
"""The resources of a process that has declared none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The parts of a study that all schedulers depend on: ``1 <= min_resource <= max_resource < 2**53``."""

    space: Space
    min_resource: int = 1  # The minimum and maximum resource of a trial.
    max_resource: int = 81
    eta: int = 3  # The factor between one rung and the next, at least 2.
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("min_resource", "max_resource", "eta"):
            object.__setattr__(self, name, count(name, getattr(self, name), 1))
        seed = as_int(self.seed)
        if seed is None or seed.bit_length() > _SEED_BITS:
            raise OptionError(
                f"seed = {short_repr(self.seed)}: give a whole number of at most {_SEED_BITS} bits"
            )
        object.__setattr__(self, "seed", seed)
        if self.max_resource < self.min_resource:
            raise OptionError(
                f"min_resource = {self.min_resource}, max_resource = {self.max_resource}: "
                "valid is 1 <= min_resource <= max_resource"
            )
        if self.eta < 2:
            raise OptionError(f"eta = {self.eta}: a rung keeps one trial in eta, so eta is at least 2")


class Scheduler(ABC):
    """Allocates resources to trials, and decides which trials continue.

    A scheduler is deterministic: it uses no clock and no files, and the same calls always give the same
    answers. It receives losses, of which lower is better in both modes of a study. A loss may be infinity,
    but never NaN, which is an error. Every suggested job ends in one call of `on_result` or `on_error`; jobs
    may end in any order.
    """

    name: ClassVar[str]  # The name in the registry, or any other.
    ends: ClassVar[bool] = False  # True if its number of jobs is finite with any searcher.
    default_searcher: ClassVar[str] = "auto"
    needs_space: ClassVar[bool] = False  # True if all parameters must be declared before the study begins.
    # The arguments of the constructor as plain JSON, from which an equal scheduler can be constructed.
    options: Mapping[str, Any] = {}
    setting: Setting  # Set by `begin`.

    def begin(self, setting: Setting) -> None:
        """Set the setting of the study: before all other methods, and again before a state is restored."""
        self.setting = setting

    @staticmethod
    def history_option(history: Any) -> dict[str, str]:
        """Return the option `history` after a check; nothing for the default, ``now``."""
        if history not in ("now", "start"):
            raise OptionError(f"history = {history!r}: valid are now, start")
        return {} if history == "now" else {"history": history}

    @property
    def sees_start(self) -> bool:
        """True if reports of a trial are judged by what others had reported when the trial began.

        The study then calls `on_report` of this object, to learn, and of a copy from the start of the trial,
        to decide. Only a scheduler whose state does not depend on its decisions has this option.
        """
        return self.options.get("history") == "start"

    def extend(self, setting: Setting) -> None:
        """Allow more trials and a larger `max_resource`, also after the end of the study.

        This may be called at any time, and is called whenever a config is enqueued. A scheduler that cannot
        change `max_resource` raises `OptionError` and changes nothing.
        """
        if setting.max_resource != self.setting.max_resource:
            raise OptionError(
                f"max_resource = {setting.max_resource}: scheduler {self.name!r} keeps the "
                f"{self.setting.max_resource} that it began with; begin a study under another name"
            )
        self.setting = setting

    @abstractmethod
    def suggest(self, searcher: Searcher) -> Suggestion | None:
        """Return the next job, or None if there is no job until another job ends, or ever.

        New configs are returned by ``searcher.ask()``; after it has returned None, it has no more configs. A
        config of the scheduler itself is counted by ``searcher.take(config)``, which returns False if there
        may be no more trials. A call that returns None changes the state only if the searcher has refused a
        config.
        """

    def choose(self, waiting: Sequence[WaitingTrial], free: Mapping[str, float]) -> int | None:  # noqa: ARG002
        """Return the index of the trial of a queue that begins next; the first by default.

        There are two queues: trials whose job waits for a worker, before `suggest` is called, and enqueued
        configs, before `suggest` begins one. None leaves the first queue for now; if `suggest` has no other
        job, the first trial begins. `free` has the free resources of the process that asks, as passed to
        `Workers`. The log does not contain them, so this method must not change the state.
        """
        return 0

    def on_details(self, trial: int, details: Mapping[str, Any]) -> None:  # noqa: B027
        """Receive the details of the next loss of a trial, if it has any, as plain JSON."""

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:  # noqa: ARG002
        """Return whether a running trial continues after this loss at this resource."""
        return Decision.CONTINUE

    @abstractmethod
    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:
        """Receive the final loss of a job; return the new states of all trials that change."""

    @abstractmethod
    def on_error(self, trial: int) -> dict[int, State]:
        """Receive that a job failed; return the new states of all other trials that change."""

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """True if no job is running and there will never be another job."""

    def resumable(self) -> Iterable[ResumeFrom]:
        """Return the checkpoints, of trials that are not paused, from which later jobs may begin."""
        return ()

    @property
    def rounds(self) -> int | None:
        """Number of completed rounds; None if the scheduler has no rounds."""
        return None

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; `begin` was called before with the same setting."""
