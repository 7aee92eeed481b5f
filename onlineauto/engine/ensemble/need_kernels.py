"""Needs of members: the conditions under which a score is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onlineauto.engine.ensemble.input_kernels import joins
from onlineauto.engine.ensemble.member import Need
from onlineauto.engine.records.ensemble import ACTIONS, FEATURES, MOST_ACTIONS, NUMBERS, WIDEST
from onlineauto.jit import inline_kernel

if TYPE_CHECKING:
    from onlineauto.engine.records.ensemble import Members

_MOST_FEATURES: Final = int(Need.MOST_FEATURES)
_MOST_NUMBERS: Final = int(Need.MOST_NUMBERS)
_NUMBERS: Final = int(Need.NUMBERS)
_LEAST_ACTIONS: Final = int(Need.LEAST_ACTIONS)
_MOST_ACTIONS: Final = int(Need.MOST_ACTIONS)
_EVENTS: Final = int(Need.EVENTS)
_WIDTH: Final = int(Need.WIDTH)
UPON: Final = int(Need.UPON)
INPUTS: Final = int(Need.INPUTS)


@inline_kernel
def _has_needs(members: Members, score: int) -> bool:
    """Return whether all is known that a score needs, but for another score."""
    needs, inputs = members.needs[score], members.inputs
    tally = inputs.tally
    able = needs[_LEAST_ACTIONS] <= tally[ACTIONS] <= needs[_MOST_ACTIONS]
    able = able and tally[FEATURES] <= needs[_MOST_FEATURES] and tally[NUMBERS] <= needs[_MOST_NUMBERS]
    able = able and (needs[_NUMBERS] == 0 or tally[NUMBERS] > 0 or joins(inputs))
    return bool(able and inputs.seen[MOST_ACTIONS] >= needs[_EVENTS] and tally[WIDEST] <= needs[_WIDTH])


@inline_kernel
def works(members: Members, score: int) -> bool:
    """Return whether a score is computed: it does not rest, and all is known that it needs."""
    upon = members.needs[score, UPON]
    below = upon < 0 or (not members.rests[upon] and _has_needs(members, upon))
    return bool(below and not members.rests[score] and _has_needs(members, score))


@inline_kernel
def all_rest(members: Members, first: int, end: int) -> bool:
    """Return whether all scores from `first` to before `end` rest."""
    rest = True
    for score in range(first, end):
        rest = rest and members.rests[score]
    return rest
