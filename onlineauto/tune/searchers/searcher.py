"""``Searcher``: proposes configs. The base class of all searchers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.errors import OptionError
from onlineauto.tune.spaces.draw import Draw

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    import numpy as np

    from onlineauto.tune.spaces import Config, Space

_PURPOSE = 1
_SMALL = 1000
"""The most configs of a space in which a config that was tried is not proposed before all others."""
_TRIES = 50
"""Random configs that are drawn to find one that was not tried."""


class Searcher(ABC):
    """Proposes configs, and learns from the losses of those that were tried.

    A searcher is plain values: no clock, no files, and its random numbers depend on the seed and on how many
    configs it has proposed. A subclass has `propose`; one that learns has `on_result` too, and one that
    remembers anything has `remember` and `recall`.

    Attributes
    ----------
    name : str
        The name in the registry, or any other.
    options : dict
        What the constructor was called with, as plain JSON: called with these it makes the same again.
    ends : bool
        True if it comes to an end by itself.
    space : Space
        Set by `begin`.
    limit : int or None
        How many trials there may be in all; the study sets it.
    count : int
        How often `propose` was called.
    refusals : int
        How often the scheduler got no new trial.
    """

    name: ClassVar[str]
    ends: ClassVar[bool] = False
    options: Mapping[str, Any] = {}
    space: Space

    def begin(self, space: Space, *, seed: int) -> None:
        """Set the space and the seed; called once, before all else."""
        self.space = space
        self.limit: int | None = None
        self.count = 0
        self.refusals = 0
        self._begun = 0
        self._known: Config | None = None
        self._repeats = False
        self._draw = Draw(seed, _PURPOSE)
        self._queue: deque[Config] = deque()

    @abstractmethod
    def propose(self, number: int, rng: np.random.Generator) -> Config | None:
        """Return a config, or None if there is no other one, now or ever.

        Parameters
        ----------
        number : int
            Counts from 0.
        rng : Generator
            Random numbers that belong to this number.
        """

    def may_end(self, number: int) -> bool:  # noqa: ARG002 - for those who know better
        """Return whether `propose` may have returned None for this number; True where that is not known."""
        return True

    def on_ask(self, config: Config) -> None:
        """Learn that a config is tried now, whoever proposed it."""

    def on_report(self, config: Config, resource: int, loss: float) -> None:
        """Learn a loss on the way: of each new step that a running trial reports."""

    def on_result(self, config: Config, resource: int, loss: float) -> None:
        """Learn the loss of a config at a resource; lower is better. Infinity is a loss, NaN is none."""

    def on_retry(self, config: Config, why: str) -> None:
        """Learn that a job failed and is tried again."""

    def on_error(self, config: Config) -> None:
        """Learn that a trial of a config failed for good."""

    def on_complete(self, config: Config) -> None:
        """Learn that a trial of a config has ended well: no loss of it follows."""

    @property
    def is_small(self) -> bool:
        """True if the space has so few configs that they are soon all tried."""
        return self.space.size <= _SMALL

    def untried(self, tried: Collection[tuple[Any, ...]], rng: np.random.Generator) -> Config:
        """Return a random config; in a small space one that was not tried, if one is found."""
        config = self.space.decode(rng.random(self.space.width))
        for _ in range(_TRIES if self.is_small else 0):
            if tuple(config.items()) not in tried:
                break
            config = self.space.decode(rng.random(self.space.width))
        return config

    def enqueue(self, config: Config) -> None:
        """Let a config be the next one that `ask` returns, behind those that wait already."""
        self._queue.append(config)

    @property
    def queued(self) -> bool:
        """True if a config waits that was enqueued."""
        return bool(self._queue)

    @property
    def known(self) -> Config | None:
        """While a log is repeated: the config of the trial that the log has next."""
        return self._known

    def ask(self, unwanted: Callable[[Config], bool] | None = None) -> Config | None:
        """Return the next config: one that waits, or a proposal; None if there is none any more.

        A proposal that is `unwanted` is dropped, and None is returned, which is no refusal then.

        Raises
        ------
        OptionError
            If `propose` returns what is not in the space.
        """
        queued, over = self.queued, self._is_over()
        config = self._next()
        if config is None and self._repeats and not over and not self.may_end(self.count - 1):
            if unwanted is None:
                raise ValueError(f"searcher {self.name!r} has a config for a new trial")
            return None  # it was dropped when this was decided
        if config is None:
            self.refusals += 1
        elif unwanted is not None and not queued and not self._repeats and unwanted(config):
            return None
        else:
            self._begun += 1
            self.on_ask(config)
        return config

    def _next(self) -> Config | None:
        if self._is_over():
            return None
        if self._queue:
            return self._queue.popleft()
        number = self.count
        self.count += 1
        if self._repeats:
            return self._known
        config = self.propose(number, self._draw.at(number))
        try:
            return None if config is None else self.space.check(config)
        except (OptionError, TypeError, AttributeError) as error:
            raise OptionError(
                f"searcher {self.name!r} proposed {config!r}, which is not in the space: {error}"
            ) from error

    @contextmanager
    def repeating(self, known: Config | None) -> Iterator[None]:
        """Let `ask` return what it returned when this was decided, and not propose it anew.

        With `known` None it returned None, if it was asked at all.
        """
        self._known, self._repeats = known, True
        try:
            yield
        finally:
            self._known, self._repeats = None, False

    def refuse(self) -> None:
        """Count that there is no new trial, because the scheduler has no config for one."""
        self.refusals += 1

    def take(self, config: Config) -> bool:
        """Count a trial whose config the scheduler made; return False if there may be no more.

        While a log is repeated, the config is the one that the log has: `known`.
        """
        if self._is_over():
            self.refusals += 1
            return False
        self._begun += 1
        self.on_ask(config)
        return True

    @property
    def left(self) -> float:
        """The number of trials that may still begin, beside those of configs that wait already."""
        return inf if self.limit is None else self.limit - self._begun - len(self._queue)

    def _is_over(self) -> bool:
        return self.limit is not None and self._begun >= self.limit

    def remember(self) -> dict[str, Any]:
        """Return what a subclass remembers, as plain JSON."""
        return {}

    def recall(self, remembered: Mapping[str, Any]) -> None:
        """Set what `remember` returned."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON."""
        return {
            "count": self.count,
            "begun": self._begun,
            "refusals": self.refusals,
            "queue": list(self._queue),
            **self.remember(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; `begin` was called before, with the same space and seed."""
        self.count, self._begun, self.refusals = state["count"], state["begun"], state["refusals"]
        self._queue = deque(dict(config) for config in state["queue"])
        self.recall(state)
