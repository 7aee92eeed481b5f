"""What runs over streams that drift, and that do not, come to: tables, and whether what is asked holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb
from statistics import median

from bench.drift.runs import Spell

_QUARTER = 0.25
_QUIET = 0.99
_LEVEL = 0.05
"""The default of ``--automl_significance_level``: the probability that a run has any change for the worse."""
_RARE = 0.05
"""More runs with changes for the worse than chance makes with this probability are too many for the level."""


def tail(wrong: int, runs: int) -> float:
    """Return the probability of at least so many wrong runs, if each is wrong with the level's probability.

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
    told: list[str]  # our changes of champion in words


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
    """Changes of champion, alarms, and switches to the stack on a stream that does not change."""

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
        """Switches to the stack for the worse."""
        return sum(spell.worse for spell in self.spells)


def _median(flips: Sequence[Flip], name: str) -> float:
    return median(flip.delays[name] for flip in flips if name != "ours" or not flip.had)


def print_flips(flips: Sequence[Flip]) -> None:
    """Print a row for each seed, and the medians."""
    names = list(flips[0].delays)
    print("events from the flip until it is answered (changes of champion in the whole stream)")
    print(f"{'seed':8}" + "".join(f"{name:>18}" for name in names) + f"{'our alarms':>12}")
    for flip in flips:
        cells = "".join(f"{flip.delays[name]:12,} ({flip.changes[name]:3})" for name in names)
        alarms = "-" if flip.alarms is None else flip.alarms
        print(f"{flip.seed:<8}{cells}{alarms:>12}{'   had it before' * flip.had}")
    if not all(flip.had for flip in flips):
        print(f"{'median':8}" + "".join(f"{_median(flips, name):12,.0f}{'':6}" for name in names))
    for name in names[1:]:
        if not any(flip.changes[name] for flip in flips):
            print(f"{name} never changed its champion; the {flips[0].rest:,} events that follow are counted")
    _print_told(flips)


def print_returns(returns: Sequence[Return]) -> None:
    """Print medians over the seeds, and the champions."""
    length = returns[0].length
    print(f"\ntrue mean reward, median of {len(returns)} seeds; regimes of {length:,} events")
    print(f"{'':24}" + "".join(f"{name:>9}" for name in ("A", "B", "A again", "all")))
    for name in returns[0].rewards:
        rows = [each.rewards[name] for each in returns]
        cells = [median(row[regime] for row in rows) for regime in range(3)]
        cells.append(median(sum(row) / 3 for row in rows))
        print(f"{name:24}" + "".join(f"{cell:9.4f}" for cell in cells))
    _print_told(returns)


def _print_told(runs: Sequence[Flip] | Sequence[Return]) -> None:
    for run in runs:
        print(f"seed {run.seed}, our champions:", *run.told, sep="\n  ")


def print_stationary(still: Sequence[Stationary], *, seconds: float) -> None:
    """Print what changed, and every change for the worse."""
    print(f"\n{len(still)} stationary runs of {still[0].events:,} events, {seconds:.0f} s")
    print(f"{'':14}{'runs':>6}{'changes':>9}{'by reward':>11}{'worse':>7}{'runs':>6}{'alarms':>8}{'runs':>6}")
    for name, pays in (("a x Z pays", True), ("nothing pays", False)):
        runs = [run for run in still if run.pays == pays]
        changes = [change for run in runs for change in run.changes]
        by_reward = sum(change.by == "reward" for change in changes)
        worse, alarms = [run.wrong for run in runs], [run.alarms or 0 for run in runs]
        print(
            f"{name:14}{len(runs):6}{len(changes):9}{by_reward:11}"
            f"{sum(worse):7}{sum(map(bool, worse)):6}{sum(alarms):8}{sum(map(bool, alarms)):6}"
        )
    _print_spells(still)
    if any(run.alarms is None for run in still):
        print("there is no drift detector")
    for run in still:
        for change in run.changes:
            if change.worse:
                gains = f"reward {change.reward:+.2g}, loss {change.loss:+.2g}"
                print(f"seed {run.seed}, for the worse ({gains}): {change.told}")


def _print_spells(still: Sequence[Stationary]) -> None:
    """Print how often the stack predicts, what that adds, and each time that is for the worse."""
    spells = [spell for run in still for spell in run.spells]
    wrong = sum(run.wrong_spells > 0 for run in still)
    share = sum(spell.end - spell.begin for spell in spells) / sum(run.events for run in still)
    print(f"switches to the stack: {len(spells)}, for the worse in {wrong} runs; it predicts {share:.0%}")
    for run in still:
        for spell in run.spells:
            if spell.worse:
                added = f"reward {spell.reward:+.2g}, loss {spell.loss:+.2g}"
                print(
                    f"seed {run.seed}, for the worse ({added}): {spell.begin:,}-{spell.end:,} by {spell.by}"
                )


def verdicts(flips: Sequence[Flip], still: Sequence[Stationary]) -> dict[str, bool]:
    """What is asked, as far as it was run, and whether it holds."""
    asked = {}
    for name in flips[0].delays if flips else ():
        if name != "ours":
            asked[f"after a flip, a quarter of the delay of {name} at most"] = not all(
                flip.had for flip in flips
            ) and _median(flips, "ours") <= _QUARTER * _median(flips, name)
    if still:
        for what, wrong in (
            ("changes", sum(run.wrong > 0 for run in still)),
            ("switches to the stack", sum(run.wrong_spells > 0 for run in still)),
        ):
            likely = tail(wrong, len(still))
            name = f"{what} for the worse within the level: {wrong} of {len(still)} runs"
            asked[f"{name}, or more with probability {likely:.2g} at {_LEVEL:.0%}"] = likely >= _RARE
        if all(run.alarms is not None for run in still):
            silent = sum(run.alarms == 0 for run in still) / len(still)
            asked["no drift alarm in 99 of 100 stationary runs"] = silent >= _QUIET
    return asked
