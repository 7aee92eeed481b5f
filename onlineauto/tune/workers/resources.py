"""``Workers`` and ``RayWorkers``: the workers of a run, their resources, and the demand of each trial."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from onlineauto.tune.workers.trainable import Config
    from onlineauto.work.on_ray import Bundles

    Needs: TypeAlias = Mapping[str, float] | Sequence[Mapping[str, float]]

_SLACK = 1e-9
"""Tolerance for rounding errors of sums of demands."""

_MOST: Final = 100_000
"""Maximum number of workers of a run."""
STRATEGIES: Final = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
"""Ray's strategies to place the bundles of a trial on nodes."""


class Headcount:
    """A number of workers that may change. A surplus worker leaves when its job has ended.

    >>> workers = Headcount(2)
    >>> workers.now = 0  # the run waits
    >>> workers.close()  # the run ends at once, and gives back its jobs
    >>> workers.now, workers.is_closed
    (0, True)

    Parameters
    ----------
    now : int
        Initial number of workers; 0 for a run that waits.
    """

    def __init__(self, now: int) -> None:
        self._now = 0
        self._busy = 0
        self._is_closed = False
        self._lock = threading.Lock()
        self.now = now

    @property
    def now(self) -> int:
        """The target number of workers."""
        return self._now

    @now.setter
    def now(self, count: Any) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST:
            raise OptionError(f"workers = {count!r}: give a whole number from 0 to {_MOST:,}")
        with self._lock:
            self._now = count

    @property
    def busy(self) -> int:
        """Number of workers that have a job; it may exceed `now` for a while after `now` was reduced."""
        return self._busy

    def take(self) -> bool:
        """Count one more busy worker if there are fewer than `now`; return whether it was counted."""
        with self._lock:
            may = self._busy < self._now
            self._busy += may
            return may

    def give_back(self) -> None:
        """Count one busy worker fewer."""
        with self._lock:
            self._busy -= 1

    @property
    def is_closed(self) -> bool:
        """True if the run is to end now."""
        return self._is_closed

    def close(self) -> None:
        """End the run at once; its workers lose all steps since their last checkpoints."""
        self._is_closed = True


@dataclass(frozen=True, slots=True)
class Workers:
    """Processes for `Study.run`, and their shared resources. A job begins when its resources are free.

    >>> Workers(4, has={"gpu": 2, "memory": 64}, needs={"gpu": 0.5, "memory": 8}).needed({})
    {'gpu': 0.5, 'memory': 8}

    Parameters
    ----------
    count : int or Headcount
        Number of processes; a `Headcount` may change during the run.
    has : mapping of str to float
        Total amount of each resource, by any names.
    needs : mapping, or callable
        Amount of each resource that a trial needs, or a function of the config that returns this mapping.

    Raises
    ------
    OptionError
        An amount is not a number, or a trial needs more than there is.
    """

    count: int | Headcount
    has: Mapping[str, float] = field(default_factory=dict)
    needs: Mapping[str, float] | Callable[[Config], Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count(self.count)
        if wrong := [name for name, amount in self.has.items() if not is_amount(amount)]:
            raise OptionError(f"has {wrong[0]} = {self.has[wrong[0]]!r}: give a number, 0 or more")
        if not callable(self.needs):
            self.needed({})

    def needed(self, config: Config) -> Mapping[str, float]:
        """Return the resources that a trial needs.

        Raises
        ------
        OptionError
            An amount is not a number, or larger than the total.
        """
        needs = self.needs(config) if callable(self.needs) else self.needs
        for name, amount in needs.items():
            if not is_amount(amount):
                raise OptionError(f"a trial needs {name} = {amount!r}: give a number, 0 or more")
            if amount > self.has.get(name, 0):
                raise OptionError(
                    f"a trial needs {name} = {amount}, but only {self.has.get(name, 0)} is available"
                )
        return needs

    def free(self, running: Iterable[Config]) -> dict[str, float]:
        """Return the free amount of each resource beside running trials."""
        used: Counter[str] = Counter()
        for config in running:
            used.update(self.needed(config))
        return {name: amount - used[name] for name, amount in self.has.items()}

    def are_free(self, config: Config, running: Iterable[Config]) -> bool:
        """Return whether the resources of a trial are free beside running trials; raise as `needed` does."""
        needs = self.needed(config)
        free = self.free(running) if needs else {}
        return all(amount <= free[name] + _SLACK for name, amount in needs.items())


def check_count(count: Any) -> None:
    """Raise `OptionError` if `count` is not a valid number of workers."""
    if isinstance(count, Headcount):
        return
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise OptionError(
            f"workers = {count!r}: give a number of processes, 0 for this process, or Workers(…)"
        )


def is_amount(amount: Any) -> bool:
    """Return whether `amount` is a number of at least 0."""
    return isinstance(amount, int | float) and not isinstance(amount, bool) and amount >= 0


@dataclass(frozen=True, slots=True)
class RayWorkers:
    """Actors for ``Study.run(…, executor="ray")``, and the resources of a trial.

    >>> RayWorkers(4, needs={"GPU": 0.5}).bundles({})
    ((('CPU', 1), ('GPU', 0.5)),)
    >>> RayWorkers(2, needs=[{"CPU": 1}, {"CPU": 4}], strategy="STRICT_PACK").bundles({})
    ((('CPU', 1),), (('CPU', 4),))

    Parameters
    ----------
    count : int or Headcount
        Number of actors, which is the number of trials that run at once.
    needs : mapping, sequence of mapping, or callable
        The resources of a trial, by Ray's names: ``CPU`` (default 1), ``GPU``, ``memory`` in bytes, and
        custom resources of your nodes. Several mappings are bundles of one placement group: the trial runs
        in the first bundle, and the Ray tasks that it starts use the others. Or a function of the config
        that returns any of these.
    strategy : str
        How Ray places bundles on nodes: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD.
    address : str, optional
        Address of the cluster, as for `ray.init`. None for the cluster to which this process is connected,
        that of RAY_ADDRESS, or that of this machine; if there is none, a cluster is started here.
    """

    count: int | Headcount
    needs: Needs | Callable[[Config], Needs] = ()
    strategy: str = "PACK"
    address: str | None = None

    def __post_init__(self) -> None:
        check_count(self.count)
        if self.strategy not in STRATEGIES:
            raise OptionError(f"strategy = {self.strategy!r} is unknown; valid are {', '.join(STRATEGIES)}")
        if not callable(self.needs):
            self.bundles({})

    @classmethod
    def of(cls, workers: int | Headcount | Workers | RayWorkers) -> RayWorkers:
        """Return `workers` of `Study.run` as `RayWorkers`; of `Workers`, only ``cpu`` and ``gpu`` count."""
        if isinstance(workers, RayWorkers):
            return workers
        if not isinstance(workers, Workers):
            return cls(workers)
        needs = workers.needs
        if callable(needs):
            return cls(workers.count, lambda config: _of_ray(needs(config)))
        return cls(workers.count, _of_ray(needs))

    def bundles(self, config: Config) -> Bundles:
        """Return the resources of each bundle of a trial."""
        needs = self.needs(config) if callable(self.needs) else self.needs
        several = isinstance(needs, Sequence) and not isinstance(needs, str)
        first, *more = [_check_needs(bundle) for bundle in (needs if several else [needs])] or [{}]
        return tuple(tuple(sorted(bundle.items())) for bundle in [{"CPU": 1, **first}, *more])

    def needed(self, config: Config) -> Mapping[str, float]:
        """Return the resources that a trial needs, over all bundles."""
        total: Counter[str] = Counter()
        for bundle in self.bundles(config):
            total.update(dict(bundle))
        return total

    def free(self, running: Iterable[Config]) -> dict[str, float]:
        """Return the free resources of the cluster to which this process is connected."""
        del running
        from onlineauto.work.on_ray import imported_ray

        return dict(imported_ray().available_resources())

    def are_free(self, config: Config, running: Iterable[Config]) -> bool:
        """Return True if the demand of a trial is valid: Ray itself tracks the free resources."""
        del running
        return bool(self.bundles(config))


def _of_ray(needs: Mapping[str, float]) -> dict[str, float]:
    """Return the CPU and GPU demands, because Ray assigns processors and graphics cards."""
    return {name.upper(): amount for name, amount in needs.items() if name.upper() in ("CPU", "GPU")}


def _check_needs(needs: Any) -> Mapping[str, float]:
    if not isinstance(needs, Mapping) or not all(isinstance(name, str) for name in needs):
        raise OptionError(f"a trial needs {needs!r}: give names and amounts, as in {{'CPU': 1}}")
    if wrong := [name for name, amount in needs.items() if not is_amount(amount)]:
        raise OptionError(f"a trial needs {wrong[0]} = {needs[wrong[0]]!r}: give a number, 0 or more")
    return needs
