"""``Searcher``: proposes configs. The base class of all searchers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from contextlib import contextmanager
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.errors import OptionError
from onlineauto.tune.spaces.draw import Draw

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import numpy as np

    from onlineauto.tune.spaces import Config, Space

_PURPOSE = 1
_SMALL = 1000
"""Maximum size of a space in which untried configs are preferred."""
_PRIOR_SHARE = 0.5
"""The share of random configs that are drawn from the prior, if the space has one."""
_TRIES = 50
"""Maximum number of random configs that are drawn to find an untried one."""


class Searcher(ABC):
    """Proposes configs, and learns from the losses of trials.

    A searcher is deterministic: it uses no clock and no files, and its random numbers depend only on the seed
    and the number of proposals. A subclass defines `propose`; if it learns, also `on_result`; and if it has a
    state, also `remember` and `recall`.
    """

    name: ClassVar[str]  # The name in the registry, or any other.
    ends: ClassVar[bool] = False  # True if the number of its proposals is finite.
    several: ClassVar[bool] = False  # True if it may be used with several objectives.
    uses_prior: ClassVar[bool] = True  # False if its configs do not depend on the priors of parameters.
    needs_space: ClassVar[bool] = False  # True if all parameters must be declared before the study begins.
    # The arguments of the constructor as plain JSON, from which an equal searcher can be constructed.
    options: Mapping[str, Any] = {}
    space: Space  # Set by `begin`.
    lowest: int = 0  # The lowest resource at which trials are compared; the scheduler sets it.

    def begin(self, space: Space, *, seed: int) -> None:
        """Set the space and the seed: before all other methods, and again before a state is restored."""
        self.space = space
        self.limit: int | None = None  # maximum number of trials; the study sets it
        self.count = 0  # number of calls of `propose`
        self.refusals = 0  # number of times that the scheduler got no new trial
        self._begun = 0
        self.seconds = 0.0  # the duration of the last call of `propose` in this process
        self.proposed: Config | None = None  # the config that it returned
        self.draft: Config | None = None  # the next proposal, if it was made before this call of `ask`
        self.branch = 0  # processes that propose at the same time draw from different random numbers
        self.config_of_log: Config | None = None  # while a log is repeated: that of its next trial
        self._repeats = False
        self._draw = Draw(seed, _PURPOSE)
        self._queue: deque[Config] = deque()
        self.first = 0  # the index of the enqueued config that begins next

    @abstractmethod
    def propose(self, number: int, rng: np.random.Generator) -> Config | None:
        """Return the config of a proposal, the first of which is 0; None if there is no further config."""

    def may_end(self, number: int) -> bool:  # noqa: ARG002 - subclasses use it
        """Return False if `propose` never returns None for this number, True if it may."""
        return True

    def on_ask(self, config: Config) -> None:
        """Learn that a trial of a config begins, whether or not this searcher proposed it."""

    def on_change(self, before: Config, config: Config) -> bool:  # noqa: ARG002 - subclasses use it
        """Learn that a trial, without a result so far, has another config than the one that was proposed.

        Return False if this searcher cannot change a config: it then begins again with all trials.
        """
        return False

    def on_report(self, config: Config, resource: int, loss: float) -> None:
        """Learn an intermediate loss, of each new step that a running trial reports."""

    def on_result(self, config: Config, resource: int, loss: float) -> None:
        """Learn the loss of a config at a resource; lower is better. It may be infinity, but not NaN."""

    def on_losses(self, config: Config, resource: int, losses: Sequence[float]) -> None:
        """Learn the losses of a config, one for each objective; called if there are several."""

    def on_retry(self, config: Config, why: str) -> None:
        """Learn that a job failed and is tried again."""

    def on_error(self, config: Config) -> None:
        """Receive that a trial of a config failed and will not be repeated."""

    def on_complete(self, config: Config) -> None:
        """Learn that a trial of a config has ended well; no further loss follows."""

    @property
    def is_small(self) -> bool:
        """True if the space has at most 1000 configs."""
        return self.space.size <= _SMALL

    def draw_untried(self, tried: Collection[tuple[Any, ...]], rng: np.random.Generator) -> Config:
        """Return a random config; in a small space an untried one, unless 50 draws find none.

        If the space has a prior, the first config is its centre, and half of the others are drawn from it.
        """
        config = self._draw_config(rng, is_first=not self._begun)
        for _ in range(_TRIES if self.is_small else 0):
            if tuple(config.items()) not in tried:
                break
            config = self._draw_config(rng)
        return config

    def _draw_config(self, rng: np.random.Generator, *, is_first: bool = False) -> Config:
        if self.space.has_prior and (is_first or rng.random() < _PRIOR_SHARE):
            return self.space.draw(rng, centre=is_first)
        return self.space.decode(rng.random(self.space.width))

    def enqueue(self, config: Config) -> None:
        """Append a config to the queue from which `ask` returns first."""
        self._queue.append(config)

    @property
    def queued(self) -> list[Config]:
        """The enqueued configs that wait."""
        return list(self._queue)

    def ask(self, unwanted: Callable[[Config], bool] | None = None) -> Config | None:
        """Return the next config: an enqueued one, or a proposal; None if there are no more.

        A proposal that is `unwanted` is dropped. None is then returned, which does not count as a refusal.
        """
        queued, over = bool(self._queue), self._is_over()
        config = self._next()
        if config is None and self._repeats and not over and not self.may_end(self.count - 1):
            if unwanted is None:
                raise ValueError(f"searcher {self.name!r} has a config for a new trial")
            return None  # the proposal was dropped when the record was written
        if config is None:
            self.refusals += 1
        elif unwanted is not None and not queued and not self._repeats and unwanted(config):
            return None
        else:
            self.begin_trial(config)
        return config

    def _next(self) -> Config | None:
        if self._is_over():
            return None
        if self._queue:
            repeated = self._repeats and self.config_of_log in self._queue
            index = self._queue.index(self.config_of_log or {}) if repeated else self.first
            config = self._queue[index]
            del self._queue[index]
            return config
        number = self.count
        self.count += 1
        if self._repeats:
            return self.config_of_log
        if self.draft is not None:
            draft, self.draft = self.draft, None
            return draft
        began = perf_counter()
        proposal = self.propose(number, self._draw.at(number, self.branch))
        self.seconds = perf_counter() - began
        try:
            self.proposed = None if proposal is None else self.space.check(proposal)
        except (OptionError, TypeError, AttributeError) as error:
            raise OptionError(
                f"searcher {self.name!r} proposed {proposal!r}, which is not in the space: {error}"
            ) from error
        return self.proposed

    @contextmanager
    def repeating(self, config: Config | None) -> Iterator[None]:
        """Make `ask` return the config of the log, or None, in place of a new proposal."""
        self.config_of_log, self._repeats = config, True
        try:
            yield
        finally:
            self.config_of_log, self._repeats = None, False

    def refuse(self) -> None:
        """Count a refusal, because the scheduler has no config for a new trial."""
        self.refusals += 1

    def take(self, config: Config) -> bool:
        """Count a trial with a config of the scheduler; return False if the limit is reached."""
        if self._is_over():
            self.refusals += 1
            return False
        self.begin_trial(config)
        return True

    def begin_trial(self, config: Config) -> None:
        """Count a trial, and learn that it begins."""
        self._begun += 1
        self.on_ask(config)

    @property
    def left(self) -> float:
        """Number of trials that may still begin, without those of enqueued configs."""
        return inf if self.limit is None else self.limit - self._begun - len(self._queue)

    def _is_over(self) -> bool:
        return self.limit is not None and self._begun >= self.limit

    def remember(self) -> dict[str, Any]:
        """Return the state of a subclass as plain JSON."""
        return {}

    def recall(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `remember` returned."""

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
        """Restore a state; `begin` was called before with the same space and seed."""
        self.count, self._begun, self.refusals = state["count"], state["begun"], state["refusals"]
        self._queue = deque(dict(config) for config in state["queue"])
        self.recall(state)
