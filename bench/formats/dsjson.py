"""Reading and learning decision-service logs: onlineauto beside VW on the same files, in alternation.

    python -m bench.formats.dsjson [--rounds 5] [--events 20000] [--json FILE]

VW cannot only read; its reading is a run that learns nothing and has next to nothing to predict from:
``-t``, every namespace ignored, no constant; it reads in a second thread. Ours is
``onlineauto.read``. From both, what the same takes on the first event alone is subtracted. The processes are
those of ``bench.speed``: warm, timed around the run only, alternating, an uncounted round before. The
exit code is 1 if reading is not three times as fast.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import kit
from bench.speed.machine import commit, machine, versions
from bench.speed.workers import OUR_WORKER, VW_WORKER, Worker
from datasets.generate import text

TARGET = 3.0
"""The target of reading: the minimum ratio of its speed to that of VW."""
STREAMS = {"narrow": 1.0, "wide": 0.2}
"""Streams of `datasets.generate`, and their share of the events."""

_ALL = "".join(map(chr, range(33, 127)))
_VW: dict[str, list[str]] = {
    "read": ["-t", "--noconstant", "--ignore", _ALL, "--ignore", " "],
    "learn": [],
}
_OURS = {"read": "read", "learn": "fit"}


def _features(line: str) -> dict[str, dict[str, float | str]]:
    """Namespaces of a line of VW text, as JSON has them: what has a value is a number, a name is a string."""
    found: dict[str, dict[str, float | str]] = {}
    for span in line.split("|")[1:]:
        name, *words = span.split()
        features = found.setdefault(name, {})
        for word in words:
            key, colon, value = word.partition(":")
            if colon:
                features[key] = float(value)
            else:
                features[f"v{len(features)}"] = key
    return found


def log_of(events: bytes) -> Iterator[str]:
    """Yield the lines of a decision-service log with the events of a VW text."""
    for number, event in enumerate(events.decode().split("\n\n")):
        shared, *actions = event.strip().split("\n")
        if not actions:
            continue
        log: dict[str, Any] = {}
        for i, action in enumerate(actions):
            if not action.startswith("|"):
                _, cost, probability = action.split("|")[0].split(":")
                log["_label_cost"], log["_label_probability"] = float(cost), float(probability)
                log["_label_Action"], log["_labelIndex"] = i + 1, i
        log |= {"Timestamp": "2026-01-01T00:00:00.0000000Z", "Version": "1", "EventId": f"{number:032x}"}
        log["a"] = sorted(range(1, len(actions) + 1), key=lambda i: i != log.get("_label_Action"))
        log["c"] = _features(shared) | {"_multi": [_features(action) for action in actions]}
        log["p"] = [1 / len(actions)] * len(actions)
        log["VWState"] = {"m": "0123456789abcdef/0123456789abcdef"}
        yield json.dumps(log, separators=(",", ":"))


def _write(directory: Path, events: int) -> dict[str, Path]:
    """Write the logs, and the first event of each."""
    files = {}
    for name, share in STREAMS.items():
        lines = list(log_of(text(name, events=max(1, round(events * share)))))
        for suffix, part in (("", lines), ("-first", lines[:1])):
            files[name + suffix] = directory / f"{name}{suffix}.json"
            files[name + suffix].write_text("\n".join(part) + "\n")
    return files


def measure(*, rounds: int, events: int) -> list[dict[str, Any]]:
    """Run everything in alternation; a row for each stream and task, with medians."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = _write(directory, events)
        vw, ours = (stack.enter_context(Worker(script)) for script in (VW_WORKER, OUR_WORKER))

        def seconds(run: tuple[str, str, str]) -> float:
            by, task, name = run
            return taken(by, task, files[name]) - taken(by, task, files[f"{name}-first"])

        def taken(by: str, task: str, path: Path) -> float:
            file = str(path)
            if by == "vw":
                argv = ["--dsjson", "--cb_explore_adf", "--quiet", *_VW[task], "-d", file]
                return vw.ask(argv=argv, directory=str(directory))["seconds"]
            options = {"dsjson": True, "cb_explore_adf": True}
            return ours.ask(task=_OURS[task], options=options, file=file)["seconds"]

        runs = [(by, task, name) for name in STREAMS for task in _OURS for by in ("vw", "ours")]
        samples = kit.samples(runs, rounds, seconds)
        sizes = {name: files[name].stat().st_size / 1e6 for name in STREAMS}
    rows = []
    for name in STREAMS:
        for task in _OURS:
            theirs, mine = (statistics.median(samples[by, task, name]) for by in ("vw", "ours"))
            row = {"stream": name, "task": task, "megabytes": sizes[name], "vw": theirs, "ours": mine}
            rows.append(row | {"ratio": theirs / mine})
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table and say whether the target is met."""
    options = kit.parser(
        __doc__, rounds=5, events=kit.Option(20_000, "events of a log"), json=Path
    ).parse_args(argv)
    rows = measure(rounds=options.rounds, events=options.events)
    kit.printed(rows)
    report = {"machine": machine(), "versions": versions(), "commit": commit(), "rows": rows}
    kit.write_json(options.json, report)
    return int(any(row["ratio"] < TARGET for row in rows if row["task"] == "read"))


if __name__ == "__main__":
    sys.exit(main())
