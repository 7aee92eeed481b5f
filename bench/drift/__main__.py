"""The search where what is best changes, and where it does not, beside VW's and beside fixed configs.

    python -m bench.drift [--only flip return stationary] [--no-vw] [--runs 100] [--json FILE]

All logs are uniform and all truths known (`bench.drift.streams`); ours is ``--automl 4``.

flip: for 40,000 events a×b×Z pays, then c×d×Z. The delay is the number of events until the champion has
c×d×Z; that of VW, until any change of champion; without a change, the 40,000 events that follow. VW's default
cannot express either product; ``--oracle_type qbase_cubic`` can.

return: a×b×Z pays for 30,000 events, then c×d×Z, then a×b×Z again. True mean rewards of the actions thought
best, beside those of configs that never change.

stationary: nothing changes, and in every other run nothing pays. A change of champion is for the worse if, on
the rest of the stream, the new config learnt alone earns no more than the old one, or, where losses decided,
predicts no better. A switch to the ensemble is judged the same way. All tests of a run share a level, so a
binomial test at that level may not reject the number of runs with a change for the worse.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

from bench import kit
from bench.drift.streams import (
    VW,
    Learnt,
    Light,
    Regimes,
    Spell,
    Text,
    fixed,
    search,
    spells,
    spelt,
    vw_changes,
    written,
)
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

_QUARTER = 0.25
_QUIET = 0.99
_LEVEL = 0.05
"""The default of ``--automl_significance_level``: the probability that a run has any change for the worse."""
_RARE = 0.05
"""More runs with changes for the worse than chance makes with this probability are too many for the level."""


def tail(wrong: int, runs: int) -> float:
    """Return the probability of at least `wrong` wrong runs, if each is wrong with the level's probability.

    >>> round(tail(1, 40), 2), round(tail(6, 40), 3), tail(0, 40)
    (0.87, 0.014, 1.0)
    """
    fewer = (comb(runs, n) * _LEVEL**n * (1 - _LEVEL) ** (runs - n) for n in range(wrong))
    return 1.0 - sum(fewer)


@dataclass(frozen=True, slots=True)
class Flip:
    """Delays after a flip."""

    seed: int  # of the stream; how many events follow the flip
    rest: int
    # whether our champion had what pays afterwards before the flip, so that there was nothing to find
    had: bool
    # events until it is found, and changes of champion in the whole stream, by contender
    delays: dict[str, int]
    changes: dict[str, int]
    alarms: int | None
    told: list[str] = field(repr=False)  # our changes of champion in words


@dataclass(frozen=True, slots=True)
class Return:
    """True mean rewards by contender, in each of three regimes."""

    seed: int
    length: int
    rewards: dict[str, list[float]]
    alarms: int | None
    told: list[str]


@dataclass(frozen=True, slots=True)
class Judged:
    """A change of champion, by what it truly adds to reward and to loss, and whether it is for the worse."""

    told: str
    by: str
    reward: float
    loss: float
    worse: bool


@dataclass(frozen=True, slots=True)
class Stationary:
    """Changes of champion, alarms, and switches to the ensemble on a stream that does not change."""

    seed: int
    pays: bool
    events: int
    changes: list[Judged]
    alarms: int | None
    spells: list[Spell] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """Changes for the worse."""
        return sum(change.worse for change in self.changes)

    @property
    def wrong_spells(self) -> int:
        """Switches to the ensemble for the worse."""
        return sum(spell.worse for spell in self.spells)


def _median(flips: Sequence[Flip], name: str) -> float:
    return median(flip.delays[name] for flip in flips if name != "ours" or not flip.had)


def print_flips(flips: Sequence[Flip]) -> None:
    """Print a row for each seed, and the medians."""
    print("events from the flip until it is answered, and changes of champion in the whole stream")
    kit.printed(flips)
    for name in flips[0].delays if not all(flip.had for flip in flips) else ():
        print(f"median of {name}: {_median(flips, name):,.0f}")
    for name in flips[0].changes:
        if not any(flip.changes[name] for flip in flips):
            print(f"{name} never changed its champion; the {flips[0].rest:,} events that follow are counted")
    _print_told(flips)


def print_returns(returns: Sequence[Return]) -> None:
    """Print medians over the seeds, and the champions."""
    print(f"\ntrue mean reward, median of {len(returns)} seeds; regimes of {returns[0].length:,} events")
    rows = []
    for name in returns[0].rewards:
        runs = [run.rewards[name] for run in returns]
        cells = [median(run[regime] for run in runs) for regime in range(3)]
        rows.append([name, *(f"{cell:.4f}" for cell in (*cells, median(sum(run) / 3 for run in runs)))])
    print(kit.table(["", "A", "B", "A again", "all"], rows))
    _print_told(returns)


def _print_told(runs: Sequence[Flip] | Sequence[Return]) -> None:
    for run in runs:
        print(f"seed {run.seed}, our champions:", *run.told, sep="\n  ")


def print_stationary(still: Sequence[Stationary], *, seconds: float) -> None:
    """Print what changed, and every change for the worse."""
    print(f"\n{len(still)} stationary runs of {still[0].events:,} events, {seconds:.0f} s")
    rows = []
    for name, pays in (("a x Z pays", True), ("nothing pays", False)):
        runs = [run for run in still if run.pays == pays]
        changes = [change for run in runs for change in run.changes]
        worse, alarms = [run.wrong for run in runs], [run.alarms or 0 for run in runs]
        counts = [len(runs), len(changes), sum(change.by == "reward" for change in changes)]
        rows.append([name, *counts, sum(worse), sum(map(bool, worse)), sum(alarms), sum(map(bool, alarms))])
    titles = ["", "runs", "changes", "by reward", "worse", "in runs", "alarms", "in runs"]
    print(kit.table(titles, rows))
    _print_spells(still)
    if any(run.alarms is None for run in still):
        print("there is no drift detector")
    for run in still:
        for change in run.changes:
            if change.worse:
                gains = f"reward {change.reward:+.2g}, loss {change.loss:+.2g}"
                print(f"seed {run.seed}, for the worse ({gains}): {change.told}")


def _print_spells(still: Sequence[Stationary]) -> None:
    """Print how often the ensemble predicts, what that adds, and each time that is for the worse."""
    spells = [spell for run in still for spell in run.spells]
    wrong = sum(run.wrong_spells > 0 for run in still)
    share = sum(spell.end - spell.begin for spell in spells) / sum(run.events for run in still)
    print(f"switches to the ensemble: {len(spells)}, for the worse in {wrong} runs; it predicts {share:.0%}")
    for run in still:
        for spell in run.spells:
            if spell.worse:
                added = f"reward {spell.reward:+.2g}, loss {spell.loss:+.2g}"
                print(
                    f"seed {run.seed}, for the worse ({added}): {spell.begin:,}-{spell.end:,} by {spell.by}"
                )


def verdicts(flips: Sequence[Flip], still: Sequence[Stationary]) -> dict[str, bool]:
    """Return each target that was run, and whether it is met."""
    asked = {}
    for name in flips[0].delays if flips else ():
        if name != "ours":
            asked[f"after a flip, a quarter of the delay of {name} at most"] = not all(
                flip.had for flip in flips
            ) and _median(flips, "ours") <= _QUARTER * _median(flips, name)
    if still:
        for what, wrong in (
            ("changes", sum(run.wrong > 0 for run in still)),
            ("switches to the ensemble", sum(run.wrong_spells > 0 for run in still)),
        ):
            likely = tail(wrong, len(still))
            name = f"{what} for the worse within the level: {wrong} of {len(still)} runs"
            asked[f"{name}, or more with probability {likely:.2g} at {_LEVEL:.0%}"] = likely >= _RARE
        if all(run.alarms is not None for run in still):
            silent = sum(run.alarms == 0 for run in still) / len(still)
            asked["no drift alarm in 99 of 100 stationary runs"] = silent >= _QUIET
    return asked


def flip(seed: int, *, before: int, after: int, vw: bool) -> Flip:
    """Run the search, and VW's, over a stream whose best interaction changes once."""
    text = written(Regimes(seed, pairs=("ab", "cd"), length=before), before + after)
    native = search(text)
    found = [change.events for change in native.changes if _CD in change.after]
    changes: dict[str, list[int]] = {}
    for name, flags in VW.items() if vw else ():
        with tempfile.TemporaryDirectory() as directory:
            changes[name] = vw_changes(text, flags, directory=Path(directory))
    delays = {name: _delay(events, before, after) for name, events in {"ours": found, **changes}.items()}
    counts = {"ours": len(native.changes), **{name: len(events) for name, events in changes.items()}}
    return Flip(
        seed, after, _CD in native.champion_at(before), delays, counts, native.alarms, _told(native.changes)
    )


def _delay(found: list[int], flip: int, rest: int) -> int:
    return min((events - flip for events in found if events > flip), default=rest)


def returning(seed: int, *, length: int) -> Return:
    """Run the search and fixed configs over three regimes, the last of which is the first."""
    text = written(Regimes(seed, pairs=("ab", "cd", "ab"), length=length), 3 * length)
    native = search(text)
    rewards = {"ours": native.rewards, **{name: fixed(text, each).rewards for name, each in FIXED.items()}}
    rewards["the best actions"] = text.truth.max(axis=1)
    means = {name: each.reshape(3, length).mean(axis=1).tolist() for name, each in rewards.items()}
    return Return(seed, length, means, native.alarms, _told(native.changes))


def stationary(seed: int, *, events: int) -> Stationary:
    """Run the search where nothing changes, and judge each change of champion."""
    text = written(Light(seed, pays=seed % 2 == 1), events)
    native = search(text)
    learnt = _learner(text)
    judged = [_judged(each, learnt, events) for each in native.changes]
    return Stationary(seed, seed % 2 == 1, events, judged, native.alarms, spells(text))


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


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; write JSON if asked to; fail if what is asked does not hold."""
    options = kit.parser(
        __doc__,
        only=kit.Option(list(PARTS), choices=PARTS),
        seeds=kit.Option(5, "of flip and return"),
        before=kit.Option(40_000, "events before the flip"),
        after=kit.Option(40_000, "events after it"),
        no_vw=kit.Option(False, "leave VW out, which takes minutes"),
        regime=kit.Option(30_000, "events of each of three regimes"),
        runs=kit.Option(100, "over stationary streams"),
        events=kit.Option(100_000, "of each of them"),
        json=Path,
    ).parse_args(argv)
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
    rows = {"flip": flips, "return": returns, "stationary": still, "verdicts": verdict}
    kit.write_json(options.json, rows)
    return kit.print_verdicts(verdict)


if __name__ == "__main__":
    sys.exit(main())
