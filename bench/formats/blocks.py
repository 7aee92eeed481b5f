"""Reading blocks beside reading the same events as text, in alternation: seconds, MB/s, sizes.

    python -m bench.formats.blocks [--rounds 9] [--scale 1] [--json FILE]

Both are read to the end, without learning, from files that the system has in memory. The target is that
blocks are read three times as fast.
"""

from __future__ import annotations

import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench import kit
from datasets.generate import write
from onlineauto import convert, read

STREAMS = {"narrow": 100_000, "planted": 100_000, "heavy": 100_000, "wide": 2500}
"""Events of each stream."""
TARGET = 3.0


@dataclass(frozen=True, slots=True)
class Row:
    """Sizes of both files, and the median speeds of reading them, in megabytes of the text a second."""

    stream: str
    events: int
    megabytes: dict[str, float]
    speed: dict[str, float]

    @property
    def times(self) -> float:
        """Return the ratio of the median times of reading text and reading blocks."""
        return self.speed["blocks"] / self.speed["text"]


def _speed(megabytes: float, path: Path) -> float:
    begin = time.perf_counter()
    for _ in read(path, cb_explore_adf=True):
        pass
    return megabytes / (time.perf_counter() - begin)


def measure(stream: str, *, events: int, rounds: int, directory: Path) -> Row:
    """Read one stream both ways, `rounds` times each; which goes first changes with every round."""
    text, blocks = directory / f"{stream}.txt", directory / f"{stream}.blocks"
    write(text, kind=stream, events=events)
    convert(text, blocks, cb_explore_adf=True)
    speeds = kit.samples((text, blocks), rounds, partial(_speed, text.stat().st_size / 1e6))
    megabytes = {"text": text.stat().st_size / 1e6, "blocks": blocks.stat().st_size / 1e6}
    return Row(stream, events, megabytes, {"text": median(speeds[text]), "blocks": median(speeds[blocks])})


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a target is missed."""
    options = kit.parser(
        __doc__, rounds=9, scale=kit.Option(1.0, "share of each stream's events"), json=Path
    ).parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        sizes = {stream: max(1, int(events * options.scale)) for stream, events in STREAMS.items()}
        settings = {"rounds": options.rounds, "directory": Path(directory)}
        rows = kit.printed(measure(stream, events=n, **settings) for stream, n in sizes.items())
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    found = [asdict(row) | {"times": row.times, "target": TARGET} for row in rows]
    kit.write_json(options.json, {"machine": machine, "rows": found})
    return int(any(row.times < TARGET for row in rows))


if __name__ == "__main__":
    sys.exit(main())
