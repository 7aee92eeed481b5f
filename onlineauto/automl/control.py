"""Control: the choices of a search in which native mode and VW differ."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from onlineauto.automl.proposals import take_in_new
from onlineauto.automl.queue import take_least_tried
from onlineauto.automl.random_draw import FairDraw, RandomOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.automl.config import Config
    from onlineauto.automl.decisions import Statistics
    from onlineauto.automl.search import Search, SearchRules
    from onlineauto.options import Configuration

    TakeIn = Callable[[SearchRules, Search, Sequence[Config], Statistics, bool], Search]
    TakeNext = Callable[[SearchRules, Search, Statistics], tuple[int | None, Search]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The choices of a search; the defaults are those of native mode.

    Attributes
    ----------
    place : str
        Name of the variable that contains this object, as ``module:variable``.
    oracle, lease, paired : str, int, bool
        Defaults of ``--oracle_type``, ``--default_lease`` and ``--estimator``.
    draw : type of Draw
        How oracles that draw make a random order of interactions.
    take_in : callable
        Adds proposals to the configs under consideration.
    take_next : callable
        Chooses the next of the waiting configs.
    begins_at_once : bool
        The champion is live before the first namespace is seen. VW waits for a namespace, and makes the
        champion its own challenger if the first events have none.
    meets_late : bool
        A namespace first seen late gets challengers at once. VW waits for the next change of champion.
    reviews : bool
        The oracle is called again from time to time.
    proves_worse : bool
        A challenger that is proved worse is replaced. VW's test for that is never true.
    forgets_left_over : bool
        A change of champion drops all configs but the two best. VW leaves the others to be overwritten, and
        finds them again by their elements.
    follows_drift : bool
        The search detects drift.
    ignores_given : bool
        Interactions supplied together with the search have no effect, and a first lease may be 0. Native mode
        rejects both.
    parks : bool
        A config that is no longer live keeps its weights. VW overwrites them.
    moves_sums : bool
        The sums that belong to weights (of ``mtr`` and of the normaliser) move with them. VW leaves them.
    moves_whole_table : bool
        With several parts, lanes are moved as if the table had no unused lanes. VW moves the wrong ones.
    tells_slots : bool
        No config may leave out the namespaces by which CCB slots are distinguished.
    """

    place: str = "onlineauto.automl.control:NATIVE"
    oracle: str = "stepwise"
    lease: int = 2000
    paired: bool = True
    draw: type[RandomOrder] = FairDraw
    take_in: TakeIn = take_in_new
    take_next: TakeNext = take_least_tried
    begins_at_once: bool = True
    meets_late: bool = True
    reviews: bool = True
    proves_worse: bool = True
    forgets_left_over: bool = True
    follows_drift: bool = True
    ignores_given: bool = False
    parks: bool = True
    moves_sums: bool = True
    moves_whole_table: bool = False
    tells_slots: bool = False

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Return the recipe of a copy: this very object, because it is immutable."""
        return resolve_name, (self.place,)


NATIVE = Control()
"""The choices of native mode."""


def control_of(configuration: Configuration) -> Control:
    """Return the control of a group of options that has a method ``control``, else the native one."""
    control: Control | None = configuration.first_result("control")
    return NATIVE if control is None else control
