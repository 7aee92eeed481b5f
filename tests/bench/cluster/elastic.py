"""The sharded learner: resized in mid-stream on Ray, beside a restart; its throughput and its loss.

    python -m tests.bench.cluster.elastic [--only resizes throughput loss] [--resizes 12] [--backend ray]

*Resizes*: workers and servers join and leave while a log is learnt. The weights must be, bit for bit, those
of a run that was never resized. A pause is the longest time between two ticks from one request to the next,
which comes 30 ticks after the layout is in force. Beside it: the same change as a snapshot to a file, the end
of all nodes, and a run that goes on from the file.

*Throughput*: events a second of one workspace, and of workers in step. The parts of each worker and of each
server are timed one after the other on one core; a tick takes as long as its slowest worker and its slowest
server. Messages cost nothing in this account.

*Loss*: mean progressive loss with the default cut, beside a workspace that learns every event at once.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto import Workspace
from onlineauto.cluster.elastic import Cutting, ShardedLearner, Snapshot
from onlineauto.cluster.elastic.learning.model_work import ModelWork
from onlineauto.cluster.elastic.protocol.balance import balance
from onlineauto.cluster.elastic.running.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cluster.elastic import ShardedRun

__all__ = ["losses", "main", "resizes", "throughput"]

DATA = Path(__file__).resolve().parents[3] / "datasets"
BANDIT: dict[str, Any] = {"cb_explore_adf": True, "quadratic": ["::"]}
HEAVY: dict[str, Any] = {"cb_explore_adf": True, "cubic": [":::"], "bit_precision": 20}
LOGS: dict[str, tuple[str, dict[str, Any]]] = {
    "letter -q ::": ("cb-letter-u", BANDIT),
    "letter --cubic :::": ("cb-letter-u", HEAVY),
    "diamonds -q ::": ("cb-diamonds-u", BANDIT),
    "flights, single lines, -q ::": ("reg-flights", {"quadratic": ["::"]}),
}
SMALL: dict[str, float] = {"CPU": 0.1}
SIZES = [(3, 2), (3, 3), (2, 3), (2, 2), (1, 2), (2, 1), (3, 1), (2, 2)]
"""Workers and servers, one after the other."""


def log(name: str, copies: int = 1) -> bytes:
    """Return a log of `datasets`, several times one after the other."""
    return gzip.decompress((DATA / f"{name}.txt.gz").read_bytes()) * copies


def wait_for(run: ShardedRun, ticks: int, patience: float = 300) -> None:
    """Wait until so many more ticks are learnt, or all."""
    goal, end = len(run.times) + ticks, time.monotonic() + patience
    while not run.ended and len(run.times) < goal and time.monotonic() < end:
        time.sleep(0.002)


def resizes(n: int, backend: str, copies: int) -> dict[str, Any]:
    """Resize a run of a log `n` times; return pauses, in seconds and ticks, and those of restarts."""
    learner = ShardedLearner(parts=4, part_events=8, warm_up=0, **BANDIT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.txt"
        path.write_bytes(log("cb-flights-u", copies))
        expected = learner.fit(path).weights[:, :3]
        how: dict[str, Any] = {"backend": backend, "worker": SMALL, "server": SMALL}
        run = learner.run(path, workers=2, servers=2, **how).start()
        wait_for(run, 30)
        asked = []
        for size in itertools.islice(itertools.cycle(SIZES), n):
            before = len(run.changes)
            asked.append((time.monotonic(), before))
            run.resize(*size)
            while not run.ended and (run.layout != size or len(run.changes) == before):
                time.sleep(0.005)
            wait_for(run, 30)
        changed = len(run.changes)
        weights = run.workspace().weights[:, :3]
        pauses, ticks = pauses_of(run, [when for when, _ in asked])
        restarts = [restart(learner, path, Path(folder) / "snapshot", how) for _ in range(3)]
    return {
        "resizes": n,
        "layouts": changed,
        "exact": weights.tobytes() == expected.tobytes(),
        "pauses": pauses,
        "pauses in ticks": ticks,
        "restarts": restarts,
        "ratio": statistics.median(restarts) / statistics.median(pauses),
    }


def pauses_of(run: ShardedRun, asked: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the longest time between two ticks after each request, in seconds and in median ticks."""
    when = np.array([at for _, at in run.times])
    gaps, ends = np.diff(when), when[1:]
    median = float(np.median(gaps))
    pauses = []
    for begin, until in zip(asked, [*asked[1:], when[-1]], strict=True):
        inside = gaps[(ends > begin) & (ends <= until)]
        if len(inside):
            pauses.append(float(inside.max()))
    return pauses, [pause / median for pause in pauses]


def restart(learner: ShardedLearner, path: Path, kept: Path, how: dict[str, Any]) -> float:
    """Return the seconds between the last tick before a restart, with another worker, and the next."""
    run = learner.run(path, workers=2, servers=2, **how).start()
    wait_for(run, 40)
    run.snapshot().save(kept)
    run.stop()
    begin = run.times[-1][1]
    again = learner.run(path, workers=3, servers=2, begin=Snapshot.load(kept), **how).start()
    wait_for(again, 1)
    pause = again.times[0][1] - begin
    again.stop()
    return float(pause)


def single(source: bytes, options: dict[str, Any]) -> tuple[float, float, int]:
    """Return CPU seconds, mean progressive loss and number of events of one workspace."""
    model, loss, weight, events = Workspace(**options, threads=1), 0.0, 0.0, 0
    begin = time.process_time()
    for block, outcomes in model.stream(source):
        loss += float(outcomes.loss.sum(dtype=np.float64))
        weight += float(outcomes.weight[outcomes.labelled].sum(dtype=np.float64))
        events += len(block)
    return time.process_time() - begin, loss / weight, events


def simulated(source: bytes, options: dict[str, Any], cutting: Cutting, workers: int, servers: int) -> float:
    """Return the seconds that a stream takes, if each worker and server has a core of its own."""
    fresh = Workspace(**options)
    recipe = Recipe(fresh.configuration.command(), source, cutting)
    shards = recipe.shards()
    blocks = {block: shards.make(block) for block in shards.sizes}
    names = [str(server) for server in range(servers)]
    owner = balance(shards.sizes, {}, names)
    feed = recipe.feed(0)
    works = [ModelWork(recipe.workspace(), feed, shards.shift) for _ in range(workers)]
    total, tick, clock = 0.0, 0, time.process_time
    while feed.parts_of(tick, 0, 1) is not None:
        spent, serving, pushed = [], dict.fromkeys(names, 0.0), []
        for rank, work in enumerate(works):
            begin = clock()
            wanted = work.needed_keys(tick, rank, workers)
            spent.append(clock() - begin)
            assert wanted is not None
            values = {}
            for block, keys in wanted.items():
                begin = clock()
                values[block] = blocks[block].read(keys)
                serving[owner[block]] += clock() - begin
            begin = clock()
            pushed.append(work.compute(tick, rank, workers, values))
            spent[-1] += clock() - begin
        for block, shard in blocks.items():
            begin = clock()
            shard.apply([updates[block] for updates in pushed if block in updates])
            serving[owner[block]] += clock() - begin
        total += max(spent) + max(serving.values())
        tick += 1
    return total


def throughput(name: str, options: dict[str, Any], copies: int, part_events: int) -> list[dict[str, Any]]:
    """Return the speed of one workspace and of 1, 2 and 4 workers on a log."""
    source, cutting = log(name, copies), Cutting(part_events=part_events)
    single(source, options)
    simulated(source[: len(source) // 10], options, cutting, 1, 1)  # compiles
    seconds, _, events = single(source, options)
    rows: list[dict[str, Any]] = [{"what": "one workspace", "events a second": events / seconds}]
    for workers in (1, 2, 4):
        took = simulated(source, options, cutting, workers, max(workers // 2, 1))
        rows.append(
            {"what": f"{workers} workers", "events a second": events / took, "speed-up": seconds / took}
        )
    return rows


def losses() -> list[dict[str, Any]]:
    """Return the mean progressive loss of one workspace and of the default cut, log by log."""
    names = [f"cb-{name}-u" for name in ("letter", "flights", "diamonds", "penbased", "surveys")]
    rows = []
    for name in [*names, "reg-flights", "reg-diamonds", "reg-bikeshare"]:
        options = BANDIT if name.startswith("cb") else {}
        source = log(name)
        found = [ShardedLearner(**options, parts=parts).run(source).loss() for parts in (2, 8, 16)]
        rows.append(
            {"log": name, "one workspace": single(source, options)[1]}
            | dict(zip(["2", "8", "16"], found, strict=True))
        )
    return rows


def line(row: dict[str, Any], digits: int) -> str:
    """Return a row as text."""
    return ", ".join(f"{k}: {v if isinstance(v, str) else f'{v:.{digits}f}'}" for k, v in row.items())


def main(words: list[str] | None = None) -> None:
    """Print the tables."""
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("--only", nargs="+", choices=["resizes", "throughput", "loss"])
    parser.add_argument("--resizes", type=int, default=12)
    parser.add_argument("--copies", type=int, default=3, help="how often the log is repeated")
    parser.add_argument("--backend", choices=["local", "ray"], default="ray")
    given = parser.parse_args(words)
    chosen = given.only or ["resizes", "throughput", "loss"]
    if "resizes" in chosen:
        found = resizes(given.resizes, given.backend, given.copies)
        pauses, ticks = found["pauses"], found["pauses in ticks"]
        restarts = statistics.median(found["restarts"])
        print(f"{found['resizes']} requests, {found['layouts']} layouts; weights exact: {found['exact']}")
        print(f"longest pause: median {statistics.median(pauses):.3f} s, at most {max(pauses):.3f} s")
        print(f"in ticks: median {statistics.median(ticks):.1f}, at most {max(ticks):.1f}")
        print(f"restart: median {restarts:.2f} s, {found['ratio']:.0f} times as long")
    if "throughput" in chosen:
        for title, (name, options) in LOGS.items():
            for part_events in (32, 256):
                print(f"{title}, parts of {part_events} events")
                for row in throughput(name, options, 1, part_events):
                    print(f"  {line(row, 2)}")
    if "loss" in chosen:
        for row in losses():
            print(line(row, 4))


if __name__ == "__main__":
    main()
