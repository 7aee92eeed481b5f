"""Draw an action by its probability: `sample`, and ``--cb_sample``.

A draw is a function of a seed and of the event's name only. So it can be repeated and audited with these two
values, in any order, on any machine.

For an event that is only predicted, ``--cb_sample`` draws an action and puts it first. For an event that is
learnt, the logged action is put first, as in VW. A tag ``seed=NAME`` names the event; otherwise the event's
number is its name. Exact mode draws from VW's generator, whose first numbers are far from random: with the
default seed they are 0.0000075, 0.048, 0.037.

Source: Steele, Lea & Flood, *Fast Splittable Pseudorandom Number Generators*, 2014 (the mixing function);
Fowler, Noll & Vo's hash FNV-1a; VW's ``cb_sample``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.explorers.explorer import EXPLORING
from onlineauto.features.hash_constants import FNV_64_BASIS, FNV_64_PRIME, GOLDEN
from onlineauto.options import option

if TYPE_CHECKING:
    from collections.abc import Sequence

_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """Options of sampling."""

    title: ClassVar[str] = "Exploration: sampling"

    cb_sample: bool = option(
        False,
        "Put an action first that is drawn by its probability, or the logged one of an event that is learnt. "
        "A tag seed=NAME says by what to draw.",
        keep=True,
        needs=EXPLORING,
    )


def uniform(seed: int, event_id: str | bytes) -> float:
    """Return a random number in [0, 1), always the same for the same seed and event.

    >>> round(uniform(1, "event-7"), 6), round(uniform(1, "event-8"), 6)
    (0.006822, 0.579408)
    """
    name = event_id.encode() if isinstance(event_id, str) else event_id
    hashed = FNV_64_BASIS
    for byte in name:
        hashed = (hashed ^ byte) * FNV_64_PRIME & _MASK
    mixed = (hashed + (seed + 1) * GOLDEN) & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return ((mixed ^ mixed >> 31) >> 41) / 2**23


def sample(pmf: Sequence[float], *, seed: int, event_id: str | bytes) -> tuple[int, float]:
    """Draw an action by its probability.

    Parameters
    ----------
    pmf : sequence of float, or float32[n_actions]
        Probability of each action; scaled to sum to 1.
    seed : int
        Seed of the experiment, from 0 to 2⁶⁴ - 1.
    event_id : str or bytes
        Name of the event; the same seed and name give the same draw.

    Returns
    -------
    tuple of (int, float)
        The action, from 0, and its probability, to be logged.

    Raises
    ------
    ValueError
        If a probability is negative, or all are 0.

    Examples
    --------
    >>> sample([0.1, 0.8, 0.1], seed=1, event_id="event-8")
    (1, 0.8)
    """
    chances = [float(chance) for chance in pmf]
    total = sum(chances)
    if not total > 0 or min(chances) < 0:
        raise ValueError(f"probabilities must be 0 or more, and not all 0: {chances}")
    left = uniform(seed, event_id) * total
    chosen = 0
    for action, chance in enumerate(chances):
        if chance > 0:
            chosen = action
            if left < chance:
                break
        left -= chance
    return chosen, chances[chosen] / total
