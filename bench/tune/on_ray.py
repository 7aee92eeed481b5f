"""Milliseconds of a trial that does nothing, on a Ray cluster of this machine.

    python -m bench.tune.on_ray [--trials 400] [--workers 2] [--ray_tune 20]

The study is in SQLite. Beside it: the same study with processes, and with ``--ray_tune`` a number of trials
of Ray Tune, if it is installed. Wall time from the first result to the last one, so that no executor is
charged for starting Ray, and processor time of the driver.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import kit
from onlineauto.tune import Callback, Float, Study
from onlineauto.tune.trial import Job

BAR = 20.0
"""The most milliseconds of wall time that a trial may take."""


class Clock(Callback):
    """Notes when trials end."""

    def __init__(self) -> None:
        self.ends: list[tuple[float, float]] = []

    def on_result(self, job: Job, value: float) -> None:
        del job, value
        self.ends.append((time.perf_counter(), time.process_time()))


def nothing(config: dict[str, Any]) -> float:
    return float(config["rate"])


def milliseconds(trials: int, **options: Any) -> tuple[float, float]:
    """Return the mean milliseconds of a trial, of wall time and of the driver's processor time."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        study = Study(
            {"rate": Float(0, 1)},
            "fifo",
            "random",
            max_resource=1,
            max_trials=trials,
            storage=f"sqlite:///{Path(folder) / 'study.db'}",
        )
        study.run("bench.tune.on_ray:nothing", callbacks=[clock], **options)
    (wall, processor), (last_wall, last_processor) = clock.ends[0], clock.ends[-1]
    count = len(clock.ends) - 1
    return (last_wall - wall) / count * 1e3, (last_processor - processor) / count * 1e3


def of_ray_tune(trials: int) -> float | None:
    """Return the mean milliseconds of a trial of Ray Tune, None if it is not installed."""
    try:
        from ray import tune
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        run = tune.RunConfig(storage_path=folder, verbose=0)
        tuner = tune.Tuner(
            _of_tune,
            param_space={"rate": tune.uniform(0, 1)},
            tune_config=tune.TuneConfig(num_samples=trials),
            run_config=run,
        )
        before = time.perf_counter()
        tuner.fit()
        return (time.perf_counter() - before) / trials * 1e3


def _of_tune(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": config["rate"]}


def main(words: Sequence[str] | None = None) -> int:
    """Print a table, and return 1 if the bar is missed."""
    import ray

    parser = kit.parser(__doc__, trials=400, workers=2)
    parser.add_argument("--ray_tune", type=int, default=0)
    given = parser.parse_args(words)
    print("| executor | ms a trial | processor ms of the driver |")
    wall, processor = milliseconds(given.trials, workers=given.workers)
    print(f"| processes | {wall:.1f} | {processor:.1f} |", flush=True)
    ray.init(num_cpus=given.workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        wall, processor = milliseconds(given.trials, workers=given.workers, executor="ray")
        print(f"| ray | {wall:.1f} | {processor:.1f} |", flush=True)
        peer = of_ray_tune(given.ray_tune) if given.ray_tune else None
        if peer is not None:
            print(f"| Ray Tune | {peer:.0f} | |")
    finally:
        ray.shutdown()
    return int(wall > BAR)


if __name__ == "__main__":
    sys.exit(main())
