"""Reading and learning Parquet beside the same rows as text, by us and by VW.

    python -m bench.formats.parquet [--rows 1000000] [--rounds 3] [--wide] [--no-text] [--json FILE]

Each measurement is a process: seconds of the processor (of all its threads), seconds on the clock, and the
most memory that it had, and before it began. "Read" makes blocks and drops them. "Learn" is a linear
regression without interactions, or with ``--wide`` a bandit that learns from a wide log. VW reads with
``--noop``, which learns nothing. The target: 100 MB of Parquet a second on one core, or half of VW's time for
the same rows as text.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench import kit

TARGET_MB, TARGET_VW = 100.0, 2.0
WORDS = {"user": 20_000, "page": 500, "country": 60, "device": 6}
NUMBERS = ("hour", "age", "x1", "x2", "x3")
GROUP = 1 << 17
ARMS = ("a1", "a2", "a3", "a4", "a5")


def tables(n: int, *, wide: bool) -> Iterator[pa.Table]:
    """Yield `n` rows, a row group at a time: nine features, and a label or a decision."""
    random = np.random.default_rng(0)
    for begin in range(0, n, GROUP):
        m = min(GROUP, n - begin)
        columns: dict[str, Any] = {
            name: pa.array([f"{name}{i}" for i in range(k)]).take(pa.array(random.integers(0, k, m)))
            for name, k in WORDS.items()
        }
        columns |= {
            "hour": random.integers(0, 24, m).astype(np.int32),
            "age": random.integers(18, 80, m).astype(np.int32),
            "x1": random.random(m, np.float32),
            "x2": random.standard_normal(m, np.float32),
            "x3": random.standard_normal(m, np.float32),
        }
        if wide:
            arm = random.integers(0, len(ARMS), m)
            columns |= {"arm": pa.array(ARMS).take(pa.array(arm)), "probability": np.full(m, 0.2, np.float32)}
            columns["cost"] = (arm != columns["hour"] % len(ARMS)).astype(np.float32)
        else:
            columns["y"] = (columns["hour"] / 24 + columns["x1"]).astype(np.float32)
        yield pa.table(columns)


def write(folder: Path, n: int, *, wide: bool, text: bool) -> None:
    """Write the rows as Parquet, and as text."""
    with (folder / "rows.txt").open("wb") as file:
        writer = None
        for table in tables(n, wide=wide):
            writer = writer or pq.ParquetWriter(folder / "rows.parquet", table.schema)
            writer.write_table(table)
            if text:
                file.write(
                    pc.binary_join(pa.array([lines(table, wide=wide).to_pylist()]), "\n")[0].as_buffer()
                )
                file.write(b"\n")
        assert writer is not None
        writer.close()


def lines(table: pa.Table, *, wide: bool) -> Any:
    """Return the text of each event."""
    parts: list[Any] = []
    for name in WORDS:
        parts += [f" |{name} {name}=", table[name]]
    for name in NUMBERS:
        parts += [f" |{name} {name}:", table[name].cast(pa.string())]
    if not wide:
        return pc.binary_join_element_wise(table["y"].cast(pa.string()), *parts, "")
    cost = pc.binary_join_element_wise("0:", table["cost"].cast(pa.string()), ":0.2 ", "")
    for arm in ARMS:
        parts += ["\n", pc.if_else(pc.equal(table["arm"], arm), cost, ""), f"|arm arm={arm}"]
    return pc.binary_join_element_wise("shared", *parts, "\n", "")


COLUMNS: dict[str, Any] = {"context": {name: [name] for name in (*WORDS, *NUMBERS)}}
AS_LABELS = COLUMNS | {"rows": "labels", "label": "y"}
AS_EVENTS = COLUMNS | {
    "rows": "events",
    "action": "arm",
    "choices": list(ARMS),
    "cost": "cost",
    "probability": "probability",
}


def work(what: str, folder: Path, *, wide: bool) -> int:
    """Do one measurement's work once, in this process; return the number of events."""
    who, _, task = what.partition(" ")
    options: dict[str, Any] = {"cb_explore_adf": True} if wide else {}
    if who == "vw":
        import vowpalwabbit

        flags = ["--cb_explore_adf"] if wide and task == "learn" else ["--noop"] if task == "read" else []
        vowpalwabbit.Workspace(arg_list=["-d", str(folder / "rows.txt"), "--quiet", *flags]).finish()
        return 0
    from onlineauto import Workspace, read
    from onlineauto.formats.datasets.dataset_source import DatasetSource
    from onlineauto.formats.lines.event_source import EventRules

    source: Any = folder / "rows.txt"
    if who == "parquet":
        source = DatasetSource(folder / "rows.parquet", AS_EVENTS if wide else AS_LABELS)
    if task == "learn":
        return sum(len(block) for block, _ in Workspace(**options).stream(source))
    blocks = (
        read(source, **options) if who == "text" else source.open(EventRules("cb_adf" if wide else "simple"))
    )
    return sum(map(len, blocks))


def worker(what: str, folder: Path, small: Path, *, wide: bool) -> None:
    """Do the work on a few rows, so that all is loaded, then on all of them; print what it took."""
    work(what, small, wide=wide)
    before = peak_mb()
    begin, cpu = time.perf_counter(), time.process_time()
    work(what, folder, wide=wide)
    found = {"cpu": time.process_time() - cpu, "seconds": time.perf_counter() - begin}
    print(json.dumps(found | {"before_mb": before, "peak_mb": peak_mb()}))


def peak_mb() -> float:
    """Return the most memory that this process had, in MB; `getrusage` counts that of its parent, too."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def measure(folder: Path, small: Path, what: str, *, wide: bool) -> dict[str, float]:
    """Return the time and memory of a process."""
    words = [sys.executable, "-m", "bench.formats.parquet", "--worker", what, str(folder), str(small)]
    done = subprocess.run([*words, *["--wide"] * wide], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if the target is missed."""
    parser = kit.parser(__doc__, rows=1_000_000, rounds=3, wide=False, no_text=False, json=Path)
    parser.add_argument("--worker", nargs=3)
    given = parser.parse_args(argv)
    if given.worker:
        what, folder, small = given.worker
        worker(what, Path(folder), Path(small), wide=given.wide)
        return 0
    tasks = [f"{who} {task}" for task in ("read", "learn") for who in ("parquet", "text", "vw")]
    tasks = [each for each in tasks if each.startswith("parquet") or not given.no_text]
    with tempfile.TemporaryDirectory() as directory:
        folder, small = Path(directory) / "all", Path(directory) / "few"
        for path, n in ((folder, given.rows), (small, 1000)):
            path.mkdir()
            write(path, n, wide=given.wide, text=not given.no_text)
        sizes = {"parquet": (folder / "rows.parquet").stat().st_size}
        sizes["text"] = sizes["vw"] = (folder / "rows.txt").stat().st_size
        found = kit.samples(tasks, given.rounds, partial(measure, folder, small, wide=given.wide))
    size, of_text = sizes["parquet"] / 1e6, sizes["text"] / 1e6
    print(f"{given.rows:,} rows: {size:.1f} MB of Parquet, {of_text:.1f} MB of text")
    kit.printed(
        {
            "task": task,
            "CPU s": (cpu := median(run["cpu"] for run in runs)),
            "wall s": median(run["seconds"] for run in runs),
            "MB/s of CPU": sizes[task.split()[0]] / cpu / 1e6,
            "rows/s": given.rows / cpu,
            "peak MB": max(run["peak_mb"] for run in runs),
            "before": max(run["before_mb"] for run in runs),
        }
        for task, runs in found.items()
    )
    kit.write_json(given.json, {"rows": given.rows, "sizes": sizes, "found": found})
    seconds = median(one["cpu"] for one in found["parquet read"])
    fast = sizes["parquet"] / seconds / 1e6 >= TARGET_MB
    ahead = "vw read" in found and median(one["cpu"] for one in found["vw read"]) / seconds >= TARGET_VW
    print("target met" if fast or ahead else "target MISSED")
    return 0 if fast or ahead else 1


if __name__ == "__main__":
    sys.exit(main())
