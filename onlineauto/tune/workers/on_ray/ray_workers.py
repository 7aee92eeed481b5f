"""``RayWorkers``: actors of a Ray cluster, and what each needs of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError
from onlineauto.tune.workers.resources import Workers, check_count, is_amount

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from onlineauto.tune.workers.headcount import Headcount
    from onlineauto.tune.workers.trainable import Config

    Needs: TypeAlias = Mapping[str, float] | Sequence[Mapping[str, float]]

STRATEGIES: Final = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
"""How Ray lays the bundles of a trial on nodes."""

Bundles = tuple[tuple[tuple[str, float], ...], ...]
"""What an actor has: the resources of each bundle, by their names, in order."""


@dataclass(frozen=True, slots=True)
class RayWorkers:
    """Actors for ``Study.run(…, executor="ray")``, and what a trial needs of the cluster.

    >>> RayWorkers(4, needs={"GPU": 0.5}).bundles({})
    ((('CPU', 1), ('GPU', 0.5)),)
    >>> RayWorkers(2, needs=[{"CPU": 1}, {"CPU": 4}], strategy="STRICT_PACK").bundles({})
    ((('CPU', 1),), (('CPU', 4),))

    Parameters
    ----------
    count : int or Headcount
        How many actors, which is how many trials run at once.
    needs : mapping, sequence of mapping, or callable
        What a trial needs, by Ray's names: ``CPU`` (1 if it is not named), ``GPU``, ``memory`` in bytes, and
        the names of your nodes' own resources. Several mappings are bundles of one placement group: the trial
        runs in the first one, and Ray tasks that it starts have the others. Or a function of the config that
        returns one of these.
    strategy : str
        How bundles are laid on nodes: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD.
    address : str, optional
        Of the cluster, as `ray.init` takes it. None for the one that this process is connected to, or that
        RAY_ADDRESS names, or that runs on this machine; if there is none, one is started here.

    Raises
    ------
    OptionError
        An amount is no number, or there is no such strategy.
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
        """Return what `Study.run` was given; of `Workers`, Ray is asked for ``cpu`` and ``gpu``."""
        if isinstance(workers, RayWorkers):
            return workers
        if not isinstance(workers, Workers):
            return cls(workers)
        needs = workers.needs
        if callable(needs):
            return cls(workers.count, lambda config: _of_ray(needs(config)))
        return cls(workers.count, _of_ray(needs))

    def bundles(self, config: Config) -> Bundles:
        """Return what a trial needs: the resources of each bundle.

        Raises
        ------
        OptionError
            An amount is no number.
        """
        needs = self.needs(config) if callable(self.needs) else self.needs
        several = isinstance(needs, Sequence) and not isinstance(needs, str)
        first, *more = [_checked(each) for each in (needs if several else [needs])] or [{}]
        return tuple(tuple(sorted(each.items())) for each in [{"CPU": 1, **first}, *more])


class Checked:
    """An account of nothing, as Ray keeps it; it finds needs that are none.

    Parameters
    ----------
    workers : RayWorkers
        Says what a trial needs.
    """

    def __init__(self, workers: RayWorkers) -> None:
        self._workers = workers

    def take(self, trial: int, config: Config) -> bool:
        """Return True; raise what a function of the config raises."""
        del trial
        self._workers.bundles(config)
        return True

    def give_back(self, trial: int) -> None:
        """Do nothing."""
        del trial


def _of_ray(needs: Mapping[str, float]) -> dict[str, float]:
    """Return what Ray has to know of what is ours to share: it numbers processors and graphics cards."""
    return {name.upper(): amount for name, amount in needs.items() if name.upper() in ("CPU", "GPU")}


def _checked(needs: Any) -> Mapping[str, float]:
    if not isinstance(needs, Mapping) or not all(isinstance(name, str) for name in needs):
        raise OptionError(f"a trial needs {needs!r}: give names and amounts, as in {{'CPU': 1}}")
    if wrong := [name for name, amount in needs.items() if not is_amount(amount)]:
        raise OptionError(f"a trial needs {wrong[0]} = {needs[wrong[0]]!r}: give a number, 0 or more")
    return needs
