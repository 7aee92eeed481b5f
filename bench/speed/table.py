"""The measurements, and the rows of the table that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
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
    # who runs it: a worker that has imported VW or onlineauto, or a new process
    by: Literal["vw", "ours", "process"]
    stream: str = "narrow"  # A name of `STREAMS`
    # what a worker of ours does (``fit``, ``read``, ``predict``), or what kind of process it is
    task: str = "fit"
    flags: tuple[str, ...] = ()  # flags of VW or of the command line
    options: dict[str, Any] = field(default_factory=dict)  # keywords of `Workspace` or `read`

    def command(self) -> str:
        """Say in one line what runs."""
        if self.by != "ours":
            return " ".join(("vw" if self.by == "vw" else "onlineauto", *self.flags))
        words = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return {
            "fit": f"Workspace({words}).fit(file)",
            "read": f"for block in read(file, {words})",
            "predict": f"Workspace({words}).fit(file).predict_block(block)",
        }[self.task]


@dataclass(frozen=True, slots=True)
class Row:
    """A figure and its target."""

    name: str  # what ``--only`` calls it
    # measurements, each ``"contender"`` (its seconds) or ``"contender/number"``. The figure is the ratio
    # of their medians, or, without `under`, the median itself
    over: str
    under: str
    sign: Literal["≥", "≤"]  # whether the target is the least that will do, or the most
    target: float
    unit: str = "\N{MULTIPLICATION SIGN}"

    @property
    def what(self) -> str:
        """Return the figure in words."""
        return _WORDS[self.name]

    def is_met(self, figure: float) -> bool:
        """Compare with the target."""
        return figure >= self.target if self.sign == "≥" else figure <= self.target


def _adf(**options: Any) -> dict[str, Any]:
    return {"cb_explore_adf": True, **options}


_ADF = ("--cb_explore_adf", "--quiet")
_READING = ("--cb_adf", "-t", "--noconstant", "--ignore", "abcZ", "--quiet")
_AUTOML = _adf(automl=4)
_LEARN = ("learn", "--cb_explore_adf", "--automl", "4")
_MEMORY = (*_LEARN, "-b", "18", "--quiet")

CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender(name="vw narrow automl 4", by="vw", flags=(*_ADF, "--automl", "4")),
        Contender(name="vw narrow -q ::", by="vw", flags=(*_ADF, "-q", "::")),
        Contender(name="ours narrow automl 4", by="ours", options=_AUTOML),
        Contender(name="ours exact automl 4", by="ours", options=_adf(automl=4, vw_exact=True)),
        Contender(name="vw wide -q ::", by="vw", stream="wide", flags=(*_ADF, "-q", "::")),
        Contender(name="ours wide automl 4", by="ours", stream="wide", options=_AUTOML),
        Contender(name="vw heavy automl 4", by="vw", stream="heavy", flags=(*_ADF, "--automl", "4")),
        Contender(name="ours heavy automl 4", by="ours", stream="heavy", options=_AUTOML),
        Contender(name="ours automl 32", by="ours", stream="planted", options=_adf(automl=32)),
        Contender(name="ours automl 1", by="ours", stream="planted", options=_adf(automl=1)),
        Contender(name="vw reading", by="vw", stream="long", flags=_READING),
        Contender(name="ours reading", by="ours", stream="long", task="read", options={"cb_adf": True}),
        Contender(name="ours predict", by="ours", task="predict", options=_AUTOML),
        Contender(name="learn 1,000", by="process", stream="short", task="run", flags=_LEARN),
        Contender(name="help", by="process", task="run", flags=("--help",)),
        Contender(name="cold", by="process", task="cold", flags=("warmup",)),
        Contender(name="memory 20,000", by="process", task="run", flags=_MEMORY),
        Contender(name="memory 100,000", by="process", stream="long", task="run", flags=_MEMORY),
    )
}
"""All that is run, by name.

Reading alone: VW has no flag for it. Among the ways to make it do as little as possible after reading,
``--cb_adf -t --noconstant`` with all namespaces ignored takes the least time: every line is split, hashed and
handed to the learner, which has no feature left to look at and nothing to learn. A second thread of VW
does the reading, so what remains of the learner hardly shows. The stream is long, so that what it takes to
make a workspace does not either.

Growth: on the planted stream, whose 9 namespaces make 45 pairs, so that all 32 slots are taken. The narrow
stream has 10 pairs, and so never more than 11 live configs.
"""

_WORDS = {
    "narrow": "narrow stream: VW `--automl 4` / our four live configs",
    "narrow-q": "narrow stream: VW `-q ::`, one model / our four live configs",
    "wide-q": "wide stream: VW `-q ::`, one model / our four live configs",
    "exact": "narrow stream, `--vw_exact`: VW `--automl 4` / our four live configs",
    "growth": "planted stream: our 32 live configs / our 1",
    "reading": "reading VW text alone: VW / ours",
    "reading-mb": "reading VW text alone",
    "heavy": "importance weights up to 1000: VW `--automl 4` / our four live configs",
    "memory": "peak memory, `--automl 4 -b 18`, 100,000 events",
    "memory-growth": "peak memory: 100,000 events / 20,000",
    "predict-p50": "`predict_block` of a parsed event of 8 actions, `--automl 4`, median",
    "predict-p99": "the same, 99th percentile",
    "learn": "`onlineauto learn --automl 4`, 1,000 events, whole process",
    "help": "`onlineauto --help`, whole process",
    "cold": "cold compile of everything, whole process",
}

ROWS = (
    Row("narrow", "vw narrow automl 4", "ours narrow automl 4", "≥", 40),
    Row("narrow-q", "vw narrow -q ::", "ours narrow automl 4", "≥", 3),
    Row("wide-q", "vw wide -q ::", "ours wide automl 4", "≥", 4),
    Row("exact", "vw narrow automl 4", "ours exact automl 4", "≥", 15),
    Row("growth", "ours automl 32", "ours automl 1", "≤", 5),
    Row("reading", "vw reading", "ours reading", "≥", 4),
    Row("reading-mb", "ours reading/mb_per_second", "", "≥", 150, "MB/s"),
    Row("heavy", "vw heavy automl 4", "ours heavy automl 4", "≥", 40),
    Row("memory", "memory 100,000/peak_mb", "", "≤", round(1.5 * WEIGHTS_MB + 150, 1), "MB"),
    Row("memory-growth", "memory 100,000/peak_mb", "memory 20,000/peak_mb", "≤", 1.05),
    Row("predict-p50", "ours predict/p50", "", "≤", 15, "µs"),
    Row("predict-p99", "ours predict/p99", "", "≤", 60, "µs"),
    Row("learn", "learn 1,000", "", "≤", 1.2, "s"),
    Row("help", "help", "", "≤", 0.15, "s"),
    Row("cold", "cold", "", "≤", 20, "s"),
)
"""The table."""


def contenders_of(rows: tuple[Row, ...]) -> list[Contender]:
    """Return the contenders of some rows, each once, in the order of the rows."""
    measurements = [side for row in rows for side in (row.over, row.under) if side]
    return [CONTENDERS[name] for name in dict.fromkeys(side.partition("/")[0] for side in measurements)]


Samples = dict[str, dict[str, list[float]]]
"""Numbers by contender and by their name, one for each round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The figure of a row; `over` and `under` are the medians that it is computed from."""

    row: Row
    figure: float
    over: float
    under: float | None

    @property
    def met(self) -> bool:
        """Return whether the figure meets the target."""
        return self.row.is_met(self.figure)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        medians = {"over_median": self.over, "under_median": self.under}
        row = {"what": self.row.what, **asdict(self.row)}
        return {**row, **medians, "figure": self.figure, "met": self.met}


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
