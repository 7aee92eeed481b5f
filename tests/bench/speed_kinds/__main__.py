"""Speed on streams of several kinds: four live configs beside Vowpal Wabbit, wall clock and processor.

    python -m tests.bench.speed_kinds [--rounds 3] [--kinds NAME ...] [--share 1] [--json FILE]

Every round runs each side once on each kind of `tests.bench.speed_kinds.streams`, every second round in
reverse order, after a round that does not count. Printed are medians in microseconds for an event and the
ratio of Vowpal Wabbit's processor time to ours: for each kind, and the geometric mean and the worst over all
kinds but the last two. The exit code is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Any

from tests.bench.speed.workers import OUR_WORKER, WHEEL_WORKER, Worker
from tests.bench.speed_kinds.streams import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["SIDES", "main", "report"]

_FLAGS = ["--cb_explore_adf", "--quiet"]
SIDES: dict[str, list[str] | dict[str, Any]] = {
    "VW -q ::": [*_FLAGS, "-q", "::"],
    "VW --automl 4": [*_FLAGS, "--automl", "4"],
    "stack": {"automl": 4},
    "champion": {"automl": 4, "predict_with": "champion"},
    "1 live": {"automl": 1},
    "32 live": {"automl": 32, "predict_with": "champion"},
    "no search": {},
}
"""What runs: flags of the wheel, or options of ours."""

_EVERYWHERE = ("VW -q ::", "VW --automl 4", "stack", "champion")
_ONLY_ON = {"1 live": ("news",), "32 live": ("news",), "no search": ("300 namespaces",)}
_NOT_AVERAGED = ("wide", "300 namespaces")

Taken = dict[str, dict[str, list[dict[str, float]]]]
"""By kind and side: microseconds for an event of each round, on the wall and of the processor."""


def sides_of(kind: str) -> list[str]:
    """Return what runs on a kind of stream."""
    if kind == "300 namespaces":  # VW's search would take minutes
        return ["stack", "champion", "no search"]
    return [*_EVERYWHERE, *(side for side, kinds in _ONLY_ON.items() if kind in kinds)]


def measure(kinds: Sequence[str], *, rounds: int, share: float) -> Taken:
    """Run all sides on all kinds, in alternation."""
    taken: Taken = {kind: {side: [] for side in sides_of(kind)} for kind in kinds}
    with (
        tempfile.TemporaryDirectory() as directory,
        Worker(WHEEL_WORKER) as wheel,
        Worker(OUR_WORKER) as ours,
    ):
        files = {kind: Path(directory) / f"{kind}.txt".replace(" ", "_") for kind in kinds}
        events = {kind: KINDS[kind].write(file, share=share) for kind, file in files.items()}
        runs = [(kind, side) for kind in kinds for side in taken[kind]]
        for number in range(rounds + 1):
            for kind, side in runs if number % 2 else reversed(runs):
                what, file = SIDES[side], str(files[kind])
                if isinstance(what, list):
                    found = wheel.ask(argv=[*what, "-d", file], directory=directory)
                else:
                    found = ours.ask(task="fit", options={"cb_explore_adf": True, **what}, file=file)
                each = {
                    "wall": found["seconds"] / events[kind] * 1e6,
                    "cpu": found["cpu"] / events[kind] * 1e6,
                }
                print(f"{number} {kind} {side}: {each['cpu']:.1f} \N{MICRO SIGN}s", file=sys.stderr)
                if number:
                    taken[kind][side].append(each)
    return taken


def report(taken: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return lines of Markdown with the medians and their ratios, and whether all targets are met."""
    middle = {
        kind: {
            side: {clock: median(each[clock] for each in rounds) for clock in ("wall", "cpu")}
            for side, rounds in sides.items()
        }
        for kind, sides in taken.items()
    }
    columns = [*_EVERYWHERE, "`-q ::` / stack, champion", "`--automl 4` / stack, champion"]
    lines = [f"| stream | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 1)}"]
    ratios: dict[tuple[str, str], dict[str, float]] = {}
    for kind, sides in middle.items():
        cells = [
            f"{sides[side]['wall']:.3g}, {sides[side]['cpu']:.3g}" if side in sides else ""
            for side in _EVERYWHERE
        ]
        for peer in ("VW -q ::", "VW --automl 4"):
            each = []
            for own in ("stack", "champion") if peer in sides else ():
                ratio = ratios.setdefault((peer, own), {})
                ratio[kind] = sides[peer]["cpu"] / sides[own]["cpu"]
                each.append(f"{ratio[kind]:.2f}")
            cells.append(", ".join(each))
        lines.append(f"| {KINDS[kind].what} | {' | '.join(cells)} |")
    lines.append("")
    met = True
    for (peer, own), found in ratios.items():
        averaged = [ratio for kind, ratio in found.items() if kind not in _NOT_AVERAGED]
        if averaged:
            mean, worst = geometric_mean(averaged), min(averaged)
            lines.append(f"- {peer} / {own}: {mean:.2f} (geometric mean), {worst:.2f} (worst)")
            met &= (mean >= 1.5 and worst >= 0.8) if peer == "VW -q ::" else worst >= 12
    for what, kind, over, under, most in (
        ("32 live configs / 1", "news", "32 live", "1 live", 6.0),
        ("300 namespaces searched / not searched", "300 namespaces", "champion", "no search", 4.0),
        ("300 namespaces, with the stack / not searched", "300 namespaces", "stack", "no search", 4.0),
    ):
        if kind in middle:
            ratio_of = middle[kind][over]["cpu"] / middle[kind][under]["cpu"]
            lines.append(f"- {what}: {ratio_of:.2f} (at most {most:g})")
            met &= ratio_of <= most
    return lines, met


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, write JSON if asked to; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3, help="runs that count (default: %(default)s)")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), metavar="KIND")
    parser.add_argument("--share", type=float, default=1, help="part of each stream")
    parser.add_argument("--json", type=Path, help="file for all samples")
    options = parser.parse_args(argv)
    taken = measure(options.kinds, rounds=options.rounds, share=options.share)
    lines, met = report(taken)
    print("\n".join(lines))
    if options.json:
        options.json.write_text(json.dumps(taken, indent=1), encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
