"""Sections that measure time. Each runs while nothing else does."""

from __future__ import annotations

import itertools
import tempfile
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import cold_start, kit, scale
from bench.formats import parquet as parquet_bench
from bench.publish.figures import RATIO, Figure, figure
from bench.publish.quality import Tables, document_of
from bench.regression import moa
from bench.service import __main__ as service
from bench.service import loops, route
from bench.service import topics as topic_bench
from bench.service.load import Load
from bench.speed import __main__ as speed
from bench.speed import one_event, predict_only
from bench.speed_kinds import __main__ as speed_kinds
from bench.speed_kinds.streams import KINDS
from datasets.generate import write

RANK_SERVER = "onlineauto, a rank server"


def kinds(given: Namespace) -> Tables:
    """Learn streams of several kinds."""
    names = [name for name in KINDS if name != "300 namespaces"]
    sides = {"ensemble": "onlineauto", "champion": "champion alone", "VW -q ::": "VW `-q ::`"}
    sides["VW --automl 4"] = "VW `--automl 4`"
    rounds, length = (1, 0.01) if given.quick else (5, 1.0)
    taken = speed_kinds.measure(names, rounds=rounds, lengths=[length], sides=tuple(sides))
    costs = [
        figure(KINDS[kind].what, sides[side], [parts[0]["cpu"] for parts in taken[kind][side]], "µs")
        for kind in names
        for side in sides
    ]
    return {"kinds": costs}


def one(given: Namespace) -> Tables:
    """Predict and learn one event at a time."""
    taken = (
        one_event.measure(rounds=1, events=20) if given.quick else one_event.measure(rounds=9, events=1000)
    )
    names = {
        "AutoML": "`AutoML.rank` and `learn`, from dicts",
        "ours, mappings": "`Workspace.predict` and `learn`, from dicts",
        "ours, text": "`Workspace.predict` and `learn`, from text",
        "vw, mappings": "VW's binding, `--automl 4`, text made of dicts",
        "vw, text": "VW's binding, `--automl 4`, from text",
    }
    figures = [figure(names[name], "time", taken[name], "µs") for name in names]
    ratio = [vw / ours for vw, ours in zip(taken["vw, mappings"], taken["AutoML"], strict=True)]
    return {"one-event": [*figures, figure("VW's binding / `AutoML`, both from dicts", "time", ratio, RATIO)]}


def files(given: Namespace) -> Tables:
    """Read files, start processes, and look at their memory."""
    rows = ["reading-mb", "reading", "exact", "memory", "learn", "help", "predict-p50", "predict-p99"]
    size = ["--rounds", 1, "--share", 0.01] if given.quick else ["--rounds", 5]
    samples = document_of(speed.main, *size, "--only", *rows)["samples"]

    def seconds(name: str) -> list[float]:
        found: list[float] = samples[name]["seconds"]
        return found

    def ratio(theirs: str, ours: str) -> list[float]:
        return [a / b for a, b in zip(seconds(theirs), seconds(ours), strict=True)]

    found = [
        ("reading VW text alone", samples["ours reading"]["mb_per_second"], "MB/s"),
        ("reading VW text alone: VW's time / ours", ratio("vw reading", "ours reading"), RATIO),
        (
            "exact mode, `--vw_exact --automl 4`: VW's time / ours",
            ratio("vw narrow automl 4", "ours exact automl 4"),
            RATIO,
        ),
        ("`predict_block` of an event of 8 actions", samples["ours predict"]["p50"], "µs"),
        ("the same, 99th percentile", samples["ours predict"]["p99"], "µs"),
        ("peak memory, `--automl 4`, 100,000 events", samples["memory 100,000"]["peak_mb"], "MB"),
        ("`onlineauto --help`, whole process", seconds("help"), "s"),
        ("1,000 events with `--automl 4`, whole process", seconds("learn 1,000"), "s"),
    ]
    return {"files": [figure(row, "figure", values, unit) for row, values, unit in found]}


def parquet(given: Namespace) -> Tables:
    """Read and learn rows as Parquet and as text."""
    size = ["--rows", 5000, "--rounds", 1] if given.quick else ["--rows", 1_000_000, "--rounds", 3]
    found = document_of(parquet_bench.main, *size)["found"]
    names = {"parquet": "Parquet", "text": "text", "vw": "text, by VW"}
    figures = []
    for task, runs in found.items():
        who, what = task.split()
        figures.append(figure(what, names[who], [run["cpu"] for run in runs], "s"))
    return {"parquet": figures}


def models(given: Namespace) -> Tables:
    """Predict with whole models and with smaller ones."""
    figures = []
    for name in ["cb-surveys-u"] if given.quick else ["cb-surveys-u", "cb-diamonds-n-u"]:
        for row in predict_only.measure(name):
            for column, title, unit in (
                ("MB", "file", "MB"),
                ("load ms", "load", "ms"),
                ("µs an event", "predict an event", "µs"),
            ):
                figures.append(figure(f"{name}: {row['model']}", title, [row[column]], unit))
    return {"models": figures}


def first_run(given: Namespace) -> Tables:
    """Run README's first command without a cache, and again, and the same with VW."""
    runs: dict[str, list[cold_start.Cost]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        words = [*cold_start.QUICK_START[:-1], str(Path(folder, "predictions.txt"))]
        vw = ["-m", "vowpalwabbit", *[word.replace("--automl", "--automl=4") for word in words], "--quiet"]
        for number in range(1 if given.quick else 3):
            cache = Path(folder, f"cache {number}")
            for row in ("README's first command, without a cache", "README's first command, later"):
                runs[row].append(cold_start.cost_of(["-m", "onlineauto", *words], cache=cache))
            runs["the same with VW `--automl 4`"].append(cold_start.cost_of(vw, cache=cache))
    columns = (("processor", "seconds", "s"), ("wall clock", "wall", "s"), ("memory", "megabytes", "MB"))
    return {
        "start": [
            figure(row, name, [getattr(cost, field) for cost in costs], unit)
            for row, costs in runs.items()
            for name, field, unit in columns
        ]
    }


def pairs(given: Namespace) -> Tables:
    """Load services with pairs of rank and reward."""
    sides: dict[str, Callable[..., Load]] = {
        "onlineauto": service.service,
        RANK_SERVER: service.rank_server,
        "FastAPI and VW, no log": partial(service.peer, given.peers),
        "FastAPI and VW, with a log": partial(service.peer, given.peers, log=True),
        "VW's daemon, no HTTP": partial(service.daemon, given.peers),
    }
    connections = [8] if given.quick else [1, 8, 32, 128]
    seconds, rounds = (0.5, 1) if given.quick else (2.0, 3)
    taken: dict[tuple[str, int], list[Load]] = defaultdict(list)
    for number, (who, count) in kit.turns(itertools.product(sides, connections), rounds):
        if number:  # every run has its own warm-up
            taken[who, count].append(sides[who](connections=count, seconds=seconds))
            print(who, count, taken[who, count][-1], flush=True)
    fields = {
        "pairs_per_second": ("pairs a second", "pairs/s"),
        "cpu_us": ("CPU time a pair", "µs"),
        "p50": ("a rank, median", "ms"),
        "p99": ("a rank, 99th percentile", "ms"),
    }
    figures = [
        figure(f"{what}: {count}", who, [getattr(run, field) for run in taken[who, count]], unit)
        for field, (what, unit) in fields.items()
        for count, who in itertools.product(connections, sides)
    ]
    usual = connections[len(connections) // 2]
    learner = [run.learner_us for run in taken[RANK_SERVER, usual]]
    figures.append(figure(f"CPU time a pair of its learner: {usual}", RANK_SERVER, learner, "µs"))
    return {"service": figures}


def many_loops(given: Namespace) -> Tables:
    """Ask a thousand loops of one service."""
    size = (
        ["--loops", 20, "--seconds", 0.5, "--rounds", 1] if given.quick else ["--seconds", 1, "--rounds", 5]
    )
    row, *samples = document_of(loops.main, *size)
    values = [
        ("start with all loops closed", "start_seconds", "s"),
        ("first answer of a closed loop, median", "first_ms_p50", "ms"),
        ("first answer of a closed loop, 99th percentile", "first_ms_p99", "ms"),
        ("memory after each loop was asked once", "mb_after_all", "MB"),
    ]
    figures = [figure(name, "figure", [row[key]], unit) for name, key, unit in values]
    for who, name in (("one", "alone"), ("many", "among all others")):
        for field, what in (("p50", "median"), ("p99", "99th percentile")):
            taken = [each[field] for each in samples if each["who"] == who]
            figures.append(figure(f"rank of a busy loop {name}, {what}", "figure", taken, "ms"))
    return {"loops": figures}


def router(given: Namespace) -> Tables:
    """Send prompts to a model directly and through the router."""
    figures = []
    units = {"median ms": "ms", "p99 ms": "ms", "CPU µs of the router": "µs"}
    for row in route.measure(60 if given.quick else 2000):
        print(row, flush=True)
        for name, unit in units.items():
            if not row[name] or row["request"] == "a named model":  # the model needs no router
                continue
            what = {"direct": "to the model"}.get(str(row["request"]), row["request"])
            figures.append(figure(f"{row['words']} words, {what}", name, [float(str(row[name]))], unit))
    return {"router": figures}


def topics(given: Namespace) -> Tables:
    """Read, join and learn the events of topics."""
    names = {"file": "joined, from a file", "topic": "from a topic, joined", "learnt": "the same, and learnt"}
    taken = topic_bench.measure(*((200, 1) if given.quick else (26_000, 5)))
    return {"topics": [figure(names[side], "time", times, "µs") for side, times in taken.items()]}


def workers(given: Namespace) -> Tables:
    """Learn a file with workers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.txt"
        write(path, kind="planted", events=20_000 if given.quick else 2_000_000)
        numbers = (0, 1, 2)
        taken: dict[int, list[scale.Speed]] = defaultdict(list)
        for number, count in kit.turns(numbers, 1 if given.quick else 3):
            found = scale.measure(path, count)
            if number:
                taken[count].append(found)
        names = {0: "single learner", 1: "1 worker", 2: "2 workers"}
        figures: list[Figure] = []
        for count, name in names.items():
            runs = taken[count]
            figures.append(figure(name, "CPU an event", [1e6 * run.cpu / run.events for run in runs], "µs"))
            rates = [run.events / run.wall for run in runs]
            figures.append(figure(name, "events a second", rates, "events/s"))
    return {"workers": figures}


def streams(given: Namespace) -> Tables:
    """Predict and learn streams of classes, beside CapyMOA."""
    size = ["--events", 100, "--streams", "weather", "SEA, 3 drifts"] if given.quick else ["--events", 5000]
    runs: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for run in document_of(moa.main, "--capymoa", given.capymoa, *size)["runs"]:
        runs[run["stream"], run["learner"]].append(run)
    return {
        name: [figure(*key, [run[field] for run in found], unit) for key, found in runs.items()]
        for name, field, unit in (("capymoa", "right", "share of labels"), ("capymoa-time", "wall µs", "µs"))
    }
