"""Speed on streams of several kinds: four live configs beside Vowpal Wabbit, wall clock and processor.

    python -m bench.speed_kinds [--rounds 3] [--kinds NAME ...] [--lengths 1 10] [--json FILE]

A search costs most at first: it tries configs, and members that will rest later. So each kind of
`bench.speed_kinds.streams` is measured as a curve: its first events, then the events from there to
``--lengths`` times as many. The events between two lengths cost the difference of two runs.

Every round runs each side once on each length of each kind, every second round in reverse order, after a
round that does not count. Printed are medians in microseconds for an event, the ratio of Vowpal Wabbit's
processor time to ours, and the mean reward that each side reports of itself: for each kind; and the geometric
mean and the worst ratio over all kinds but the last two.
The exit code is 1 if a target is missed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from bench import kit
from bench.speed.workers import OUR_WORKER, VW_WORKER, Worker
from bench.speed_kinds.streams import KINDS

_FLAGS = ["--cb_explore_adf", "--quiet"]
SIDES: dict[str, list[str] | dict[str, Any]] = {
    "VW -q ::": [*_FLAGS, "-q", "::"],
    "VW --automl 4": [*_FLAGS, "--automl", "4"],
    "ensemble": {"automl": 4},
    "champion": {"automl": 4, "predict_with": "champion"},
    "1 live": {"automl": 1},
    "32 live": {"automl": 32, "predict_with": "champion"},
    "no search": {},
}
"""The flags of VW, or options of onlineauto, of each run."""

_EVERYWHERE = ("VW -q ::", "VW --automl 4", "ensemble", "champion")
_ONLY_ON = {"1 live": ("news",), "32 live": ("news",), "no search": ("300 namespaces",)}
_NOT_AVERAGED = ("wide", "300 namespaces")

_MEASURED = ("wall", "cpu", "reward")

Part = dict[str, float]
"""Microseconds for an event of a part of a stream, on the wall and of the processor, and the mean reward."""
Taken = dict[str, dict[str, list[list[Part]]]]
"""By kind, side and round: each part of the stream, which ends at one of the lengths."""


def sides_of(kind: str) -> list[str]:
    """Return the contenders on a kind of stream."""
    if kind == "300 namespaces":  # VW's search would take minutes
        return ["ensemble", "champion", "no search"]
    return [*_EVERYWHERE, *(side for side, kinds in _ONLY_ON.items() if kind in kinds)]


def measure(
    kinds: Sequence[str], *, rounds: int, lengths: Sequence[float], sides: Sequence[str] = tuple(SIDES)
) -> Taken:
    """Run all sides on all kinds and lengths, in alternation."""
    taken: Taken = {kind: {side: [] for side in sides_of(kind) if side in sides} for kind in kinds}
    with (
        tempfile.TemporaryDirectory() as directory,
        Worker(VW_WORKER) as vw,
        Worker(OUR_WORKER) as ours,
    ):
        files = [
            {kind: Path(directory) / f"{kind} {length:g}.txt".replace(" ", "_") for kind in kinds}
            for length in lengths
        ]
        events = [
            {kind: KINDS[kind].write(file, share=length) for kind, file in named.items()}
            for length, named in zip(lengths, files, strict=True)
        ]
        runs = [(kind, side) for kind in kinds for side in taken[kind]]
        for number, (kind, side) in kit.turns(runs, rounds):
            what, begin, parts = SIDES[side], dict.fromkeys((*_MEASURED, "events"), 0.0), []
            for named, counted in zip(files, events, strict=True):
                file = str(named[kind])
                if isinstance(what, list):
                    found = vw.ask(argv=[*what, "-d", file], directory=directory)
                else:
                    found = ours.ask(task="fit", options={"cb_explore_adf": True, **what}, file=file)
                end = {"wall": found["seconds"], "cpu": found["cpu"], "events": float(counted[kind])}
                n = end["events"] - begin["events"]
                end["reward"] = -found["loss"] * end["events"] * 1e-6
                parts.append({name: (end[name] - begin[name]) / n * 1e6 for name in _MEASURED})
                begin = end
            curve = ", ".join(f"{part['cpu']:.1f}" for part in parts)
            print(f"{number} {kind} {side}: {curve} \N{MICRO SIGN}s", file=sys.stderr)
            if number:
                taken[kind][side].append(parts)
    return taken


def report(taken: Mapping[str, Any], lengths: Sequence[float]) -> tuple[list[str], bool]:
    """Return lines of Markdown with the medians and their ratios, and whether all targets are met."""
    columns = [*_EVERYWHERE, "`-q ::` / ensemble, champion", "`--automl 4` / ensemble, champion"]
    columns.append("reward of these four")
    lines = [f"| stream | events | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 2)}"]
    averages, met = [], True
    middles = [_medians(taken, part) for part in range(len(lengths))]
    for kind in taken:
        for part, middle in enumerate(middles):
            sides, name = middle[kind], KINDS[kind].what if part == 0 else ""
            cells = [
                f"{sides[side]['wall']:.3g}, {sides[side]['cpu']:.3g}" if side in sides else ""
                for side in _EVERYWHERE
            ]
            for peer in ("VW -q ::", "VW --automl 4"):
                own: tuple[str, ...] = ("ensemble", "champion") if peer in sides else ()
                cells.append(", ".join(f"{sides[peer]['cpu'] / sides[side]['cpu']:.2f}" for side in own))
            cells.append(", ".join(f"{sides[side]['reward']:.3f}" for side in _EVERYWHERE if side in sides))
            lines.append(f"| {name} | {_events(kind, lengths, part)} | {' | '.join(cells)} |")
    for part, middle in enumerate(middles):
        for peer in ("VW -q ::", "VW --automl 4"):
            for side in ("ensemble", "champion"):
                averaged = [
                    sides[peer]["cpu"] / sides[side]["cpu"]
                    for kind, sides in middle.items()
                    if peer in sides and kind not in _NOT_AVERAGED
                ]
                if averaged:
                    mean, worst = geometric_mean(averaged), min(averaged)
                    when = "first events" if part == 0 else f"up to {lengths[part]:g} times as many"
                    averages.append(
                        f"- {peer} / {side}, {when}: {mean:.2f} (geometric mean), {worst:.2f} (worst)"
                    )
                    met &= (mean >= 1.5 and worst >= 0.8) if peer == "VW -q ::" else worst >= 12
    lines += ["", *averages]
    first = middles[0]
    for what, kind, over, under, most in (
        ("32 live configs / 1", "news", "32 live", "1 live", 6.0),
        ("300 namespaces searched / not searched", "300 namespaces", "champion", "no search", 4.0),
        ("300 namespaces, with the ensemble / not searched", "300 namespaces", "ensemble", "no search", 4.0),
    ):
        if kind in first:
            ratio_of = first[kind][over]["cpu"] / first[kind][under]["cpu"]
            lines.append(f"- {what}: {ratio_of:.2f} (at most {most:g})")
            met &= ratio_of <= most
    return lines, met


def _medians(taken: Mapping[str, Any], part: int) -> dict[str, dict[str, Part]]:
    """Return the median over the rounds of a part of each stream, by kind and side."""
    return {
        kind: {
            side: {name: median(each[part][name] for each in rounds) for name in _MEASURED}
            for side, rounds in sides.items()
        }
        for kind, sides in taken.items()
    }


def _events(kind: str, lengths: Sequence[float], part: int) -> str:
    """Return which events of a stream a part has."""
    ends = [f"{max(1, round(KINDS[kind].events * length)):,}" for length in lengths]
    return f"first {ends[0]}" if part == 0 else f"{ends[part - 1]} to {ends[part]}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, write JSON if asked to; 1 if a target is missed."""
    options = kit.parser(
        __doc__,
        rounds=3,
        kinds=kit.Option(list(KINDS), choices=list(KINDS)),
        lengths=kit.Option(
            [1.0, 10.0], "where the parts of each stream end, in ascending order; 1 is its usual length"
        ),
        json=Path,
    ).parse_args(argv)
    taken = measure(options.kinds, rounds=options.rounds, lengths=options.lengths)
    lines, met = report(taken, options.lengths)
    print("\n".join(lines))
    kit.write_json(options.json, taken)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
