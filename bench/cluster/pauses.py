"""Pauses of resizes of a partitioned run: the seconds that rounds take longer after a change of size.

    python -m bench.cluster.pauses [--resizes 30]

Workers and servers are actors of Ray. Rounds have 4,096 events. A pause is the time of the five rounds after
a request, less five times the median round at the slower of the two sizes. A third of the requests ask for
the size that the run has: their pauses are noise. A migration is the time for which rounds stop at the clock
of a change. The model must have the bytes of a run that was never resized.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from itertools import cycle, islice, pairwise

from datasets.generate import text
from onlineauto import Workspace
from onlineauto.cluster import PartitionedRun
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.cluster.partitions.pool import CrewPool

_PARTITIONS, _LENGTH, _ALONE, _ROUNDS = 4, 4096, 1024, 5
_SCHEDULE = RoundSchedule(alone=_ALONE, shortest=_LENGTH, longest=_LENGTH // _PARTITIONS)
_SIZES = ((2, 1), (2, 1), (3, 1), (3, 2), (3, 2), (2, 2), (2, 3), (2, 3), (3, 3), (3, 2), (3, 2), (2, 2))
"""Workers and servers, one after the other."""
_CHANGES = {(False, False): "no change", (True, False): "workers", (False, True): "servers"}


def begun(source: bytes, size: tuple[int, int]) -> PartitionedRun:
    """Return a run of this size, with actors of Ray."""
    workspace = Workspace(cb_explore_adf=True, automl=4)
    return PartitionedRun(
        workspace, source, workers=size[0], servers=size[1], partitions=_PARTITIONS, schedule=_SCHEDULE,
        backend="ray",
    )  # fmt: skip


def model_of(run: PartitionedRun) -> bytes:
    """Return the bytes of the model."""
    file = io.BytesIO()
    run.workspace.save(file)
    return file.getvalue()


def pauses(n: int) -> tuple[dict[str, list[float]], bool]:
    """Return the migrations, the pauses after each kind of change, and whether the model is exact."""
    source = text("planted", events=_ALONE + (n + 1) * _ROUNDS * _LENGTH, seed=5)
    sizes, times = [*islice(cycle(_SIZES), n + 1)], []
    with begun(source, sizes[0]) as run:
        assert isinstance(run.pool, CrewPool)
        while run.position.events < _ALONE:
            run.learn_round()
        for size in sizes:
            run.resize(*size)
            for _ in range(_ROUNDS):
                begin = time.monotonic()
                run.learn_round()
                times.append((size, time.monotonic() - begin))
        run.step()
        model = model_of(run)
        migrations = [*run.pool.servers.pauses]
    usual = {
        size: statistics.median(seconds for other, seconds in times[_ROUNDS:] if other == size)
        for size in sizes[1:]
    }
    found: dict[str, list[float]] = {"migration": migrations, **{kind: [] for kind in _CHANGES.values()}}
    for number, (before, after) in enumerate(pairwise(sizes), 1):
        took = sum(seconds for _, seconds in times[number * _ROUNDS : (number + 1) * _ROUNDS])
        kind = _CHANGES[before[0] != after[0], before[1] != after[1]]
        found[kind].append(took - _ROUNDS * max(usual[before], usual[after]))
    with begun(source, (1, 0)) as run:
        run.step()
        return found, model_of(run) == model


def main(words: list[str] | None = None) -> None:
    """Print the pauses."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resizes", type=int, default=30)
    given = parser.parse_args(words)
    found, exact = pauses(given.resizes)
    for kind, seconds in found.items():
        quarters = ", ".join(f"{quarter:.2f}" for quarter in statistics.quantiles(seconds))
        print(f"{kind}, {len(seconds)} times: quartiles of the pause {quarters} s")
    print(f"the model is exact: {exact}")


if __name__ == "__main__":
    main()
