"""Quirks: what Vowpal Wabbit does with an event and native mode does not, each under a name of its own."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NO_QUIRKS", "Quirks"]


class Quirks(NamedTuple):
    """Oddities of Vowpal Wabbit that the kernels of an event follow where they are on.

    Native mode has them all off. Predictions and models that agree with VW to the bit need every one of them.
    """

    learns_held_out: bool = False
    """VW holds single lines out, but goes on learning from held-out events of several lines."""

    adds_in_order: bool = False
    """VW adds up the score of every action term by term, in the order of its features. Native mode adds up
    what all actions of an event share once; the sum is rounded otherwise."""

    keeps_squares: bool = False
    """VW computes Σ x² of an action when a learner first asks for it, and hands the same number to all
    others, whose features may differ."""

    raw_rewards: bool = False
    """VW neither cuts rewards off at the ends of their range nor bounds importance weights, as the proof of
    its bounds on rewards would have it."""

    draws_aside: bool = False
    """VW draws the actions of events that it only predicts from the same numbers as all others, so predicting
    changes what is drawn later."""

    draws_logged: bool = False
    """VW puts the logged action of a slot first whenever it trains, also if nothing is learnt from it."""

    murmur_names: bool = False
    """VW hashes the NAME of a tag ``seed=NAME`` with MurmurHash3; native mode takes FNV-1a, all 64 bits."""

    leaves_slots: bool = False
    """VW leaves namespaces of a slot on the list of the shared line, where the slots behind it find them."""

    begins_anew_in_part: bool = False
    """When a model of ``--epsilon_decay`` begins anew, VW sets its weights to 0, whatever they began as, and
    keeps the sums that go with them. It looks for its lanes as if every model had a single one: with
    estimates it clears those of others."""


NO_QUIRKS = Quirks()
"""The quirks of native mode."""
