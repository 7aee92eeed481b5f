"""Quirks of exploration: named deviations of Vowpal Wabbit's explorers from native mode."""

from __future__ import annotations

from typing import NamedTuple


class ExploringQuirks(NamedTuple):
    """Switches for oddities of Vowpal Wabbit's explorers, all off in native mode, and on in exact mode."""

    weighs_last_action: bool = False
    """``--squarecb``, ``--regcb``: VW weighs the last action of an event by its importance.
    Native mode weighs no action."""

    miscounts_left: bool = False
    """``--squarecb --elim``: VW takes the number of remaining actions to be 1, which before the first event
    gives "probabilities" of -1 and 1. Native mode counts them."""

    no_floor_of_left: bool = False
    """``--squarecb --elim``: VW ignores ``--epsilon``. Native mode uses it."""

    no_own_floor: bool = False
    """``--synthcover``: in VW the least probability of an action is 0, unless ``--epsilon`` is given. Native
    mode uses the default of ``--epsilon``."""

    ties_are_certain: bool = False
    """``--regcb``, ``--regcbopt``: in VW each of several actions that begin equally low has the "probability"
    1. In native mode they share it."""

    unmoved_is_known: bool = False
    """``--regcb``, ``--elim``: if a label does not move the prediction at all, VW computes with a sensitivity
    of 0 and gets NaN. In native mode every cost is plausible then."""

    costs_in_unit: bool = False
    """``--regcb``, ``--elim``: without ``--cb_min_cost`` and ``--cb_max_cost`` VW uses the range from 0
    to 1. Native mode uses the range of the costs learnt."""

    sums_by_rank: bool = False
    """``--cover``: VW orders actions of equal probability by the policies' summed scores, but confuses
    actions with ranks when it adds them. Native mode adds the scores of each action."""

    twice_the_policies: bool = False
    """``--cover``: VW reserves twice as many models, unless ``--cb_type`` is ips, which leaves fewer cells to
    each. Native mode reserves one for each policy and one for the costs."""

    steps_generator: bool = False
    """``--bag``, ``--cb_sample``, ``--ccb_explore_adf``: VW draws numbers from a sequential generator, whose
    first numbers are far from random. In native mode a number is a function of the seed and of the event."""


NO_EXPLORING_QUIRKS = ExploringQuirks()
"""The quirks of native mode."""
