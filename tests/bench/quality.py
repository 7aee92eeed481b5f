"""What the search earns on bandit logs, between ``-q ::`` and the best fixed config; VW's search beside it.

    python -m tests.bench.quality [--seeds 5] [--data DIR] [--sets penbased ...] [--json FILE]

The true reward of every action is known, so the reward of the first action of each ranking is known without
noise. Normalised score: 0 is ``-q ::``, 1 the best of some fixed configs (`tests.bench.bandit_runs`); in the
second half, the best there. Seed 0 is the log as committed; the others log the same events anew by the same
policy. Both baselines are learnt by onlineauto itself. ``--option`` changes the search: ``--option
champion_test=reward``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.bench.bandit_logs import FOLDER, SETS, BanditLog, head, load, names_in, relogged, write
from tests.bench.bandit_runs import Run, Spread, fixed_configs, option, run_ours, run_wheel, spread
from tests.bench.speed_workers import WHEEL_WORKER, Worker

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Mean", "Measured", "Row", "main", "means", "measure", "rows", "verdicts"]

_WARM_UP = 4000
_KINDS = {"u": "uniform", "e": "ε-greedy"}


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of one contender, beside what it is compared with."""

    log: str
    seed: int
    who: str
    reward: float
    base: float  # reward of -q ::
    best: float  # of the best fixed config
    best_name: str
    score: float
    second: float  # score in the second half
    changes: int | None
    microseconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """All seeds of one contender on one log."""

    log: str
    who: str
    best_name: str  # under the first seed
    base: float  # medians
    best: float
    reward: float
    score: Spread
    second: Spread
    changes: Spread | None
    microseconds: float


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean over logs of one kind, under each seed."""

    kind: str
    who: str
    logs: int
    score: Spread
    second: Spread


def _halves(log: BanditLog, run: Run) -> tuple[float, float]:
    """True reward, of all events and of the second half."""
    earned = log.rewards[np.arange(len(log.events)), run.greedy]
    return float(earned.mean()), float(earned[len(earned) // 2 :].mean())


def measure(
    log: BanditLog, seed: int, *, directory: Path, search: dict[str, Any], wheel: Worker | None
) -> list[Measured]:
    """Run the search, the fixed configs and, if given, the wheel over a log."""
    path = directory / "log.txt"
    write(log, path)
    base = _halves(log, run_ours(path, quadratic="::"))
    fixed = {name: _halves(log, run_ours(path, **config)) for name, config in fixed_configs(log).items()}
    best = max(fixed, key=lambda name: fixed[name][0])
    ends = [max(reward[half] for reward in fixed.values()) for half in (0, 1)]
    runs = {"ours": run_ours(path, **search)}
    if wheel is not None:
        runs["VW"] = run_wheel(path, wheel, flags=("--automl", str(search["automl"])))
    found = []
    for who, run in runs.items():
        rewards = _halves(log, run)
        scores = [(rewards[half] - base[half]) / (ends[half] - base[half]) for half in (0, 1)]
        found.append(
            Measured(
                log=log.name,
                seed=seed,
                who=who,
                reward=rewards[0],
                base=base[0],
                best=ends[0],
                best_name=best,
                score=scores[0],
                second=scores[1],
                changes=run.changes,
                microseconds=run.microseconds,
            )
        )
    return found


def rows(measured: Iterable[Measured]) -> list[Row]:
    """One row for each log and contender."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for each in measured:
        groups.setdefault((each.log, each.who), []).append(each)
    return [_row(log, who, group) for (log, who), group in groups.items()]


def _row(log: str, who: str, group: list[Measured]) -> Row:
    changes = [float(each.changes) for each in group if each.changes is not None]
    return Row(
        log=log,
        who=who,
        best_name=group[0].best_name,
        base=float(np.median([each.base for each in group])),
        best=float(np.median([each.best for each in group])),
        reward=float(np.median([each.reward for each in group])),
        score=spread([each.score for each in group]),
        second=spread([each.second for each in group]),
        changes=spread(changes) if changes else None,
        microseconds=float(np.median([each.microseconds for each in group])),
    )


def means(measured: list[Measured]) -> list[Mean]:
    """The means over the uniform logs and over the others."""
    found = []
    for kind, name in _KINDS.items():
        for who in dict.fromkeys(each.who for each in measured):
            some = [each for each in measured if each.who == who and each.log.endswith(f"-{kind}")]
            seeds = sorted({each.seed for each in some})
            if not some:
                continue
            score, second = (
                spread([float(np.mean([getattr(x, key) for x in some if x.seed == seed])) for seed in seeds])
                for key in ("score", "second")
            )
            found.append(Mean(name, who, len({each.log for each in some}), score, second))
    return found


def verdicts(table: list[Row], averages: list[Mean]) -> dict[str, bool]:
    """What is asked of the search, and whether it holds for what was measured."""
    ours = [row for row in table if row.who == "ours"]
    mean = {each.kind: each for each in averages if each.who == "ours"}
    found = {}
    for kind, least in (("uniform", 0.85), ("ε-greedy", 0.80)):
        if kind in mean:
            found[f"mean of {kind} logs at least {least:.2f}"] = mean[kind].score.median >= least
            found[f"second half of {kind} logs at least 1.00"] = mean[kind].second.median >= 1
    found["none below -0.05"] = all(row.score.low >= -0.05 for row in ours)
    for row in ours:
        if row.log == "planted-u":
            found["planted at least 0.70"] = row.score.median >= 0.70
    return found


def _cell(values: Spread | None, digits: int = 3) -> str:
    if values is None:
        return f"{'-':>22}"
    return f"{values.median:7.{digits}f} ({values.low:.{digits}f}, {values.high:.{digits}f})".rjust(22)


def _print_head() -> None:
    print(
        f"{'log':11}{'who':5}{'-q ::':>7}{'best':>7}{'':2}{'which':9}{'reward':>7}{'score':>22}"
        f"{'second half':>22}{'changes':>14}{'µs':>7}"
    )


def _print_row(row: Row) -> None:
    changes = "-" if row.changes is None else _cell(row.changes, 0).strip()
    print(
        f"{row.log:11}{row.who:5}{row.base:7.4f}{row.best:7.4f}  {row.best_name:9}{row.reward:7.4f}"
        f"{_cell(row.score)}{_cell(row.second)}{changes:>14}{row.microseconds:7.1f}",
        flush=True,
    )


def _print_means(averages: list[Mean]) -> None:
    print()
    for mean in averages:
        name = f"mean of {mean.logs} {mean.kind} logs"
        print(f"{name:40}{mean.who:5}{_cell(mean.score)}{_cell(mean.second)}")


def _warm_up(log: BanditLog, directory: Path, search: dict[str, Any]) -> None:
    """Compile what is not compiled yet."""
    path = directory / "log.txt"
    write(head(log, _WARM_UP), path)
    for config in ({"quadratic": "::"}, *fixed_configs(log).values(), search):
        run_ours(path, **config)


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer-seeds", type=int, default=1, help="of the wheel; 0 is none")
    parser.add_argument("--data", type=Path, default=FOLDER, help="where cb-NAME-u.txt.gz and .npz are")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--automl", type=int, default=4, help="live configs")
    parser.add_argument("--option", type=option, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--events", type=int, help="of each log; all by default")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(argv)


def _measure_all(options: argparse.Namespace, search: dict[str, Any]) -> list[Measured]:
    """Go through logs and seeds, and print a row for each log and contender."""
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory, Worker(WHEEL_WORKER) as wheel:
        place = Path(directory)
        for name in names_in(options.data, options.sets):
            log = load(name, options.data)
            log = head(log, options.events or len(log.events))
            if not measured:
                _warm_up(log, place, search)
                _print_head()
            for seed in range(options.seeds):
                peer = wheel if seed < options.peer_seeds else None
                measured += measure(relogged(log, seed), seed, directory=place, search=search, wheel=peer)
            for row in rows(each for each in measured if each.log == name):
                _print_row(row)
    return measured


def main(argv: list[str] | None = None) -> int:
    """Print the table; write JSON if asked to; fail if what is asked does not hold."""
    options = _options(argv)
    search = {"automl": options.automl, **dict(options.option)}
    measured = _measure_all(options, search)
    table, averages = rows(measured), means(measured)
    _print_means(averages)
    verdict = verdicts(table, averages)
    for name, holds in verdict.items():
        print(f"{'yes' if holds else 'NO':4}{name}")
    if options.json:
        document = {
            "search": search,
            "runs": [asdict(each) for each in measured],
            "rows": [asdict(row) for row in table],
            "means": [asdict(mean) for mean in averages],
            "verdicts": verdict,
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0 if all(verdict.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
