"""Control: the choices of a search in which native mode and VW differ."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from onlineauto.automl.proposals import take_in_new
from onlineauto.automl.random_draw import FairDraw, RandomOrder
from onlineauto.automl.schedule import take_least_tried

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
    """The choices of a search; the defaults are those of native mode."""

    # Name of the variable that contains this object, as ``module:variable``.
    variable: str = "onlineauto.automl.control:NATIVE"
    oracle: str = "stepwise"  # Defaults of ``--oracle_type``, ``--default_lease`` and ``--estimator``.
    lease: int = 2000
    paired: bool = True
    draw: type[RandomOrder] = FairDraw  # How oracles that draw make a random order of interactions.
    take_in: TakeIn = take_in_new  # Adds proposals to the configs under consideration.
    take_next: TakeNext = take_least_tried  # Chooses the next of the waiting configs.
    # The champion is live before the first namespace is seen. VW waits for a namespace, and makes the
    # champion its own challenger if the first events have none.
    begins_at_once: bool = True
    # A namespace first seen late gets challengers at once. VW waits for the next change of champion.
    tries_late_namespaces: bool = True
    has_reviews: bool = True  # The oracle is called again from time to time.
    # A challenger that is proved worse is replaced. VW's test for that is never true.
    removes_worse: bool = True
    # A change of champion drops all configs but the two best. VW leaves the others to be overwritten, and
    # finds them again by their elements.
    forgets_left_over: bool = True
    follows_drift: bool = True  # The search detects drift.
    # Interactions supplied together with the search have no effect, and a first lease may be 0. Native mode
    # rejects both.
    ignores_given: bool = False
    keeps_waiting_weights: bool = (
        True  # A config that is no longer live keeps its weights. VW overwrites them.
    )
    # The sums that belong to weights (of ``mtr`` and of the normaliser) move with them. VW leaves them.
    moves_sums: bool = True
    # With several parts, lanes are moved as if the table had no unused lanes. VW moves the wrong ones.
    moves_whole_table: bool = False
    protects_slot_namespaces: bool = (
        False  # No config may leave out the namespaces by which CCB slots are distinguished.
    )

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Return the recipe of a copy: this very object, because it is immutable."""
        return resolve_name, (self.variable,)


NATIVE = Control()
"""The choices of native mode."""


def control_of(configuration: Configuration) -> Control:
    """Return the control of a group of options that has a method ``control``, else the native one."""
    control: Control | None = configuration.first_result("control")
    return NATIVE if control is None else control
