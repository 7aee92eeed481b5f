"""Tuners on public suites, beside peers: regret over the budget, and processor time.

    python -m bench.tune.suites run RUNS.jsonl [--who …] [--seeds 20] [--only bbob …] [--peers PYTHON]
    python -m bench.tune.suites table RUNS.jsonl … [--only …] [--seeds 20] [--curves FILE]

`run` appends a line for each tuner, problem and seed that the file does not have yet, so it may be stopped
at any time. A tuner that is not ours runs in the interpreter PYTHON, an environment with the peers. The
budget is 100 trials, and with several levels what 20 trials at the highest level cost.

`table` prints the median and the quartiles of the regret at the end: 0 is the optimum, and 1 the median
regret of random configs at the end, on the same problem. `--curves` writes medians after parts of the budget.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import numpy as np

from bench import kit
from bench.tune.suites.problems import PROBLEMS
from bench.tune.suites.running import OURS, Peers, run

Runs = dict[tuple[str, str], dict[str, dict[int, list[float]]]]
"""The regrets after each part of the budget, by suite and problem, tuner and seed."""


def record(file: Path, who: Sequence[str], seeds: int, only: Sequence[str], python: str) -> None:
    """Append what a file of runs lacks."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    done = {tuple(json.loads(line)[:4]) for line in lines}
    peers: Peers | None = None
    for seed in range(seeds):
        for problem in PROBLEMS:
            name = f"{problem.suite}: {problem.name}"
            wanted = [each for each in who if (problem.suite, problem.name, each, seed) not in done]
            if not wanted or not any(each in name for each in only):
                continue
            instance = problem.instance(seed)
            for each in wanted:
                if each not in OURS and peers is None:
                    peers = Peers(python)
                found = run(each, instance, seed, None if each in OURS else peers)
                row = [problem.suite, problem.name, each, seed, found.cost, found.regrets]
                with file.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")
    if peers is not None:
        peers.close()


def normalised(lines: Sequence[str]) -> tuple[Runs, dict[tuple[str, str], list[float]]]:
    """Return the regrets as parts of the regret of random configs, and the milliseconds of a job."""
    runs: Runs = defaultdict(lambda: defaultdict(dict))
    costs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in lines:
        suite, problem, who, seed, cost, regrets = json.loads(line)
        runs[suite, problem][who][seed] = regrets
        costs[suite, who].append(cost)
    for tuners in runs.values():
        if "random" not in tuners:
            tuners.clear()
            continue
        unit = float(np.median([regrets[-1] for regrets in tuners["random"].values()])) or 1e-9
        for seeds in tuners.values():
            for seed, regrets in seeds.items():
                seeds[seed] = [max(each, 0.0) / unit for each in regrets]
    return runs, costs


def table(lines: Sequence[str], file: Path | None = None) -> None:
    """Print a row for each suite and tuner, and write the medians over the budget to a file."""
    runs, costs = normalised(lines)
    medians: dict[str, dict[str, list[float | None]]] = defaultdict(dict)
    print("| suite | tuner | problems | seeds | quarter | quartile | median | quartile | CPU ms a job |")
    for suite in dict.fromkeys(problem.suite for problem in PROBLEMS):
        chosen = [tuners for (of, _), tuners in runs.items() if of == suite]
        for who in dict.fromkeys(who for tuners in chosen for who in tuners):
            found = np.array([each for tuners in chosen for each in tuners.get(who, {}).values()])
            problems = sum(who in tuners for tuners in chosen)
            if not len(found):
                continue
            course = np.median(found, axis=0)
            medians[suite][who] = [round(each, 4) if isfinite(each) else None for each in course.tolist()]
            quarter = float(np.median(found[:, len(found[0]) // 4 - 1]))
            low, middle, high = np.quantile(found[:, -1], [0.25, 0.5, 0.75])
            counts = f"{problems} | {len(found) / problems:.3g}"
            cells = f"{quarter:.3f} | {low:.3f} | {middle:.3f} | {high:.3f}"
            print(f"| {suite} | {who} | {counts} | {cells} | {np.mean(costs[suite, who]):.1f} |")
    if file is not None:
        file.write_text(json.dumps(medians, indent=1) + "\n", encoding="utf-8")


def main(words: Sequence[str]) -> int:
    """Run or print."""
    parser = kit.parser(
        __doc__,
        who=list(OURS),
        seeds=20,
        only=kit.Option([""], "parts of 'suite: problem'"),
        curves=Path,
        peers=sys.executable,
    )
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args(words)
    if given.what == "run":
        record(given.files[0], given.who, given.seeds, given.only, given.peers)
    else:
        lines = [line for file in given.files for line in file.read_text("utf-8").splitlines()]
        rows = [(line, json.loads(line)) for line in lines]
        table(
            [
                line
                for line, (suite, problem, _, seed, *_) in rows
                if seed < given.seeds and any(each in f"{suite}: {problem}" for each in given.only)
            ],
            given.curves,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
