"""``Pbt``: population based training. A copy of a good member with new hyperparameters replaces a bad one.

Source: Jaderberg and others: Population based training of neural networks, 2017.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, ClassVar

from onlineauto.errors import OptionError
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.scheduler import Decision, ResumeFrom, Setting, State, Suggestion
from onlineauto.tune.spaces import Categorical, Config, Int
from onlineauto.tune.spaces.draw import Draw

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from onlineauto.tune.searchers.searcher import Searcher
    from onlineauto.tune.spaces import Parameter, Value

_PURPOSE = 3
_TRIES = 20
"""Maximum number of draws of hyperparameters until they differ from the donor's."""


class Pbt(FifoScheduler):
    """A population in which good members are copied and bad ones end.

    Each member reports intermediate values. After each `interval` it is compared with the other members. If
    it is among the worst it stops, and a new trial continues from the checkpoint of one of the best. The new
    trial inherits the rest of the member's budget: a member and its successors train for at most
    `max_resource` together, so the study ends even if the best values are the earliest ones. With
    fewer workers than members, members alternate: each pauses after its interval if others wait.
    """

    name = "pbt"
    needs_space = True
    STATE: ClassVar = {
        "_configs": dict[int, Config],
        "_scores": dict[int, tuple[int, float]],
        "_since": dict[int, int],
        "_donors": list[ResumeFrom],
        "_donated": list[Config],
        "_left": list[int],
        "_ends": dict[int, int],
        "_drawn": int,
        "_pausing": dict[int, int],
        "_paused": list[ResumeFrom],
        "_copies": int,
        "_may_have_more": bool,
    }
    ends = True

    def __init__(
        self,
        population: int = 8,
        *,
        interval: int = 1,
        share: float = 0.25,
        resample: float = 0.25,
        factors: tuple[float, ...] = (0.8, 1.2),
    ) -> None:
        if population < 2 or interval < 1 or not 0 < share <= 0.5 or not 0 <= resample <= 1 or not factors:
            raise OptionError(
                f"population = {population}, interval = {interval}, share = {share}, resample = {resample}, "
                f"factors = {factors}: valid are 2 or more, 1 or more, up to 0.5, a chance, and one at least"
            )
        self.options = {
            "population": population,
            "interval": interval,
            "share": share,
            "resample": resample,
            "factors": list(factors),
        }
        self._population, self._interval, self._share = population, interval, share
        self._resample, self._factors = resample, tuple(factors)

    def begin(self, setting: Setting) -> None:  # noqa: D102
        super().begin(setting)
        self._draw = Draw(setting.seed, _PURPOSE)
        self._configs: dict[int, Config] = {}
        self._scores: dict[int, tuple[int, float]] = {}  # resource and loss at the last comparison
        self._since: dict[int, int] = {}  # the resource at which the current interval began
        self._donors: list[ResumeFrom] = []
        self._donated: list[Config] = []
        self._left: list[int] = []  # the rest of the budget of each member that is replaced next
        self._ends: dict[int, int] = {}  # by copy: the resource at which its budget is spent
        self._drawn = 0
        self._pausing: dict[int, int] = {}  # the resource at which a member pauses
        self._paused: list[ResumeFrom] = []
        self._copies = 0
        self._may_have_more = False  # true if an enqueued config may add a member

    def extend(self, setting: Setting) -> None:  # noqa: D102
        super().extend(setting)
        self._may_have_more = True

    def suggest(self, searcher: Searcher) -> Suggestion | None:  # noqa: D102
        if self._donors:
            return self._copy_job(searcher)
        job, refusals = None, searcher.refusals
        if not self._is_full or (self._may_have_more and searcher.queued):
            job = super().suggest(searcher)
        if job is None:
            if self._may_have_more and searcher.refusals == refusals:
                searcher.refuse()
            self._may_have_more = False
            return self._resume_first()
        self._configs[job.trial] = job.config
        return job

    @property
    def _is_full(self) -> bool:
        return self._exhausted or self._trials - self._copies >= self._population

    def _resume_first(self) -> Suggestion | None:
        """Return the job of the member that was paused first, or None."""
        if not self._paused:
            return None
        origin = self._paused.pop(0)
        self._running.add(origin.trial)
        return Suggestion(origin.trial, self._configs[origin.trial], self._end_of(origin.trial), origin)

    def _end_of(self, trial: int) -> int:
        """Return the resource at which a member has spent its budget."""
        return self._ends.get(trial, self.setting.max_resource)

    def _copy_job(self, searcher: Searcher) -> Suggestion | None:
        donor, config, left = self._donors.pop(0), self._donated.pop(0), self._left.pop(0)
        explored = self._explore(config, self._next())
        explored = searcher.config_of_log or explored
        if not searcher.take(explored):
            self._donors.clear()
            self._donated.clear()
            self._left.clear()
            self._exhausted = True
            return self._resume_first()
        trial = self._trials
        self._trials += 1
        self._copies += 1
        self._running.add(trial)
        self._configs[trial] = explored
        self._since[trial] = donor.resource
        self._ends[trial] = min(donor.resource + left, self.setting.max_resource)
        return Suggestion(trial, explored, self._end_of(trial), donor)

    def _next(self) -> np.random.Generator:
        rng = self._draw.at(self._drawn)
        self._drawn += 1
        return rng

    def _explore(self, config: Config, rng: np.random.Generator) -> Config:
        """Return a random config near another one, which differs from it unless all attempts fail."""
        space = self.setting.space
        for _ in range(_TRIES):
            explored: Config = {}
            for name in space.ordered:
                if space.exists(name, explored):
                    explored[name] = self._explored_value(name, config, rng)
            if explored != config:
                return explored
        return dict(config)

    def _explored_value(self, name: str, config: Config, rng: np.random.Generator) -> Value:
        parameter = self.setting.space.parameters[name]
        if name in config and rng.random() >= self._resample:
            return self._perturb(parameter, config[name], rng)
        return parameter.decode(rng.random(parameter.width).tolist())

    def _perturb(self, parameter: Parameter, value: Value, rng: np.random.Generator) -> Value:
        """Return a number times a random factor, clipped to its bounds; a word is returned unchanged."""
        if isinstance(parameter, Categorical):
            return value
        low, high = parameter.described()["low"], parameter.described()["high"]
        moved = float(value or 0) * self._factors[int(rng.integers(len(self._factors)))]
        bounded = min(max(moved, low), high)
        number = round(bounded) if isinstance(parameter, Int) else float(bounded)
        return number if parameter.holds(number) else parameter.decode(parameter.encode(number))

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:  # noqa: D102
        if resource >= self._end_of(trial):
            return Decision.STOP
        if resource < self._since.get(trial, 0) + self._interval:
            return Decision.CONTINUE
        self._since[trial] = resource
        self._scores[trial] = resource, loss
        ranked = sorted(self._scores, key=lambda member: self._scores[member][1])
        size = min(ceil(len(ranked) * self._share), len(ranked) // 2)
        if ranked.index(trial) < len(ranked) - size:
            return self._turn(trial, resource)
        donor = ranked[int(self._next().integers(size))]
        self._donors.append(ResumeFrom(donor, self._scores[donor][0]))
        self._donated.append(self._configs[donor])
        self._left.append(self._end_of(trial) - resource)
        del self._scores[trial]
        return Decision.STOP

    def _turn(self, trial: int, resource: int) -> Decision:
        """Return STOP to pause a member if others wait, so that it can be compared with them."""
        runs_alone = self._running == {trial}
        others_wait = self._paused or not self._is_full or (runs_alone and self._donors)
        if not others_wait:
            return Decision.CONTINUE
        self._pausing[trial] = resource
        return Decision.STOP

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:  # noqa: D102
        if self._pausing.pop(trial, None) == resource and resource < self._end_of(trial):
            self._running.remove(trial)
            self._paused.append(ResumeFrom(trial, resource))
            return {trial: State.PAUSED}
        self._forget(trial)
        return super().on_result(trial, resource, loss)

    def on_error(self, trial: int) -> dict[int, State]:  # noqa: D102
        self._forget(trial)
        return super().on_error(trial)

    def _forget(self, trial: int) -> None:
        self._scores.pop(trial, None)
        self._since.pop(trial, None)
        self._pausing.pop(trial, None)
        self._ends.pop(trial, None)
        del self._configs[trial]

    def resumable(self) -> Iterable[ResumeFrom]:
        """Return the checkpoints that are copied next, and those of the last comparisons of all members."""
        return [
            *self._donors,
            *self._paused,
            *(ResumeFrom(trial, resource) for trial, (resource, _) in self._scores.items()),
        ]

    @property
    def is_done(self) -> bool:  # noqa: D102
        waits = self._running or self._donors or self._paused
        return not waits and self._is_full and not self._may_have_more
