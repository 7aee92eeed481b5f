"""What is measured, and the rows of the table that the measurements make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

STREAMS = {
    "narrow": ("narrow", 20_000),
    "heavy": ("heavy", 20_000),
    "wide": ("wide", 500),
    "planted": ("planted", 20_000),
    "long": ("narrow", 100_000),
    "short": ("narrow", 1000),
}
"""Streams by name: their kind and their number of events."""

WEIGHTS_MB = 2**18 * 4 * 4 * 4 / 1e6
"""Weights of four live configs: 2^18 cells of four float32 (weight, Σ gradient², scale, rate) for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Something to run again and again."""

    name: str
    # who runs it: a worker that has imported the wheel or onlineauto, or a new process
    by: Literal["wheel", "ours", "process"]
    stream: str = "narrow"  # A name of `STREAMS`
    # what a worker of ours does (``fit``, ``read``, ``predict``), or what kind of process it is
    task: str = "fit"
    flags: tuple[str, ...] = ()  # flags of the wheel or of the command line
    options: dict[str, Any] = field(default_factory=dict)  # keywords of `Workspace` or `read`

    def command(self) -> str:
        """Say in one line what runs."""
        if self.by != "ours":
            return " ".join(("vw" if self.by == "wheel" else "onlineauto", *self.flags))
        words = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return {
            "fit": f"Workspace({words}).fit(file)",
            "read": f"for block in read(file, {words})",
            "predict": f"Workspace({words}).fit(file).predict_block(block)",
        }[self.task]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure and its target."""

    name: str  # what ``--only`` calls it
    what: str  # the figure in words
    # measurements, each ``"contender"`` (its seconds) or ``"contender/number"``. The figure is the ratio
    # of their medians, or, without `under`, the median itself
    over: str
    under: str = ""
    target: float
    least: bool  # whether the target is the least that will do, or the most
    unit: str = "\N{MULTIPLICATION SIGN}"  # unit of the figure

    def is_met(self, figure: float) -> bool:
        """Compare with the target."""
        return figure >= self.target if self.least else figure <= self.target


def _adf(**options: Any) -> dict[str, Any]:
    return {"cb_explore_adf": True, **options}


_ADF = ("--cb_explore_adf", "--quiet")
_READING = ("--cb_adf", "-t", "--noconstant", "--ignore", "abcZ", "--quiet")
_AUTOML = _adf(automl=4)

CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender(name="vw narrow automl 4", by="wheel", flags=(*_ADF, "--automl", "4")),
        Contender(name="vw narrow -q ::", by="wheel", flags=(*_ADF, "-q", "::")),
        Contender(name="ours narrow automl 4", by="ours", options=_AUTOML),
        Contender(name="ours exact automl 4", by="ours", options=_adf(automl=4, vw_exact=True)),
        Contender(name="vw wide -q ::", by="wheel", stream="wide", flags=(*_ADF, "-q", "::")),
        Contender(name="ours wide automl 4", by="ours", stream="wide", options=_AUTOML),
        Contender(name="vw heavy automl 4", by="wheel", stream="heavy", flags=(*_ADF, "--automl", "4")),
        Contender(name="ours heavy automl 4", by="ours", stream="heavy", options=_AUTOML),
        Contender(name="ours automl 32", by="ours", stream="planted", options=_adf(automl=32)),
        Contender(name="ours automl 1", by="ours", stream="planted", options=_adf(automl=1)),
        Contender(name="vw reading", by="wheel", stream="long", flags=_READING),
        Contender(name="ours reading", by="ours", stream="long", task="read", options={"cb_adf": True}),
        Contender(name="ours predict", by="ours", task="predict", options=_AUTOML),
        Contender(
            name="learn 1,000",
            by="process",
            stream="short",
            task="run",
            flags=("learn", "--cb_explore_adf", "--automl", "4"),
        ),
        Contender(name="help", by="process", task="run", flags=("--help",)),
        Contender(name="cold", by="process", task="cold", flags=("warmup",)),
        Contender(
            name="memory 20,000",
            by="process",
            task="run",
            flags=("learn", "--cb_explore_adf", "--automl", "4", "-b", "18", "--quiet"),
        ),
        Contender(
            name="memory 100,000",
            by="process",
            stream="long",
            task="run",
            flags=("learn", "--cb_explore_adf", "--automl", "4", "-b", "18", "--quiet"),
        ),
    )
}
"""All that is run, by name.

Reading alone: the wheel has no flag for it. Among the ways to make it do as little as possible after reading,
``--cb_adf -t --noconstant`` with all namespaces ignored takes the least time: every line is split, hashed and
handed to the learner, which has no feature left to look at and nothing to learn. A second thread of the wheel
does the reading, so what remains of the learner hardly shows. The stream is long, so that what it takes to
make a workspace does not either.

Growth: on the planted stream, whose 9 namespaces make 45 pairs, so that all 32 slots are taken. The narrow
stream has 10 pairs, and so never more than 11 live configs.
"""

ROWS = (
    Row(
        name="narrow",
        what="narrow stream: VW `--automl 4` / our four live configs",
        over="vw narrow automl 4",
        under="ours narrow automl 4",
        target=40,
        least=True,
    ),
    Row(
        name="narrow-q",
        what="narrow stream: VW `-q ::`, one model / our four live configs",
        over="vw narrow -q ::",
        under="ours narrow automl 4",
        target=3,
        least=True,
    ),
    Row(
        name="wide-q",
        what="wide stream: VW `-q ::`, one model / our four live configs",
        over="vw wide -q ::",
        under="ours wide automl 4",
        target=4,
        least=True,
    ),
    Row(
        name="exact",
        what="narrow stream, `--vw_exact`: VW `--automl 4` / our four live configs",
        over="vw narrow automl 4",
        under="ours exact automl 4",
        target=15,
        least=True,
    ),
    Row(
        name="growth",
        what="planted stream: our 32 live configs / our 1",
        over="ours automl 32",
        under="ours automl 1",
        target=5,
        least=False,
    ),
    Row(
        name="reading",
        what="reading VW text alone: VW / ours",
        over="vw reading",
        under="ours reading",
        target=4,
        least=True,
    ),
    Row(
        name="reading-mb",
        what="reading VW text alone",
        over="ours reading/mb_per_second",
        target=150,
        least=True,
        unit="MB/s",
    ),
    Row(
        name="heavy",
        what="importance weights up to 1000: VW `--automl 4` / our four live configs",
        over="vw heavy automl 4",
        under="ours heavy automl 4",
        target=40,
        least=True,
    ),
    Row(
        name="memory",
        what="peak memory, `--automl 4 -b 18`, 100,000 events",
        over="memory 100,000/peak_mb",
        target=round(1.5 * WEIGHTS_MB + 150, 1),
        least=False,
        unit="MB",
    ),
    Row(
        name="memory-growth",
        what="peak memory: 100,000 events / 20,000",
        over="memory 100,000/peak_mb",
        under="memory 20,000/peak_mb",
        target=1.05,
        least=False,
    ),
    Row(
        name="predict-p50",
        what="`predict_block` of a parsed event of 8 actions, `--automl 4`, median",
        over="ours predict/p50",
        target=15,
        least=False,
        unit="µs",
    ),
    Row(
        name="predict-p99",
        what="the same, 99th percentile",
        over="ours predict/p99",
        target=60,
        least=False,
        unit="µs",
    ),
    Row(
        name="learn",
        what="`onlineauto learn --automl 4`, 1,000 events, whole process",
        over="learn 1,000",
        target=1.2,
        least=False,
        unit="s",
    ),
    Row(
        name="help",
        what="`onlineauto --help`, whole process",
        over="help",
        target=0.15,
        least=False,
        unit="s",
    ),
    Row(
        name="cold",
        what="cold compile of everything, whole process",
        over="cold",
        target=20,
        least=False,
        unit="s",
    ),
)
"""The table."""


def contenders_of(rows: tuple[Row, ...]) -> list[Contender]:
    """Return what must run for some rows, each once, in the order of the rows."""
    measurements = [side for row in rows for side in (row.over, row.under) if side]
    return [CONTENDERS[name] for name in dict.fromkeys(side.partition("/")[0] for side in measurements)]


Samples = dict[str, dict[str, list[float]]]
"""Numbers by contender and by their name, one for each round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What a row came to; `over` and `under` are the medians it is made of."""

    row: Row
    figure: float
    over: float
    under: float | None

    @property
    def met(self) -> bool:
        """Whether it meets the target."""
        return self.row.is_met(self.figure)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        row = self.row
        return {
            "name": row.name,
            "what": row.what,
            "over": row.over,
            "over_median": self.over,
            "under": row.under,
            "under_median": self.under,
            "figure": self.figure,
            "unit": row.unit,
            "target": row.target,
            "least": row.least,
            "met": self.met,
        }


def value_of(samples: Samples, measurement: str) -> float:
    """Return the median of ``"contender"`` (its seconds) or ``"contender/number"``."""
    name, _, number = measurement.partition("/")
    return median(samples[name][number or "seconds"])


def figures_of(rows: Sequence[Row], samples: Samples) -> list[Figure]:
    """Make the figures of some rows."""
    figures = []
    for row in rows:
        over = value_of(samples, row.over)
        under = value_of(samples, row.under) if row.under else None
        figure = over if under is None else over / under
        figures.append(Figure(row=row, figure=figure, over=over, under=under))
    return figures


def printed(figures: Sequence[Figure], *, start_up: Mapping[str, float], samples: Samples) -> str:
    """Return the table as text, our start-up and the notes below it."""
    lines = [f"{'row':14} {'over':>10} {'under':>10} {'figure':>10} {'':5} {'target':>9}  met"]
    for figure in figures:
        row = figure.row
        under = "" if figure.under is None else f"{figure.under:10.4f}"
        sign = "≥" if row.least else "≤"
        lines.append(
            f"{row.name:14} {figure.over:10.4f} {under:>10} {figure.figure:10.3f} {row.unit:5} "
            f"{sign}{row.target:8g}  {'yes' if figure.met else 'NO'}"
        )
    lines.append("")
    lines += [f"{row.row.name:14} {row.row.what}" for row in figures]
    lines += ["", "start-up, in no figure above: "]
    lines += [f"  {name}: {seconds:.3f} s" for name, seconds in start_up.items()]
    return "\n".join([*lines, *_notes(samples)])


def _notes(samples: Samples) -> list[str]:
    """Say of a cold start what it compiled."""
    if "cold" not in samples:
        return []
    missed = max(samples["cold"]["missed"])
    if min(samples["cold"]["warmup"]) == 0:
        return ["cold: there is no `onlineauto warmup`; these are runs of four kinds, one after the other"]
    flags = " ".join(CONTENDERS["cold"].flags)
    return [f"cold: `onlineauto {flags}`; runs of four kinds then compiled {missed:.0f} kernels more"]
