"""``RayWorkers``: the number of actors of a Ray cluster, and the resources of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError
from onlineauto.tune.workers.resources import Workers, check_count, is_amount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from onlineauto.tune.workers.resources import Headcount
    from onlineauto.tune.workers.trainable import Config
    from onlineauto.work.on_ray import Bundles

    Needs: TypeAlias = Mapping[str, float] | Sequence[Mapping[str, float]]

STRATEGIES: Final = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
"""Ray's strategies to place the bundles of a trial on nodes."""


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
        first, *more = [_check_needs(each) for each in (needs if several else [needs])] or [{}]
        return tuple(tuple(sorted(each.items())) for each in [{"CPU": 1, **first}, *more])

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
