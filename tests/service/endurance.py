"""Traffic of a simulated clock through the join: how many decisions wait, how many are remembered, memory.

``python -m tests.service.endurance --rate 2000 --wait 3600 --hours 50`` prints a line for each simulated
hour, then what `simulate` returns. The join takes each record as in a service, without HTTP, disk and model.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from onlineauto.formats.decisions.dsjson import LogRecord
from onlineauto.service.join.join import Join, JoinSettings
from onlineauto.service.loop.front import _NOW
from onlineauto.service.options import Limits

LINE_BYTES = 400


class Endurance(NamedTuple):
    """Numbers of a simulation; the largest ones are of its whole course."""

    ranked: int
    refused: int
    most_waiting: int
    most_finished: int
    forgotten: int
    bytes_per_decision: float
    slowest_seconds: float
    mean_microseconds: float
    """Of processor time for a decision, its reward and its end, and for making them up."""


def simulate(
    *,
    rate: float,
    wait: float,
    hours: float,
    rewarded: float = 0.3,
    max_pending: int | None = None,
    say: Callable[[str], object] = str,
) -> Endurance:
    """Simulate decisions at a rate; a share is rewarded after a tenth of the wait on average."""
    pending = Limits().pending if max_pending is None else max_pending
    join, draw = Join(JoinSettings(reward_wait=wait)), Random(1)
    rewards: list[list[str]] = [[] for _ in range(1024)]
    step, now, position, refused = 1.0 / rate, 1.7e9, 0, 0
    begin, before = time.process_time(), resident_bytes()
    due_every, hour = max(int(wait * rate / 5 / 1024), 1), int(3600 * rate)
    most_waiting = most_finished = peak = 0
    slowest, count = 0.0, int(hours * 3600 * rate)
    for number in range(count):
        now += step
        event_id = f"{draw.getrandbits(128):032x}"
        if join.waiting >= pending:
            refused += 1
            continue
        took = time.process_time()
        join.take(LogRecord("rank", _NOW, event_id), position, LINE_BYTES, at=now)
        slowest = max(slowest, time.process_time() - took)
        position += LINE_BYTES
        if draw.random() < rewarded:
            rewards[draw.randrange(1024)].append(event_id)
        if number % due_every == 0:  # each list comes once in a fifth of the wait
            due, rewards[0] = rewards[0], []
            rewards.append(rewards.pop(0))
            for each in due:
                join.take(LogRecord("reward", _NOW, each, reward=1.0), position, LINE_BYTES, at=now)
                position += LINE_BYTES
        if number % 4096 == 0:
            most_waiting = max(most_waiting, join.waiting)
            most_finished = max(most_finished, join.finished)
            if number % (4096 * 64) == 0:
                peak = max(peak, resident_bytes() - before)
        if (number + 1) % hour == 0:
            say(
                f"hour {(number + 1) // hour}: {join.waiting:,} wait, {join.finished:,} are remembered, "
                f"{refused:,} refused, {(resident_bytes() - before) / 1e6:,.0f} MB, "
                f"{time.process_time() - begin:,.0f} CPU seconds"
            )
    seconds = time.process_time() - begin
    peak = max(peak, resident_bytes() - before)
    return Endurance(
        join.counts.ranked,
        refused,
        most_waiting,
        most_finished,
        join.counts.forgotten,
        peak / max(most_waiting + most_finished, 1),
        slowest,
        seconds / count * 1e6,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--wait", type=float, default=3600.0)
    parser.add_argument("--hours", type=float, default=1.5)
    parser.add_argument("--rewarded", type=float, default=0.3)
    say = partial(print, flush=True)
    for name, value in simulate(**vars(parser.parse_args()), say=say)._asdict().items():
        print(f"{name:20} {value:,.3f}" if isinstance(value, float) else f"{name:20} {value:,}")  # noqa: T201


if __name__ == "__main__":
    main()


def resident_bytes() -> int:
    """Return the memory that this process has now; 0 where the system does not say."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0
