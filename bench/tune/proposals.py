"""Proposals a second of six workers that share a study, with a slow searcher.

    python -m bench.tune.proposals [--trials 240]

`sleep` proposes at random after a pause of 80 ms, which costs no processor time; `gp` is the package's own.
Workers are processes with a SQLite file, threads of one process in memory, or worker processes of one
`Study.run`. The first 60 trials of a study, in which processes start, do not count.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import numpy as np

from bench import kit
from onlineauto.tune import Float, Searcher, Study

WORKERS = 6
STARTUP = 60
SPACE = {f"x{each}": Float(0, 1) for each in range(3)}


class Sleeping(Searcher):
    """Proposes at random after 80 ms."""

    name = "sleeping"

    def propose(self, number: int, rng: np.random.Generator) -> Any:  # noqa: ARG002
        time.sleep(0.08)
        return self.space.decode(rng.random(self.space.width))


def study_of(kind: str, trials: int, url: str | None) -> Study:
    searcher = Sleeping() if kind == "sleep" else kind
    return Study(SPACE, "fifo", searcher, max_resource=1, max_trials=trials, seed=1, storage=url)


def loss(config: Any, resource: int, report: Any) -> None:
    """Report the squared distance to the middle, and when."""
    report(sum((value - 0.5) ** 2 for value in config.values()), details={"time": time.time()})


def work(kind: str, trials: int, url: str) -> None:
    study_of(kind, trials, url).run(loss)


def threads(kind: str, trials: int, url: str | None) -> Study:
    study = study_of(kind, trials, None)

    def ask_and_tell() -> None:
        while (job := study.ask()) is not None:
            study.tell(
                job, sum((float(str(x)) - 0.5) ** 2 for x in job.config.values()), {"time": time.time()}
            )

    workers = [Thread(target=ask_and_tell) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return study


def processes(kind: str, trials: int, url: str) -> Study:
    study = study_of(kind, trials, url)
    context = get_context("spawn")
    workers = [context.Process(target=work, args=(kind, trials, url)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    study.refresh()
    return study


def run(kind: str, trials: int, url: str) -> Study:
    study = study_of(kind, trials, url)
    study.run(loss, workers=WORKERS)
    return study


def rate(how: Any, kind: str, trials: int, startup: int = STARTUP) -> tuple[float, int]:
    """Return proposals a second, and the number of different configs."""
    with TemporaryDirectory() as folder:
        study = how(kind, trials, f"sqlite:///{Path(folder)}/study.db")
        times = sorted(row["time"] for row in study.history() if "time" in row)[startup:]
        different = len({tuple(trial.config.items()) for trial in study.trials})
    return (len(times) - 1) / (times[-1] - times[0]), different


def main(words: Sequence[str] | None = None) -> None:
    """Print a table."""
    trials = kit.parser(__doc__, trials=240).parse_args(words).trials
    print("| searcher | workers | proposals a second | different configs |")
    for kind in ("sleep", "gp"):
        for how in (processes, threads, run):
            a_second, different = rate(how, kind, trials)
            print(f"| {kind} | {how.__name__} | {a_second:.1f} | {different} of {trials} |", flush=True)


if __name__ == "__main__":
    main()
