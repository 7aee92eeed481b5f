"""Quirks of exploring: what Vowpal Wabbit's explorers do and native ones do not, each under a name."""

from __future__ import annotations

from typing import NamedTuple


class ExploringQuirks(NamedTuple):
    """Oddities of Vowpal Wabbit's explorers, followed where they are on.

    Native mode has them all off. Probabilities that agree with VW to the bit need every one of them.
    """

    weighs_last_action: bool = False
    """Explorers that learn by regression teach a cost as it is, whatever its probability was. VW does not so
    for the last action of an event, which keeps its importance weight."""

    miscounts_left: bool = False
    """``--squarecb --elim``: VW takes the number of actions that are left for 1, which before the first event
    gives "probabilities" of -1 and 1."""

    no_floor_of_left: bool = False
    """``--squarecb --elim``: VW has no effect of ``--epsilon`` there."""

    ties_are_certain: bool = False
    """``--regcbopt``: in VW each of several actions that begin equally low has the "probability" 1."""

    unmoved_is_known: bool = False
    """Plausible costs: where a label does not move the prediction at all, VW goes on with 0, and what comes
    of it is no number. Native mode takes every cost for plausible there."""

    costs_in_unit: bool = False
    """Plausible costs: without ``--cb_min_cost`` and ``--cb_max_cost`` VW has them between 0 and 1. Native
    mode goes by those that were learnt."""

    sums_by_rank: bool = False
    """``--cover``: VW mixes up actions and ranks where it adds the scores of the policies, by which it lists
    actions of the same probability."""

    twice_the_policies: bool = False
    """``--cover``: VW has room for twice as many models, unless ``--cb_type`` is ips."""

    steps_generator: bool = False
    """VW draws numbers from a generator whose state goes on from number to number, and whose first numbers
    are far from random. In native mode a number is a function of the seed and of what it is drawn for."""


NO_EXPLORING_QUIRKS = ExploringQuirks()
"""The quirks of native mode."""
