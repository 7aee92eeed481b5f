"""Quirks of exploration: named deviations of Vowpal Wabbit's explorers from native mode."""

from __future__ import annotations

from typing import NamedTuple


class ExploringQuirks(NamedTuple):
    """Switches for oddities of Vowpal Wabbit's explorers, all off in native mode, and on in exact mode."""

    weighs_last_action: bool = False
    """Explorers that learn by regression use no importance weights. VW uses one for the last action of an
    event."""

    miscounts_left: bool = False
    """``--squarecb --elim``: VW takes the number of remaining actions to be 1, which before the first event
    gives "probabilities" of -1 and 1."""

    no_floor_of_left: bool = False
    """``--squarecb --elim``: VW ignores ``--epsilon``."""

    no_own_floor: bool = False
    """``--synthcover``: in VW the least probability of an action is 0, unless ``--epsilon`` is given."""

    ties_are_certain: bool = False
    """``--regcbopt``: in VW each of several actions that begin equally low has the "probability" 1."""

    unmoved_is_known: bool = False
    """Plausible costs: if a label does not move the prediction at all, VW computes with a sensitivity of 0
    and gets NaN. In native mode every cost is plausible then."""

    costs_in_unit: bool = False
    """Plausible costs: without ``--cb_min_cost`` and ``--cb_max_cost`` VW uses the range from 0 to 1. Native
    mode uses the range of the costs learnt."""

    sums_by_rank: bool = False
    """``--cover``: VW orders actions of equal probability by the policies' summed scores, but confuses
    actions with ranks when it adds them."""

    twice_the_policies: bool = False
    """``--cover``: VW reserves twice as many models, unless ``--cb_type`` is ips."""

    steps_generator: bool = False
    """VW draws numbers from a sequential generator, whose first numbers are far from random. In native mode a
    number is a function of the seed and of the event."""


NO_EXPLORING_QUIRKS = ExploringQuirks()
"""The quirks of native mode."""
