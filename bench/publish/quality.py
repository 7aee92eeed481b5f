"""Sections that measure how well something is learnt. They may run side by side."""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench import partitions
from bench.cluster import default as cluster
from bench.cluster.learned import HELD_OUT
from bench.publish.figures import MEAN, Figure, figure
from bench.quality import off_policy, on_policy
from bench.quality.logs import BanditLog, head, load, names_in, relogged, write
from bench.quality.peers import Peers
from bench.quality.runs import Run, from_flags, run_best_mean_action, run_ours
from bench.regression import classes, learners, single_line
from bench.service import budgets
from datasets.convert import FOLDER

Tables = dict[str, list[Figure]]
Contenders = Mapping[str, Callable[[BanditLog], Run | None]]
"""What runs on a log; a contender returns None for a log that it cannot learn."""

SETS = (
    *("penbased", "letter", "surveys", "flights", "diamonds", "planted", "penbased-n", "letter-n"),
    *("surveys-n", "diamonds-n", "satimage", "diseases", "routes", "weather", "storms", "birds"),
    *("headlines", "route"),
)
OURS = {
    "onlineauto": "--automl 4",
    "champion alone": "--automl 4 --predict_with champion",
    "all pairs": "-q ::",
}
_ENDINGS = {"u": "", "e": ", ε-greedy", "n-u": ", numbers"}


def title(name: str) -> str:
    """Return how a log is called in a table."""
    name, _, kind = name.partition("-")
    return name + _ENDINGS[kind]


def document_of(main: Callable[[list[str]], object], *words: object) -> Any:
    """Run a bench with ``--json``, and return what it writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.json"
        main([*map(str, words), "--json", str(path)])
        return json.loads(path.read_text("utf-8"))


def on_logs(contenders: Contenders, *, seeds: int, events: int | None, name: str) -> Tables:
    """Return the true rewards of the greedy actions on each log: of all events, and of the second half."""
    taken: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for log_name in names_in(FOLDER, SETS):
        whole = load(log_name)
        for seed in range(seeds):
            log = relogged(head(whole, events or len(whole.events)), seed)
            for who, contender in contenders.items():
                run = contender(log)
                if run is None:
                    continue
                greedy = run.greedy
                earned = log.rewards[np.arange(len(greedy)), greedy]
                taken[title(log_name), who].append((earned.mean(), earned[len(earned) // 2 :].mean()))
                print(log_name, seed, who, *taken[title(log_name), who][-1], flush=True)
    logs = dict.fromkeys(log for log, _ in taken)
    tables: Tables = {}
    for part, of in enumerate((name, f"{name}-later")):
        rows = [
            figure(log, who, [pair[part] for pair in runs], "reward") for (log, who), runs in taken.items()
        ]
        for who in contenders:
            runs = [[pair[part] for pair in taken[log, who]] for log in logs if (log, who) in taken]
            if len(runs) == len(logs):
                rows.append(figure(MEAN, who, map(np.mean, zip(*runs, strict=True)), "reward"))
        tables[of] = rows
    return tables


def logs_ours(given: Namespace) -> Tables:
    """Run onlineauto, two simpler learners of it, and the best action without a context."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.txt"

        def ours(flags: str, log: BanditLog) -> Run:
            write(log, path)
            return run_ours(path, from_flags(flags))

        contenders = {who: partial(ours, flags) for who, flags in OURS.items()}
        return on_logs(
            {**contenders, "no context": run_best_mean_action},
            seeds=1 if given.quick else 5,
            events=300 if given.quick else None,
            name="logs",
        )


def logs_peers(given: Namespace) -> Tables:
    """Run the peers."""
    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(given.peers, Path(folder))
        names = {"VW --automl 4": "VW `--automl 4`", "LightGBM": "LightGBM"}
        names["LightGBM each"] = "LightGBM, one for each action"

        def peer(who: str, log: BanditLog) -> Run | None:
            return peers.run(log, who) if peers.suit(who, log) else None

        contenders = {names[who]: partial(peer, who) for who in peers.versions if who in names}
        return on_logs(
            contenders,
            seeds=1 if given.quick else 3,
            events=300 if given.quick else None,
            name="logs-peers",
        )


def acting(given: Namespace) -> Tables:
    """Let learners act themselves."""
    names = {"ours, search": "onlineauto", "ours, ε 0.05": "onlineauto, `--epsilon 0.05`"}
    names |= {"VW, search": "VW `--automl 4`", "VW, -q ::": "VW `-q ::`"}
    figures = []
    for name in ("flights", "surveys", "letter"):
        log = head(load(f"{name}-u"), 300 if given.quick else 12_000)
        for contender in on_policy.contenders({"automl": 4}):
            if contender.name in names:
                reward = on_policy.row_of(log, contender, 1 if given.quick else 3).reward
                spread = (reward.median, reward.low, reward.high)
                figures.append(Figure(name, names[contender.name], *spread, "reward"))
                print(figures[-1], flush=True)
    return {"acting": figures}


def regression(given: Namespace) -> Tables:
    """Regress on three sets of lines, and beside river on its own sets."""
    words = ["--lines", 300 if given.quick else 8000, "--seeds", 1 if given.quick else 3]
    words += ["--table-python", given.peers, "--sets", "bikeshare", "diamonds", "flights"]
    names = {"ensemble": "onlineauto", "champion": "champion alone", "AutoVW NI+LR": "FLAML AutoVW"}
    names |= {name: name for name in ("LightGBM", "river linear", "river tree", "river forest")}
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in document_of(single_line.main, *words)["runs"]:
        if run["contender"] in names:
            errors[run["name"], names[run["contender"]]].append(run["error"])
    figures = [
        figure(f"{name}: squared error", who, values, "error") for (name, who), values in errors.items()
    ]
    labels: list[Figure] = []
    for name in ("Phishing", "ImageSegments"):
        stream = [*islice(learners.CLASSIFICATIONS[name](), 300 if given.quick else 8000)]
        makers = learners.makers("classification", len({label for _, label in stream}))
        makers |= classes.LEARNERS
        for who in ("onlineauto", "LightGBM", "river linear", "river tree", "river forest"):
            runs = []
            for order in range(1 if given.quick else 3):
                shuffled = [*stream]
                if order:
                    random.Random(order).shuffle(shuffled)
                runs.append(learners.run(makers[who](), shuffled, kind="classification"))
                print(name, who, runs[-1], flush=True)
            labels.append(
                figure(f"{name}: right labels", who, [run.first for run in runs], "share of labels")
            )
            labels.append(figure(f"{name}: log loss", who, [run.second for run in runs], "error"))
    return {"regression": figures + sorted(labels, key=lambda each: each.row, reverse=True)}


def evaluation(given: Namespace) -> Tables:
    """Evaluate policies from logs whose true values are known."""
    words = ["--seeds", 2, "--events", 400] if given.quick else ["--seeds", 200]
    logs = ["surveys-u", "diamonds-u", "flights-u", "surveys-e", "flights-e"]
    document = document_of(off_policy.main, *words, "--logs", *logs)
    errors, intervals = [], []
    names = {"dr": "doubly robust", "snips": "SNIPS", "ips": "IPS", "vw": "VW's average loss"}
    for log in logs:
        rows = [row for row in document["rows"] if row["log"] == log]
        for way, name in names.items():
            errors.append(figure(title(log), name, [row["errors"][way] for row in rows], "error"))
            for what, unit in (("widths", "error"), ("misses", "share")):
                if way in rows[0][what]:
                    values = [row[what][way] for row in rows]
                    intervals.append(figure(f"{title(log)}: {what}", name, values, unit))
    return {"off-policy-errors": errors, "off-policy-intervals": intervals}


def in_partitions(given: Namespace) -> Tables:
    """Compare several partitions with one learner, in one process."""
    rewards, ratios = [], []
    changes = {"effects": "effects drawn again", "swap": "rewards swapped", "death": "best items die"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.txt"
        events = 2000 if given.quick else 200_000
        for number, change in itertools.product(range(2 if given.quick else 4), (False, True)):
            design = partitions.design_of(number)
            truth = partitions.write_stream(path, number, events, changes=change)
            row = f"{number}, {design.kind}, {changes[design.change] if change else 'no change'}"
            one = partitions.earned(path, truth, 0).rewards[events // 2 :].mean()
            rewards.append(figure(row, "one learner", [one], "reward, 4 digits"))
            for count in (4, 16):
                reward = partitions.earned(path, truth, count).rewards[events // 2 :].mean()
                rewards.append(figure(row, f"{count} partitions", [reward], "reward, 4 digits"))
                ratios.append(figure(row, f"{count} partitions", [reward / one], "share"))
                print(rewards[-1], flush=True)
    return {"partitions": rewards, "partitions-ratios": ratios}


_TUNERS = {
    "TPE: the default": "onlineauto",
    "Hyperband, TPE: the default": "onlineauto",
    "ASHA, TPE": "onlineauto, ASHA",
    "Optuna TPE": "Optuna TPE",
    "Optuna TPE + Hyperband pruner": "Optuna TPE",
    "CMA-ES": "onlineauto, CMA-ES",
    "random": "random",
}


def tuners(given: Namespace) -> Tables:
    """Tune on public suites and on recorded learning curves."""
    suites = import_module("bench.tune.suites.__main__")  # only now: it looks for the packages of suites
    seeds = 1 if given.quick else 10
    single = ["random", "TPE: the default", "CMA-ES", "Optuna TPE"]
    several = ["random", "Hyperband, TPE: the default", "ASHA, TPE", "Optuna TPE + Hyperband pruner"]
    full = ["bbob: f3, 2"] if given.quick else ["HPOLib", "HPOBench", "NASBench201", "bbob"]
    levels = ["curves"] if given.quick else ["MF-Hartmann", "curves"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        suites.record(path, single, seeds, full, given.peers)
        suites.record(path, several, seeds, levels, given.peers)
        runs, costs = suites.normalised(path.read_text("utf-8").splitlines())
    figures, times = [], []
    for suite in dict.fromkeys(suite for suite, _ in runs):
        for who in several if suite in ("MF-Hartmann", "curves") else single:
            tuned = [of_problem[who] for (name, _), of_problem in runs.items() if name == suite]
            ends = [median(regrets[seed][-1] for regrets in tuned) for seed in range(seeds)]
            figures.append(figure(suite, _TUNERS[who], ends, "regret"))
            times.append(figure(suite, _TUNERS[who], costs[suite, who], "ms"))
    return {"tuners": figures, "tuners-time": times}


def simulated_cluster(given: Namespace) -> Tables:
    """Simulate the policies of a cluster."""
    traces = 2 if given.quick else 16
    options = Namespace(
        rates=[0.3] if given.quick else [0.3, 0.5, 1.2],
        workloads=["own", "other", "scalable"],
        policies=["marginal-gain", "equal", "learned"],
    )
    names = {"equal": "marginal-gain, `short_first=0`"}
    jobs = {"own": "the simulator's own jobs", "other": "other speed curves"}
    jobs["scalable"] = "jobs that scale almost without limit"
    return {
        "cluster": [
            Figure(
                f"{jobs[row['workload']]}, {row['rate']} arrivals",
                names.get(row["policy"], row["policy"]),
                *(row["ratio"], row["low"], row["high"]),
                "time / fair",
            )
            for row in cluster.rows(options, range(HELD_OUT, HELD_OUT + traces))
        ]
    }


def of_budgets(given: Namespace) -> Tables:
    """Choose language models within budgets of dollars."""
    routes, _, decided = budgets.routes_of(False)
    figures: list[Figure] = []
    run = partial(budgets.run, flags=budgets.FLAGS, learn_every=20, cold=False, choose=False)

    def add(row: str, results: Iterable[budgets.Result], budget: float | None = None) -> None:
        some = [*results]
        figures.append(figure(row, "reward", [each.reward.mean() for each in some], "reward, 4 digits"))
        figures.append(figure(row, "dollars a prompt", [each.cost.mean() for each in some], "dollars"))
        if budget:
            shares = [each.cost.mean() / budget for each in some]
            figures.append(figure(row, "share of the budget", shares, "share"))

    for budget in [*budgets.BUDGETS[: 1 if given.quick else None], None]:
        row = "no budget" if budget is None else f"budget {budget:.1e}"
        add(row, (run(seed, budget=budget) for seed in range(1, 2 if given.quick else 6)), budget)
        print(figures[-1], flush=True)
    for number, model in enumerate(routes.models):
        one = budgets.Result(routes.reward[decided, number], routes.cost[decided, number], np.zeros(1))
        add(f"always {model}", [one])
    return {"budgets": figures}
