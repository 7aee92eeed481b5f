"""Kill workers, controllers and the server of the database at random, and check that nothing is lost.

    python -m tests.tune.chaos [--minutes 10] [sqlite] [postgres]

Two commands, one of them with two processes, work on one study. Every second or two a command or one of its
processes is killed, and commands are started again. Every ten seconds the server of PostgreSQL is stopped as
if it had been killed, and started again. At the end the log is checked; see `check`. A study that is done is
followed by another one, until the time is over.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from onlineauto.errors import OnlineautoError
from onlineauto.tune import Float, Study
from onlineauto.tune.progress import TRIES
from onlineauto.tune.store import Record, open_store
from tests.tune.postgres import Server, find_programs

TRAINABLE = """
import os, time
from onlineauto.tune.workers.trainable import Trainable
class Climb(Trainable):
    def setup(self, config):
        self.rate, self.done = config["rate"], []
    def step(self):
        time.sleep(0.02)
        self.done.append(len(self.done) + 1)
        assert self.done == list(range(1, len(self.done) + 1)), self.done
        return abs(self.rate - 0.3) + 1 / len(self.done)
    def save(self):
        return self.done
    def load(self, saved):
        self.done = list(saved)
"""
TRIALS, RESOURCE, LEASE = 100, 9, 3


def made(url: str, name: str) -> Study:
    space = {"rate": Float(0, 1)}
    return Study(
        space,
        "hyperband",
        "random",
        max_resource=RESOURCE,
        max_trials=TRIALS,
        name=name,
        storage=url,
        lease=LEASE,
    )


class Commands:
    """Commands that work on a study, and are restarted after they were killed."""

    def __init__(self, url: str, name: str, folder: Path) -> None:
        self._folder, self._words = folder, ["--study", url, "--name", name, "--quiet"]
        self._running: list[subprocess.Popen[bytes]] = []
        self.ended = Counter[int]()

    def start(self) -> None:
        """Start commands until two are running."""
        for process in [each for each in self._running if each.poll() is not None]:
            self._running.remove(process)
            self.ended[process.returncode] += 1
        for number in range(2 - len(self._running)):
            lease = ["--lease", str(LEASE)]
            verb = ["worker", "--trainable", "climb:Climb", *lease, "--workers", str(2 * number)]
            command = [sys.executable, "-m", "onlineauto", *verb, *self._words]
            log = (self._folder / "log").open("ab")
            self._running.append(
                subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log, start_new_session=True)
            )
            log.close()

    def kill(self, draw: random.Random) -> None:
        """Kill a command, or one of its processes."""
        process = draw.choice(self._running)
        children = _children(process.pid)
        victim = draw.choice([process.pid, *children])
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)

    def end(self) -> None:
        """End all commands."""
        for process in self._running:
            process.terminate()
            self.ended[process.wait(60)] += 1


def _children(parent: int) -> list[int]:
    """Return the descendants of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            if int(words[1]) == parent:
                found += [int(path.parent.name), *_children(int(path.parent.name))]
    return found


def chaos(url: str, *, seconds: float, server: Server | None = None, seed: int = 0) -> list[str]:
    """Work on studies while processes are killed; return a summary of each study."""
    draw, said, end = random.Random(seed), [], time.monotonic() + seconds
    for number in count():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "climb.py").write_text(TRAINABLE)
            study = made(url, f"study {number}")
            commands = Commands(url, study.name, Path(folder))
            kills, stops, stopped = 0, 0, time.monotonic()
            while True:
                commands.start()
                time.sleep(draw.uniform(0.5, 2.0))
                calm = time.monotonic() > end + 60  # it has to come to its end now
                if not calm:
                    commands.kill(draw)
                    kills += 1
                if server is not None and not calm and time.monotonic() - stopped > 10:
                    server.stop("immediate")
                    time.sleep(draw.uniform(0, 2))
                    server.start()
                    stops, stopped = stops + 1, time.monotonic()
                with suppress(OnlineautoError):  # the server may be away
                    study.refresh()
                    if study.is_done:
                        break
            commands.end()
            records = open_store(url, study.name).load()
            facts = check(study, records)
            said.append(f"{study.name}: {kills} kills, {stops} stops of the server, {facts}")
            print(said[-1], flush=True)  # noqa: T201
            if time.monotonic() > end:
                return said
    return said


def check(study: Study, records: Sequence[Record]) -> str:
    """Check the log of a study that is done.

    No trial is lost: all that were begun have ended, except those whose processes were killed `TRIES` times
    at the same step, which happens where steps are slow. None is told twice at a resource. At most one
    attempt has a trial at any time. Each attempt continues after the last reported step, or repeats it; no
    step is missing, and no earlier one is repeated. The values are those of trials that were never killed.
    """
    trials: Any = study.trials
    assert len(trials) == TRIALS, len(trials)
    unfinished = {
        trial.number: (str(trial.state), trial.error) for trial in trials if str(trial.state) != "TERMINATED"
    }
    assert all(f"was lost {TRIES} times" in error for _, error in unfinished.values()), unfinished
    told = Counter((record["trial"], record["resource"]) for record in records if record["kind"] == "told")
    assert set(told.values()) == {1}, told.most_common(3)
    held: dict[int, int] = {}
    reached: dict[int, int] = {}
    again, expired, lost = 0, 0, Counter[int]()
    for record in records:
        kind, trial = record["kind"], record.get("trial", -1)
        if kind == "asked":
            assert trial not in held, record
            held[trial] = record["attempt"]
        elif kind == "failed":
            assert trial in unfinished, record
            assert lost[trial] >= TRIES, record
        elif kind in ("reported", "told", "expired"):
            assert held[trial] == record["attempt"], record
            step: Any = record.get("step", record.get("resource"))
            if kind != "expired":
                before = reached.get(trial, 0)
                assert step in (before, before + 1), (record, before)
                again += step == before
                reached[trial] = step
                assert abs(record["value"] - abs(trials[trial].config["rate"] - 0.3) - 1 / step) < 1e-9, (
                    record
                )
            if kind in ("told", "expired"):
                expired += kind == "expired"
                lost[trial] += kind == "expired"
                del held[trial]
    assert not held, held
    return f"{len(trials)} trials, {len(told)} results, {expired} jobs lost and resumed, {again} steps again"


def main() -> None:
    """Run chaos on the databases that are named, both by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("databases", nargs="*", default=["sqlite", "postgres"])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for database in options.databases:
        print(database, flush=True)  # noqa: T201
        if database == "sqlite":
            with tempfile.TemporaryDirectory() as folder:
                chaos(f"sqlite:///{folder}/study.db", seconds=60 * options.minutes, seed=options.seed)
            continue
        programs = find_programs()
        if programs is None:
            raise SystemExit("PostgreSQL is not installed")
        server = Server(programs)
        try:
            chaos(server.new_database(), seconds=60 * options.minutes, server=server, seed=options.seed)
        finally:
            server.remove()


if __name__ == "__main__":
    main()
