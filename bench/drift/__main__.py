"""The search where what is best changes, and where it does not, beside VW's and beside fixed configs.

    python -m bench.drift [--only flip return stationary] [--no-vw] [--runs 100] [--json FILE]

All logs are uniform and all truths known (`bench.drift.streams`); ours is ``--automl 4``.

flip: for 40,000 events a×b×Z pays, then c×d×Z. The delay is the number of events until the champion has
c×d×Z; that of VW, until any change of champion. If there is none, the rest of the stream, 40,000 events, is
counted. VW's default cannot express either; ``--oracle_type qbase_cubic`` can.

return: a×b×Z pays for 30,000 events, then c×d×Z, then a×b×Z again. True mean rewards of the actions thought
best, beside those of configs that never change.

stationary: nothing changes, and in every other run nothing pays. A change of champion is for the worse if, on
the rest of the stream (at least its last tenth), the new config does no better than the old one, each having
learnt the stream alone from the beginning: if it does not earn more, where rewards decided, or does not
predict mean rewards better, where losses did. A switch to the stack is judged alike, by what the search's
champion earns and predicts in the events that the stack predicts. All tests of a run share a level, so the
number of runs with something for the worse is asked to be one that a binomial test does not reject at it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from bench.drift.report import (
    Flip,
    Judged,
    Return,
    Stationary,
    print_flips,
    print_returns,
    print_stationary,
    verdicts,
)
from bench.drift.runs import VW, Learnt, fixed, search, spells, spelt, vw_changes
from bench.drift.streams import Light, Regimes, Text, written
from onlineauto.engine.search.journal import Promotion

PARTS = ("flip", "return", "stationary")

_AB, _CD = (b"Z", b"a", b"b"), (b"Z", b"c", b"d")
_SINGLE = tuple((b"Z", bytes([letter])) for letter in Regimes.letters)
FIXED = {
    "contexts x Z": _SINGLE,
    "abZ alone": (_AB,),
    "cdZ alone": (_CD,),
    "abZ and cdZ": (_AB, _CD),
    "contexts x Z, abZ, cdZ": (*_SINGLE, _AB, _CD),
}
"""Configs that never change."""


def flip(seed: int, *, before: int, after: int, vw: bool) -> Flip:
    """Run the search, and VW's, over a stream whose best interaction changes once."""
    text = written(Regimes(seed, pairs=("ab", "cd"), length=before), before + after)
    ours = search(text)
    found = [change.events for change in ours.changes if _CD in change.after]
    changes: dict[str, list[int]] = {}
    for name, flags in VW.items() if vw else ():
        with tempfile.TemporaryDirectory() as directory:
            changes[name] = vw_changes(text, flags, directory=Path(directory))
    delays = {name: _delay(events, before, after) for name, events in {"ours": found, **changes}.items()}
    counts = {"ours": len(ours.changes), **{name: len(events) for name, events in changes.items()}}
    return Flip(
        seed, after, _CD in ours.champion_at(before), delays, counts, ours.alarms, _told(ours.changes)
    )


def _delay(found: list[int], flip: int, rest: int) -> int:
    return min((events - flip for events in found if events > flip), default=rest)


def returning(seed: int, *, length: int) -> Return:
    """Run the search and fixed configs over three regimes, the last of which is the first."""
    text = written(Regimes(seed, pairs=("ab", "cd", "ab"), length=length), 3 * length)
    ours = search(text)
    rewards = {"ours": ours.rewards, **{name: fixed(text, each).rewards for name, each in FIXED.items()}}
    rewards["the best actions"] = text.truth.max(axis=1)
    means = {name: each.reshape(3, length).mean(axis=1).tolist() for name, each in rewards.items()}
    return Return(seed, length, means, ours.alarms, _told(ours.changes))


def stationary(seed: int, *, events: int) -> Stationary:
    """Run the search where nothing changes, and judge each change of champion."""
    text = written(Light(seed, pays=seed % 2 == 1), events)
    ours = search(text)
    learnt = _learner(text)
    judged = [_judged(each, learnt, events) for each in ours.changes]
    return Stationary(seed, seed % 2 == 1, events, judged, ours.alarms, spells(text))


def _learner(text: Text) -> Callable[..., Learnt]:
    return cache(lambda interactions, settings: fixed(text, interactions, settings))


def _judged(change: Promotion, learnt: Callable[..., Learnt], events: int) -> Judged:
    """Compare the new champion with the old one over the rest of the stream."""
    old = learnt(change.before, change.before_settings)
    new = learnt(change.after, change.after_settings)
    rest = slice(min(change.events, events * 9 // 10), None)
    reward = float(new.rewards[rest].mean() - old.rewards[rest].mean())
    loss = float(new.losses[rest].mean() - old.losses[rest].mean())
    worse = loss >= 0 if change.by == "loss" else reward <= 0
    return Judged(_told([change])[0], change.by, reward, loss, worse)


def _told(changes: list[Promotion]) -> list[str]:
    """Say what each change of champion added, left out and set."""
    told = []
    for change in changes:
        gained = [f"+{each}" for each in spelt(tuple(sorted(set(change.after) - set(change.before))))]
        lost = [f"-{each}" for each in spelt(tuple(sorted(set(change.before) - set(change.after))))]
        settings = change.after_settings if change.after_settings != change.before_settings else ()
        words = [*gained, *lost, *(f"{name}={value:g}" for name, value in settings)]
        told.append(f"{change.events:,} by {change.by}: {' '.join(words)}")
    return told


def main(argv: list[str] | None = None) -> int:
    """Print the tables; write JSON if asked to; fail if what is asked does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=5, help="of flip and return (default: %(default)s)")
    parser.add_argument("--before", type=int, default=40_000, help="events before the flip")
    parser.add_argument("--after", type=int, default=40_000, help="events after it")
    parser.add_argument("--no-vw", action="store_true", help="leave VW out, which takes minutes")
    parser.add_argument("--regime", type=int, default=30_000, help="events of each of three regimes")
    parser.add_argument("--runs", type=int, default=100, help="over stationary streams")
    parser.add_argument("--events", type=int, default=100_000, help="of each of them")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    seeds, parts = range(1, options.seeds + 1), options.only
    flips: list[Flip] = []
    returns: list[Return] = []
    still: list[Stationary] = []
    if "flip" in parts:
        sizes: dict[str, Any] = {"before": options.before, "after": options.after, "vw": not options.no_vw}
        flips = [flip(seed, **sizes) for seed in seeds]
        print_flips(flips)
    if "return" in parts:
        returns = [returning(seed, length=options.regime) for seed in seeds]
        print_returns(returns)
    if "stationary" in parts:
        begin = time.perf_counter()
        still = [stationary(seed, events=options.events) for seed in range(1, options.runs + 1)]
        print_stationary(still, seconds=time.perf_counter() - begin)
    verdict = verdicts(flips, still)
    for name, holds in verdict.items():
        print(f"{'yes' if holds else 'NO':4}{name}")
    if options.json:
        rows = {
            "flip": [asdict(each) for each in flips],
            "return": [asdict(each) for each in returns],
            "stationary": [asdict(each) for each in still],
            "verdicts": verdict,
        }
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0 if all(verdict.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
