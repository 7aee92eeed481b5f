"""Trials a second of a study in a database, beside Optuna's, each with one value reported and one told.

    python -m bench.tune.store [--trials 200] [--repeats 3]

One process. Ours and Optuna's take turns; the medians and their quotient are printed. The bars are 10 times
on SQLite and 5 times on PostgreSQL.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from statistics import median
from time import perf_counter, process_time

import optuna

from bench import kit
from onlineauto.tune import Float, Study
from tests.tune.postgres import Server, find_programs

BARS = {"sqlite": 10, "postgresql": 5}


def ours(url: str, trials: int, name: str) -> tuple[float, float]:
    """Return seconds and seconds of processor time of a trial."""
    study = Study({"x": Float(0, 1)}, "fifo", "random", max_resource=1, name=name, storage=url)
    begun, worked = perf_counter(), process_time()
    for _ in range(trials):
        job = study.ask()
        assert job is not None
        value = job.config["x"]
        assert isinstance(value, float)
        study.report(job, 1, value)
        study.tell(job, value)
    return (perf_counter() - begun) / trials, (process_time() - worked) / trials


def theirs(url: str, trials: int, name: str) -> tuple[float, float]:
    """Return the same of Optuna."""
    wait = {"timeout": 60} if url.startswith("sqlite") else {}
    storage = optuna.storages.RDBStorage(
        url.replace("postgresql:", "postgresql+psycopg:"), engine_kwargs={"connect_args": wait}
    )
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(storage=storage, sampler=sampler, study_name=name)
    begun, worked = perf_counter(), process_time()
    for _ in range(trials):
        trial = study.ask()
        value = trial.suggest_float("x", 0, 1)
        trial.report(value, 1)
        study.tell(trial, value)
    return (perf_counter() - begun) / trials, (process_time() - worked) / trials


def main(words: Sequence[str] | None = None) -> int:
    """Print a table, and return 1 if a bar is missed."""
    options = kit.parser(__doc__, trials=200, repeats=3).parse_args(words)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    programs = find_programs()
    server = None if programs is None else Server(programs)
    missed = False
    try:
        with tempfile.TemporaryDirectory() as folder:
            urls = [[f"sqlite:///{folder}/{who}.db" for who in ("ours", "theirs")]]
            urls += [] if server is None else [[server.new_database() for _ in range(2)]]
            for pair in urls:
                missed |= _compare(pair, options.trials, options.repeats)
    finally:
        if server is not None:
            server.remove()
    return int(missed)


def _compare(urls: list[str], trials: int, repeats: int) -> bool:
    kind = urls[0].partition(":")[0]
    found: list[list[tuple[float, float]]] = [[], []]
    for number in range(repeats):
        found[1].append(theirs(urls[1], trials // 4, f"s{number}"))
        found[0].append(ours(urls[0], trials, f"s{number}"))
    rows = [[median(each[k] for each in of) * 1e3 for k in (0, 1)] for of in found]
    times, cpu = (rows[1][k] / rows[0][k] for k in (0, 1))
    both = zip(("ours", "Optuna"), rows, strict=True)
    each = [f"{who} {wall:.2f} ms ({worked:.2f} CPU)" for who, (wall, worked) in both]
    print(f"{kind}: {', '.join(each)}: {times:.1f} x ({cpu:.1f} x CPU), bar {BARS[kind]} x", flush=True)
    return times < BARS[kind]


if __name__ == "__main__":
    sys.exit(main())
