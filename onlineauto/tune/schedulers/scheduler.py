"""``Scheduler``: decides which trial gets how much. The base class of all, and their vocabulary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from onlineauto.errors import OptionError
from onlineauto.formats.mappings.values import shown
from onlineauto.tune.plain import count, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from onlineauto.tune.searchers.searcher import Searcher
    from onlineauto.tune.spaces import Config, Space

_SEED_BITS: Final = 1024
RULES: Final = 2
"""The rules of new studies. By 1, copies of PBT took the places of members that had not begun, a member
paused only if it ran alone, a config that was enqueued reopened only a study that was done, and ``idle`` did
not say where it belongs."""


class State(StrEnum):
    """The state of a trial."""

    PENDING = "PENDING"
    """Its job waits for a worker: its worker was lost, or it failed and is tried again."""
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    """It has a result, and may be resumed from there."""
    TERMINATED = "TERMINATED"
    ERRORED = "ERRORED"


class Decision(StrEnum):
    """The answer to a reported value."""

    CONTINUE = "CONTINUE"
    STOP = "STOP"
    """End the job here: tell the study this value."""


class ResumeFrom(NamedTuple):
    """A checkpoint: the trial that wrote it, and the resource that had been spent on it."""

    trial: int
    resource: int


class Suggestion(NamedTuple):
    """A job to do next: take a trial to a resource.

    Attributes
    ----------
    trial : int
        Its number. New trials are numbered 0, 1, 2, …
    config : dict
        Its config.
    resource : int
        The resource that the trial is to have been given in the end, counted from its beginning.
    resume_from : ResumeFrom or None
        The checkpoint to begin with; None to begin anew.
    """

    trial: int
    config: Config
    resource: int
    resume_from: ResumeFrom | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The parts of a study that all schedulers depend on.

    Attributes
    ----------
    space : Space
    min_resource, max_resource : int
        The least and the most that a trial is given.
    eta : int
        The factor between one rung and the next.
    seed : int
        Of random numbers.
    rules : int
        The rules by which the log of the study is repeated: `RULES` of a new one, less of an older one.

    Raises
    ------
    OptionError
        If the resources are no whole numbers with ``1 <= min_resource <= max_resource < 2**53``, or `eta` is
        less than 2.
    """

    space: Space
    min_resource: int = 1
    max_resource: int = 81
    eta: int = 3
    seed: int = 0
    rules: int = RULES

    def __post_init__(self) -> None:
        for name in ("min_resource", "max_resource", "eta"):
            object.__setattr__(self, name, count(name, getattr(self, name), 1))
        seed = whole(self.seed)
        if seed is None or seed.bit_length() > _SEED_BITS:
            raise OptionError(f"seed = {shown(self.seed)}: give a whole number of at most {_SEED_BITS} bits")
        object.__setattr__(self, "seed", seed)
        if self.max_resource < self.min_resource:
            raise OptionError(
                f"min_resource = {self.min_resource}, max_resource = {self.max_resource}: "
                "valid is 1 <= min_resource <= max_resource"
            )
        if self.eta < 2:
            raise OptionError(f"eta = {self.eta}: a rung keeps one trial in eta, so eta is at least 2")


class Scheduler(ABC):
    """Decides which trial is given how much, and which go on.

    A scheduler is plain values: no clock, no files, and the same calls always give the same answers. It sees
    losses: lower is better, whatever the mode of the study. Infinity is a loss. NaN is an error, and a
    scheduler never sees one. Every job that it suggests ends in one call of `on_result` or `on_error`; jobs
    may end in any order.

    Attributes
    ----------
    name : str
        The name in the registry, or any other.
    options : dict
        What the constructor was called with, as plain JSON: called with these it makes the same again.
    ends : bool
        True if it comes to an end by itself, whatever the searcher has.
    default_searcher : str
        The name of the searcher of a study that names none.
    setting : Setting
        Set by `begin`.
    """

    name: ClassVar[str]
    ends: ClassVar[bool] = False
    default_searcher: ClassVar[str] = "tpe"
    options: Mapping[str, Any] = {}
    setting: Setting

    def begin(self, setting: Setting) -> None:
        """Set what the study is about; called once, before all else."""
        self.setting = setting

    def extend(self, setting: Setting) -> None:
        """Go on, also after the end: there may be more trials, and `max_resource` may be larger.

        It is called at any time, and whenever a config is enqueued.

        Raises
        ------
        OptionError
            If this scheduler cannot change `max_resource`; then nothing is changed.
        """
        if setting.max_resource != self.setting.max_resource:
            raise OptionError(
                f"max_resource = {setting.max_resource}: scheduler {self.name!r} keeps the "
                f"{self.setting.max_resource} that it began with; begin a study under another name"
            )
        self.setting = setting

    @abstractmethod
    def suggest(self, searcher: Searcher) -> Suggestion | None:
        """Return the next job, or None if there is none before another job ends, or ever.

        New configs come from ``searcher.ask()``. Once it returns None it has no more.
        A config that the scheduler makes itself is counted by ``searcher.take(config)``, which returns False
        if there may be no more trials. A call that returns None without having asked the searcher in vain
        changes nothing.
        """

    def on_details(self, trial: int, details: Mapping[str, Any]) -> None:  # noqa: B027
        """Receive what the next loss of a trial is about, if it comes with details; plain JSON."""

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:  # noqa: ARG002
        """Return whether a running trial goes on, now that it has this loss at this resource."""
        return Decision.CONTINUE

    @abstractmethod
    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:
        """Receive the loss with which a job ended; return the states of all trials that it changes."""

    @abstractmethod
    def on_error(self, trial: int) -> dict[int, State]:
        """Receive that a job failed; return the states of all other trials that it changes."""

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """True if no job is running and there will never be another one."""

    def resumable(self) -> Iterable[ResumeFrom]:
        """Return the checkpoints of trials that are not paused that a later job may begin with."""
        return ()

    @property
    def rounds(self) -> int | None:
        """The number of times that it has been through all it does; None if there is no such thing."""
        return None

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; `begin` was called before, with the same setting."""
