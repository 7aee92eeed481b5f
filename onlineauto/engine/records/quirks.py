"""Quirks: the oddities of Vowpal Wabbit in processing an event, one flag each."""

from __future__ import annotations

from typing import NamedTuple


class Quirks(NamedTuple):
    """Oddities of Vowpal Wabbit. The kernels of an event follow those that are on.

    In native mode all are off. In exact mode all are on, to agree with VW to the bit.
    """

    learns_held_out: bool = False
    """VW does not learn held-out single lines, but it does learn held-out events of several lines."""

    adds_in_order: bool = False
    """VW adds up the score of each action term by term, in the order of its features. Native mode adds up
    the terms that all actions share only once, so its sums are rounded differently."""

    keeps_squares: bool = False
    """VW computes Σ x² of an action when the first learner needs it. VW reuses that number for all other
    learners, although their features may differ."""

    raw_rewards: bool = False
    """VW neither clips rewards to their range nor bounds importance weights, although the proof of its bounds
    on rewards assumes both."""

    draws_aside: bool = False
    """VW draws the actions of events that it only predicts from the same random numbers as all others. So
    predicting changes later draws."""

    draws_logged: bool = False
    """VW puts the logged action of a slot first whenever it trains, even if it learns nothing from it."""

    murmur_names: bool = False
    """VW hashes the NAME of a tag ``seed=NAME`` with MurmurHash3; native mode uses 64-bit FNV-1a."""

    leaves_slots: bool = False
    """VW leaves namespaces of a slot on the list of the shared line, so that later slots see them."""

    begins_anew_in_part: bool = False
    """When a model of ``--epsilon_decay`` is reset, VW sets its weights to 0 instead of their initial values
    and keeps the sums that belong to them. VW computes lanes as if every model had one lane. If models have a
    second lane for estimates of costs, VW clears lanes of other models."""


NO_QUIRKS = Quirks()
"""The quirks of native mode."""
