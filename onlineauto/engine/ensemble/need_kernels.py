"""Needs of members: the conditions under which a score is computed, and has a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.ensemble.input_kernels import joins
from onlineauto.engine.ensemble.least_squares_kernels import leave_out
from onlineauto.engine.ensemble.member import Need
from onlineauto.engine.records.ensemble import MOST_ACTIONS, Known
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Ensemble, Members


@inline_kernel
def _has_needs(members: Members, score: int) -> bool:
    """Return whether the conditions of a score are true, apart from the score that it is computed from."""
    needs, inputs = members.needs[score], members.inputs
    tally = inputs.tally
    can_work = needs[Need.LEAST_ACTIONS] <= tally[Known.ACTIONS] <= needs[Need.MOST_ACTIONS]
    can_work = (
        can_work
        and tally[Known.FEATURES] <= needs[Need.MOST_FEATURES]
        and tally[Known.NUMBERS] <= needs[Need.MOST_NUMBERS]
    )
    can_work = can_work and (needs[Need.NUMBERS] == 0 or tally[Known.NUMBERS] > 0 or joins(inputs))
    return bool(
        can_work
        and inputs.seen[MOST_ACTIONS] >= needs[Need.EVENTS]
        and tally[Known.WIDEST] <= needs[Need.WIDTH]
    )


@inline_kernel
def works(members: Members, score: int) -> bool:
    """Return whether a score is computed: it does not rest, and its conditions are true."""
    upon = members.needs[score, Need.UPON]
    below = upon < 0 or (not members.rests[upon] and _has_needs(members, upon))
    return bool(below and not members.rests[score] and _has_needs(members, score))


@inline_kernel
def all_rest(members: Members, first: int, end: int) -> bool:
    """Return whether all scores from `first` to before `end` rest."""
    rest = True
    for score in range(first, end):
        rest = rest and members.rests[score]
    return rest


@inline_kernel
def constant_of(ensemble: Ensemble) -> int:
    """Return the index of the constant's weight; the weights of levels follow it."""
    return len(ensemble.weights) - ensemble.n_levels - 1


@kernel
def leave_out_stopped(ensemble: Ensemble, scored: NDArray[np.bool_], initial_variance: float) -> None:
    """Remove the weights of the scores that were computed for this event and are no longer computed."""
    constant = constant_of(ensemble)
    for score in range(len(ensemble.members.rests)):
        short_loop()
        if not scored[score] or works(ensemble.members, score):
            continue
        at = constant - len(ensemble.members.rests) + score
        leave_out(ensemble.weights, ensemble.spread, at, initial_variance, ensemble.scratch[1])
        if ensemble.n_levels > 0:
            leave_out(
                ensemble.weights, ensemble.spread, constant + 1 + at, initial_variance, ensemble.scratch[1]
            )
