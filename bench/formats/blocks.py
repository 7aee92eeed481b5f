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
from pathlib import Path
from statistics import median

from bench import kit
from datasets.generate import write
from onlineauto import convert, read

STREAMS = {"narrow": 100_000, "planted": 100_000, "heavy": 100_000, "wide": 2500}
"""Events of each stream."""
TARGET = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Seconds of both, round by round, and the sizes of the files."""

    stream: str
    events: int
    text_bytes: int
    blocks_bytes: int
    text_seconds: list[float]
    blocks_seconds: list[float]

    @property
    def times(self) -> float:
        """How many times as fast blocks are read, by medians."""
        return median(self.text_seconds) / median(self.blocks_seconds)

    def printed(self) -> str:
        """Return the row of the table."""
        text, blocks = median(self.text_seconds), median(self.blocks_seconds)
        met = "yes" if self.times >= TARGET else "NO"
        return (
            f"{self.stream:9} {self.events:8} {self.text_bytes / 1e6:8.1f} {self.blocks_bytes / 1e6:10.1f} "
            f"{text * 1e3:9.2f} {blocks * 1e3:11.2f} {self.text_bytes / text / 1e6:10.0f} "
            f"{self.text_bytes / blocks / 1e6:12.0f} {self.times:7.2f} {met:>4}"
        )


TITLES = "stream      events  text MB  blocks MB   text ms   blocks ms  text MB/s  blocks MB/s   times  met"
"""Both speeds are in bytes of the text."""


def _seconds(path: Path) -> tuple[float, int]:
    begin = time.perf_counter()
    events = sum(map(len, read(path, cb_explore_adf=True)))
    return time.perf_counter() - begin, events


def measure(stream: str, *, events: int, rounds: int, directory: Path) -> Row:
    """Read one stream both ways, `rounds` times each; which goes first changes with every round."""
    text, blocks = directory / f"{stream}.txt", directory / f"{stream}.blocks"
    write(text, kind=stream, events=events)
    convert(text, blocks, cb_explore_adf=True)
    seconds: dict[Path, list[float]] = {text: [], blocks: []}
    for number, path in kit.turns((text, blocks), rounds):
        taken, found = _seconds(path)
        assert found == events
        if number:
            seconds[path].append(taken)
    return Row(
        stream=stream,
        events=events,
        text_bytes=text.stat().st_size,
        blocks_bytes=blocks.stat().st_size,
        text_seconds=seconds[text],
        blocks_seconds=seconds[blocks],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a target is missed."""
    options = kit.parser(
        __doc__, rounds=9, scale=kit.Option(1.0, "share of each stream's events"), json=Path
    ).parse_args(arguments)
    rows = []
    print(TITLES)
    with tempfile.TemporaryDirectory() as directory:
        for stream, events in STREAMS.items():
            n = max(1, int(events * options.scale))
            rows.append(measure(stream, events=n, rounds=options.rounds, directory=Path(directory)))
            print(rows[-1].printed(), flush=True)
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    found = [asdict(row) | {"times": row.times, "target": TARGET} for row in rows]
    kit.write_json(options.json, {"machine": machine, "rows": found})
    return int(any(row.times < TARGET for row in rows))


if __name__ == "__main__":
    sys.exit(main())
